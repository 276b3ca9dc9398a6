//! Tokens to join with: kubeadm's bootstrap token, and those that the supervisor of k3s and RKE2 accepts.
//!
//! ```text
//!  abcdef.0123456789abcdef                      a bootstrap token: a public id, a dot, and a secret
//!  K10<hash of the bundle>::server:PASSWORD     a full token of k3s or RKE2: it says which cluster, and lets in
//!  K10<hash of the bundle>::abcdef.0123456…     the same, with a bootstrap token
//!  PASSWORD                                     a short one: it lets in, and says nothing of the cluster
//! ```
//!
//! The public parts are shown (the id, the user, the hash); the secret part is in a type that hides itself, and no
//! refusal quotes it.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};

use super::{Kind, TargetError};
use crate::bundle_hash::BundleHash;

const ID_CHARACTERS: usize = 6;
const SECRET_CHARACTERS: usize = 16;
/// The prefix of a full token.
const FULL: &str = "K10";
/// The user name of an agent at the supervisor, whatever user its token names.
pub const AGENT_USER: &str = "node";

/// A token to join with. It shows only its public parts.
#[derive(Clone)]
pub struct Token {
    bundle: Option<BundleHash>,
    who: Who,
}

#[derive(Clone)]
enum Who {
    Bootstrap { id: String, whole: SecretString },
    Shared { user: String, password: SecretString },
}

/// The password that all agents of a k3s or RKE2 cluster share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The user in the token: `server`, `node`, or empty.
    pub user: String,
    /// The password.
    pub password: SecretString,
}

impl Token {
    /// Reads `abcdef.0123456789abcdef`.
    ///
    /// # Errors
    ///
    /// The text has another form. The error does not quote it.
    pub fn parse(place: &str, text: &SecretString) -> Result<Self, TargetError> {
        let written = text.expose_secret().trim();
        let id = Self::id_of(written).ok_or_else(|| {
            let wrong = match empty_or_placeholder(written) {
                Some(wrong) => wrong.to_owned(),
                None if written.starts_with(FULL) => {
                    "it is a token of k3s or RKE2; say so with --distribution k3s or rke2".to_owned()
                }
                None => format!("it is no bootstrap token ({} characters)", written.chars().count()),
            };
            TargetError::new(
                place,
                wrong,
                "six of a-z and 0-9, a dot, and sixteen of the same; make one with: kubeadm token create --print-join-command",
            )
        })?;
        Ok(Self { bundle: None, who: Who::Bootstrap { id: id.to_owned(), whole: written.into() } })
    }

    /// Reads a token of this distribution.
    ///
    /// # Errors
    ///
    /// The text has another form. The error does not quote it.
    pub fn parse_for(kind: Kind, place: &str, text: &SecretString) -> Result<Self, TargetError> {
        if kind == Kind::Kubeadm {
            return Self::parse(place, text);
        }
        let refuse = |wrong: &str| {
            let write = format!("the whole line of /var/lib/rancher/{kind}/server/node-token on a server");
            Err(TargetError::new(place, wrong, write))
        };
        let written = text.expose_secret().trim();
        if let Some(wrong) = empty_or_placeholder(written) {
            return refuse(wrong);
        }
        if written.contains(['\n', '\r', '\t']) {
            return refuse("it is more than one line");
        }
        let Some(rest) = written.strip_prefix(FULL) else {
            let who = Self::id_of(written).map_or_else(
                || Who::Shared { user: String::new(), password: written.into() },
                |id| Who::Bootstrap { id: id.to_owned(), whole: written.into() },
            );
            return Ok(Self { bundle: None, who });
        };
        let Some((hash, credentials)) = rest.split_once("::") else {
            return refuse(
                "it begins as a full token and has no \"::\"; it may have been cut when it was copied",
            );
        };
        let bundle = match hash {
            "" => None,
            hash => match BundleHash::parse(hash) {
                Some(hash) => Some(hash),
                None => {
                    return refuse(
                        "what stands between K10 and \"::\" is not the 64 hexadecimal digits of a hash",
                    );
                }
            },
        };
        let who = match (Self::id_of(credentials), credentials.split_once(':')) {
            (Some(id), _) => Who::Bootstrap { id: id.to_owned(), whole: credentials.into() },
            (None, Some((user, password))) if !password.is_empty() => {
                Who::Shared { user: user.to_owned(), password: password.into() }
            }
            _ => {
                return refuse(
                    "nothing that lets in stands behind its \"::\"; it may have been cut when it was copied",
                );
            }
        };
        Ok(Self { bundle, who })
    }

    /// The id of a text in the form of a bootstrap token.
    fn id_of(text: &str) -> Option<&str> {
        let (id, secret) = text.split_once('.')?;
        let of = |part: &str, length: usize| {
            part.len() == length
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        (of(id, ID_CHARACTERS) && of(secret, SECRET_CHARACTERS)).then_some(id)
    }

    /// The public part: a bootstrap token's id, or the user of a password.
    pub fn id(&self) -> &str {
        match &self.who {
            Who::Bootstrap { id, .. } => id,
            Who::Shared { user, .. } if user.is_empty() => AGENT_USER,
            Who::Shared { user, .. } => user,
        }
    }

    /// The credential without the hash of the cluster: for a request, and for a configuration that is not kept.
    pub const fn whole(&self) -> &SecretString {
        match &self.who {
            Who::Bootstrap { whole, .. } => whole,
            Who::Shared { password, .. } => password,
        }
    }

    /// The secret part.
    pub fn secret(&self) -> SecretString {
        match &self.who {
            Who::Bootstrap { whole, .. } => {
                whole.expose_secret().split_once('.').map_or("", |(_, secret)| secret).into()
            }
            Who::Shared { password, .. } => password.clone(),
        }
    }

    /// The hash of the cluster's bundle, as the token says.
    pub const fn bundle(&self) -> Option<BundleHash> {
        self.bundle
    }

    /// The shared password, where it is not a bootstrap token.
    pub fn shared(&self) -> Option<Shared> {
        match &self.who {
            Who::Bootstrap { .. } => None,
            Who::Shared { user, password } => Some(Shared { user: user.clone(), password: password.clone() }),
        }
    }

    /// The token in its full form: its holder recognises the cluster by this bundle.
    pub fn full(&self, bundle: BundleHash) -> SecretString {
        let credentials = match &self.who {
            Who::Bootstrap { whole, .. } => whole.expose_secret().to_owned(),
            Who::Shared { user, password } => format!("{user}:{}", password.expose_secret()),
        };
        format!("{FULL}{bundle}::{credentials}").into()
    }
}

fn empty_or_placeholder(written: &str) -> Option<&'static str> {
    match written {
        "" => Some("it is empty"),
        text if text.starts_with(['{', '<']) || text.contains("${") || text.starts_with("$") => {
            Some("it is a placeholder that was not filled in")
        }
        _ => None,
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.who {
            Who::Bootstrap { id, .. } => write!(f, "{id}.[masked]"),
            Who::Shared { .. } => write!(f, "{}:[masked]", self.id()),
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const SECRET: &str = "f9e8d7c6b5a49382";

    fn read(text: &str) -> Result<Token, TargetError> {
        Token::parse_for(Kind::K3s, "test", &text.into())
    }

    #[test]
    fn supervisor_token_is_read_in_each_form_and_hides_its_secret() {
        let bootstrap = format!("abcdef.{SECRET}");
        for (text, bundle, shown, user) in [
            (format!("K10{HASH}::server:{SECRET}"), true, "server:[masked]", Some("server")),
            (format!("K10{HASH}::node:{SECRET}:{SECRET}\n"), true, "node:[masked]", Some("node")),
            (format!("K10{HASH}::{bootstrap}"), true, "abcdef.[masked]", None),
            (format!("K10::node:{SECRET}"), false, "node:[masked]", Some("node")),
            (SECRET.to_owned(), false, "node:[masked]", Some("")),
            (bootstrap.clone(), false, "abcdef.[masked]", None),
        ] {
            let token = read(&text).unwrap();
            assert_eq!(token.bundle().is_some(), bundle, "{text}");
            assert_eq!(token.to_string(), shown);
            assert_eq!(token.shared().map(|shared| shared.user).as_deref(), user);
            assert!(!format!("{token:?}").contains(SECRET));
        }
        let hash = BundleHash::parse(HASH).unwrap();
        let short = read(SECRET).unwrap();
        assert_eq!(short.full(hash).expose_secret(), format!("K10{HASH}:::{SECRET}"));
        let again = Token::parse_for(Kind::Rke2, "test", &short.full(hash)).unwrap();
        assert_eq!((again.bundle(), again.whole().expose_secret()), (Some(hash), SECRET));
    }

    #[test]
    fn invalid_supervisor_token_is_refused_without_its_secret() {
        for (text, wrong) in [
            (String::new(), "empty"),
            ("${K3S_TOKEN}".to_owned(), "placeholder"),
            (format!("K10{HASH}"), "no \"::\""),
            (format!("K10{}::server:{SECRET}", &HASH[1..]), "64 hexadecimal"),
            (format!("K10{HASH}::server:"), "lets in"),
            (format!("K10{HASH}::{SECRET}"), "lets in"),
            (format!("{SECRET}\n{SECRET}"), "one line"),
        ] {
            let refused = read(&text).unwrap_err();
            assert!(refused.wrong.contains(wrong), "{text}: {refused:?}");
            assert!(!format!("{refused:?}").contains(SECRET), "{refused:?}");
        }
        let of_k3s = Token::parse("test", &format!("K10{HASH}::server:{SECRET}").into()).unwrap_err();
        assert!(of_k3s.wrong.contains("--distribution"), "{of_k3s:?}");
    }
}
