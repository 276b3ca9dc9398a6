//! Tokens of invitations: `rvi1.ID.SECRET`, drawn here and shown once.

use aws_lc_rs::rand;
use reveille_wire::agent::Secret;

use super::request::token_hash;
use crate::registry::{InvitationId, MachineId, TokenHash};

/// The prefix of a token. Another format would have another prefix.
const FORM: &str = "rvi1";

/// A drawn token, and the parts of it that the server keeps.
pub(super) struct Drawn {
    pub(super) token: Secret,
    pub(super) id: InvitationId,
    pub(super) hash: TokenHash,
}

/// The operating system gives no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub(super) struct NoRandom;

/// Draws a token.
pub(super) fn draw() -> Result<Drawn, NoRandom> {
    let (id, secret) = (random::<6>()?, random::<32>()?);
    let token = Secret::new(&format!("{FORM}.{id}.{secret}"));
    Ok(Drawn { token, id: InvitationId::new(id), hash: token_hash(&secret) })
}

/// Draws a record name for a machine.
pub(super) fn draw_machine() -> Result<MachineId, NoRandom> {
    random::<8>().map(|digits| MachineId::new(format!("m-{digits}")))
}

/// Splits a token. Any other text opens nothing.
pub(super) fn split(token: &str) -> Option<(InvitationId, TokenHash)> {
    let mut parts = token.split('.');
    let (form, id, secret) = (parts.next()?, parts.next()?, parts.next()?);
    let hex = |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let whole = form == FORM && parts.next().is_none() && hex(id, 12) && hex(secret, 64);
    whole.then(|| (InvitationId::new(id), token_hash(secret)))
}

fn random<const BYTES: usize>() -> Result<String, NoRandom> {
    let mut bytes = [0; BYTES];
    rand::fill(&mut bytes).map_err(|_| NoRandom)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_opens_only_its_invitation_and_is_hidden_in_debug() {
        let (one, other) = (draw().unwrap(), draw().unwrap());
        assert_eq!(split(one.token.expose()), Some((one.id.clone(), one.hash)));
        assert_ne!(one.hash, other.hash);
        assert!(!format!("{:?}", one.token).contains("rvi1"));
        let token = one.token.expose();
        for wrong in [
            &token[..token.len() - 1],
            &token[1..],
            "",
            "rvi1..",
            &format!("{token}."),
            &token.replace("rvi1", "rvi2"),
        ] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }
}
