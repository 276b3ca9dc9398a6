//! A bootstrap token: an id that anybody may see, a dot, and a secret.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};

use super::TargetError;

const ID_CHARACTERS: usize = 6;
const SECRET_CHARACTERS: usize = 16;

/// A bootstrap token. Shows its id and never its secret.
#[derive(Clone)]
pub struct Token {
    id: String,
    whole: SecretString,
}

impl Token {
    /// Reads `abcdef.0123456789abcdef`.
    ///
    /// # Errors
    ///
    /// It is something else. What it is, is not quoted.
    pub fn parse(place: &str, text: &SecretString) -> Result<Self, TargetError> {
        let written = text.expose_secret().trim();
        let id = Self::id_of(written).ok_or_else(|| {
            let wrong = if written.is_empty() {
                "it is empty".to_owned()
            } else if written.contains(['{', '$', '<']) {
                "it is a placeholder that nobody has filled in".to_owned()
            } else {
                format!("it is no bootstrap token ({} characters)", written.chars().count())
            };
            TargetError::new(
                place,
                wrong,
                "six of a-z and 0-9, a dot, and sixteen of the same; make one with: kubeadm token create --print-join-command",
            )
        })?;
        Ok(Self { id: id.to_owned(), whole: written.into() })
    }

    /// The id of a token that has the form of one.
    fn id_of(text: &str) -> Option<&str> {
        let (id, secret) = text.split_once('.')?;
        let of = |part: &str, length: usize| {
            part.len() == length
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        (of(id, ID_CHARACTERS) && of(secret, SECRET_CHARACTERS)).then_some(id)
    }

    /// The part that is no secret.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The whole of it, for a request's header and a configuration that is not kept.
    pub const fn whole(&self) -> &SecretString {
        &self.whole
    }

    /// The part behind the dot.
    pub fn secret(&self) -> SecretString {
        let whole = self.whole.expose_secret();
        whole.split_once('.').map_or("", |(_, secret)| secret).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.[masked]", self.id)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
