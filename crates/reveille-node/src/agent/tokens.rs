//! A bootstrap token from the server, made on request.

use std::time::Duration;

use reveille_wire::agent::{AgentFrame, Secret};
use secrecy::SecretString;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::executor::{TokenError, Tokens};
use crate::target::{Kind, Token};

/// Shorter than the time limit of the verb.
const WITHIN: Duration = Duration::from_secs(25);

/// Asks the server, and waits for the next token that it sends.
#[derive(Debug)]
pub(super) struct FromServer {
    pub(super) kind: Kind,
    pub(super) want: mpsc::Sender<AgentFrame>,
    pub(super) tokens: watch::Receiver<Option<Secret>>,
}

impl Tokens for FromServer {
    async fn token(&self) -> Result<Token, TokenError> {
        let mut tokens = self.tokens.clone();
        tokens.mark_unchanged();
        let refused = |why: &str| TokenError::Refused(why.to_owned());
        self.want.try_send(AgentFrame::TokenWanted {}).map_err(|_| refused("the server is away"))?;
        let changed = timeout(WITHIN, tokens.changed()).await;
        changed
            .map_err(|_| refused("the server gave none in time"))?
            .map_err(|_| refused("the agent ends"))?;
        let token = tokens.borrow().clone().ok_or_else(|| refused("the server gave none"))?;
        Ok(Token::parse_for(self.kind, "the server's token", &SecretString::from(token.expose()))?)
    }
}
