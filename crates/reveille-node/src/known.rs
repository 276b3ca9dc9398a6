//! Secrets that this machine is known to hold, removed from text wherever they occur.
//!
//! ```text
//!  text ─▶ without colours ─▶ what is known, whole ─▶ what looks like a secret ─▶ what is known, once more
//! ```
//!
//! Known secrets are removed first. Masking by shape removes what looks like a secret, which may be one half of a secret
//! (`token=one,two`). The other half would then have neither a shape nor the searched text. Of two overlapping secrets
//! both are removed. The search is one pass, however many secrets there are: a machine's keys have some hundred lines,
//! and its logs are long.
//!
//! The author of a disk also chooses its "known" secrets. So the comparison at one place of a text is bounded. Where more
//! secrets begin alike, nothing is compared, and any text that begins like them is removed to the end of its line. This
//! removes more, never less, because a secret has one line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use reveille_core::diagnose::console::{MASK, mask_secrets};
use secrecy::{ExposeSecret as _, SecretString};

use crate::private;
use crate::root::Root;
use crate::target::agent_config::{AgentConfig, own_token_file};
use crate::target::kubeconfig::Kubeconfig;
use crate::target::{BOOTSTRAP_KUBECONFIG, KUBECONFIG, Kind, Token};

/// A shorter secret would mask ordinary words; a secret is found by this many first bytes.
const HEAD: usize = 8;
/// The number of secrets with the same beginning, and their length, that are compared at one place. Tokens of one issuer
/// begin alike, and have some hundred bytes. The search through a log of 4 MiB takes seconds, even if a secret could
/// begin at each byte.
const ALIKE_MAX: usize = 16;
const ALIKE_BYTES_MAX: usize = 2048;
/// The invitation, and the password by which a supervisor recognises a machine.
const AGENTS_TOKENS: [&str; 2] = ["/etc/reveille/token", "/etc/rancher/node/password"];

/// The known secrets. Printing this value shows none of them.
#[derive(Clone, Default)]
pub struct Known(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// The secrets by their first bytes.
    by_head: BTreeMap<[u8; HEAD], Alike>,
    /// The secrets by their first two bytes, which rule out most of a text.
    by_first: Vec<bool>,
    count: usize,
}

/// Secrets that begin alike.
enum Alike {
    /// The longest first.
    Compared(Vec<SecretString>),
    /// There are more than the comparison takes.
    TooMany,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Known({} secrets)", self.0.count)
    }
}

impl Known {
    /// All secrets that are known to be on this machine. They are the token of the join, the caller's secrets in `own`,
    /// and those in the files of a join and of an agent.
    pub fn of_machine(root: &Root, token: Option<&Token>, own: &[SecretString]) -> Self {
        let mut secrets = Vec::new();
        for secret in own {
            keep(&mut secrets, secret.expose_secret());
            // Only the last part of `rvi1.ID.SECRET` is secret.
            keep(&mut secrets, secret.expose_secret().rsplit('.').next().unwrap_or_default());
        }
        token.into_iter().for_each(|token| keep_token(&mut secrets, token));
        for kind in [Kind::K3s, Kind::Rke2] {
            if let Ok(Some(text)) = root.text(own_token_file(kind)) {
                keep(&mut secrets, &text);
            }
            let (config, _) = AgentConfig::as_far_as_it_goes(kind, root);
            config.secrets().for_each(|secret| keep(&mut secrets, secret));
            if let Ok(Some(token)) = config.token(root) {
                keep_token(&mut secrets, &token);
            }
        }
        for path in [KUBECONFIG, BOOTSTRAP_KUBECONFIG] {
            let Ok(Some(read)) = Kubeconfig::read(root, path) else { continue };
            if let Some(token) = &read.token {
                keep(&mut secrets, token.expose_secret());
                keep(&mut secrets, token.expose_secret().split_once('.').map_or("", |(_, secret)| secret));
            }
            if let Some(key) = read.client.as_ref().and_then(|client| client.key_pem()) {
                keep(&mut secrets, &key_lines(key.expose_secret()));
            }
        }
        // Each line of a key is a secret.
        let keys = private::key_files(Path::new(private::FOLDER));
        for text in keys.filter_map(|path| root.text(path).ok().flatten()) {
            keep(&mut secrets, &key_lines(&text));
        }
        for text in AGENTS_TOKENS.iter().filter_map(|path| root.text(path).ok().flatten()) {
            keep(&mut secrets, &text);
            keep(&mut secrets, text.trim().rsplit('.').next().unwrap_or_default());
        }
        Self::of(secrets)
    }

    /// Each secret has one line: beyond the bound, only a first line would be recognised.
    fn of(mut secrets: Vec<SecretString>) -> Self {
        let by_length = |secret: &SecretString| std::cmp::Reverse(secret.expose_secret().len());
        secrets.sort_unstable_by(|one, other| {
            let by_text = || one.expose_secret().cmp(other.expose_secret());
            by_length(one).cmp(&by_length(other)).then_with(by_text)
        });
        secrets.dedup_by(|one, other| one.expose_secret() == other.expose_secret());
        let mut inner = Inner { by_head: BTreeMap::new(), by_first: vec![false; 1 << 16], count: 0 };
        for secret in secrets {
            let Some(head) = secret.expose_secret().as_bytes().first_chunk::<HEAD>().copied() else {
                continue;
            };
            inner.by_first[first(&head)] = true;
            inner.count += 1;
            inner.by_head.entry(head).or_insert_with(|| Alike::Compared(Vec::new())).add(secret);
        }
        Self(Arc::new(inner))
    }

    /// The text without these secrets, and without text that looks like a secret.
    pub fn clean(&self, text: &str) -> String {
        let known = self.blot(&uncoloured(text));
        self.blot(&mask_secrets(&known))
    }

    fn blot(&self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut out = String::with_capacity(text.len());
        // The text before `done` is written, or is a part of a secret.
        let mut done = 0;
        let mut next = 0;
        while let Some(head) = bytes.get(next..next + HEAD) {
            let at = next;
            next += 1;
            if !self.0.by_first.get(first(head)).copied().unwrap_or(false) {
                continue;
            }
            let end = match self.0.by_head.get(head) {
                Some(Alike::Compared(these)) => {
                    let here =
                        |secret: &&SecretString| bytes[at..].starts_with(secret.expose_secret().as_bytes());
                    let Some(secret) = these.iter().find(here) else { continue };
                    at + secret.expose_secret().len()
                }
                Some(Alike::TooMany) => {
                    let line = bytes[at..].iter().position(|byte| *byte == b'\n');
                    next = line.map_or(bytes.len(), |line| at + line);
                    next
                }
                None => continue,
            };
            // A secret that begins within another one, or right behind it, is removed with it.
            if at > done || at == 0 {
                out.push_str(text.get(done..at).unwrap_or_default());
                out.push_str(MASK);
            }
            done = done.max(end);
        }
        out.push_str(text.get(done..).unwrap_or_default());
        out
    }
}

impl Alike {
    fn add(&mut self, secret: SecretString) {
        let Self::Compared(these) = self else { return };
        let bytes = these.iter().map(|secret| secret.expose_secret().len()).sum::<usize>();
        if these.len() == ALIKE_MAX || bytes + secret.expose_secret().len() > ALIKE_BYTES_MAX {
            *self = Self::TooMany;
        } else {
            these.push(secret);
        }
    }
}

fn first(head: &[u8]) -> usize {
    usize::from(head[0]) << 8 | usize::from(head[1])
}

/// A key has many lines, and each of them alone is a part of it.
fn keep(secrets: &mut Vec<SecretString>, text: &str) {
    let lines = text.lines().map(str::trim).filter(|line| line.len() >= HEAD && !line.starts_with("-----"));
    secrets.extend(lines.map(SecretString::from));
}

fn keep_token(secrets: &mut Vec<SecretString>, token: &Token) {
    keep(secrets, token.whole().expose_secret());
    keep(secrets, token.secret().expose_secret());
}

/// Removes a terminal's colours: a colour code inside a secret would hide the secret from the search, but not from a
/// reader.
fn uncoloured(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let codes =
            part.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b'?')).count();
        let is_sequence = part.as_bytes().get(codes).is_some_and(u8::is_ascii_alphabetic);
        if is_sequence {
            out.push_str(part.get(codes + 1..).unwrap_or_default());
        } else {
            out.push_str("\u{1b}[");
            out.push_str(part);
        }
    }
    out
}

/// The lines between the marks of a private key; the rest of the file is public.
pub(crate) fn key_lines(pem: &str) -> String {
    let mut is_key = false;
    let mut lines = String::new();
    for line in pem.lines() {
        if line.starts_with("-----") {
            is_key = line.contains("BEGIN") && line.contains("PRIVATE KEY");
        } else if is_key {
            lines.push_str(line);
            lines.push('\n');
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_secret_is_masked_whole_not_by_matching_half() {
        let known = [
            "alpha1234,beta56789",
            "gamma1234 delta5678",
            "epsilon12",
            "epsilon12zeta34567",
            "eta12345theta6",
            "theta6iota789",
        ];
        let known = Known::of(known.map(SecretString::from).to_vec());
        for text in [
            "token=alpha1234,beta56789 end",
            "Authorized by Bearer alpha1234,beta56789",
            "password: gamma1234 delta5678",
            "\"token\": \"alpha1234,beta56789\"",
            "it is epsilon12zeta34567 here",
            "epsilon12epsilon12zeta34567",
            "at eta12345theta6iota789 end",
            "https://u:alpha1234,beta56789@example",
            "token=alp\u{1b}[1mha1234,beta56789",
            "größe=\"alpha1234,beta56789\"ß",
        ] {
            let text = known.clean(text);
            for part in [
                "alpha1234",
                "beta56789",
                "gamma1234",
                "delta5678",
                "epsilon12",
                "zeta34567",
                "eta12345",
                "theta6",
                "iota789",
            ] {
                assert!(!text.contains(part), "{part}: {text}");
            }
            assert!(text.contains("[masked]") && !text.contains("[masked][masked]"), "{text}");
        }
        for kept in ["10.0.0.1 alpha end", "", "epsilon", "größe \u{1b}[", "two\nlines\n"] {
            assert_eq!(known.clean(kept), kept);
        }
        assert_eq!(known.clean("größe epsilon12 ß"), "größe [masked] ß");
        assert!(!format!("{known:?}").contains("alpha"));
        assert_eq!(Known::default().clean("plain"), "plain");
    }

    /// A disk with this many bytes of one file, each line of which begins alike.
    fn disk(path: &str, bytes: usize, line: impl Fn(usize) -> String) -> (tempfile::TempDir, Known) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        std::fs::create_dir_all(root.at(path).parent().unwrap()).unwrap();
        let mut text = String::with_capacity(bytes);
        let lines = (0..).map(line);
        for line in lines.take_while(|line| !line.is_empty()) {
            if text.len() + line.len() + 1 > bytes {
                break;
            }
            text.push_str(&line);
            text.push('\n');
        }
        std::fs::write(root.at(path), text).unwrap();
        let known = Known::of_machine(&root, None, &[]);
        (folder, known)
    }

    /// Without a bound, each of the disks takes minutes to days: every secret is compared with every byte of the log.
    #[test]
    fn disk_full_of_similar_secrets_is_masked_without_delay() {
        const BYTES: usize = 4 * 1024 * 1024;
        let log = format!("{}\nfirst aaaaaaaab000007 end\nlast\n", "a".repeat(BYTES));
        let many = |number| format!("aaaaaaaab{number:06}");
        let nested = |number| "a".repeat(HEAD + number);
        let long = |number| match number {
            0 => format!("{}b", "a".repeat(BYTES - 2)),
            _ => String::new(),
        };
        for (path, line) in [
            ("/etc/reveille/token", &many as &dyn Fn(usize) -> String),
            ("/etc/rancher/node/password", &nested),
            ("/etc/rancher/k3s/reveille-token", &long),
        ] {
            let (_folder, known) = disk(path, BYTES, line);
            let text = known.clean(&log);
            assert!(!text.contains(&"a".repeat(HEAD)), "{path}: {} bytes", text.len());
            assert!(text.ends_with("last\n") && text.contains("first [masked]"), "{path}");
        }
    }

    /// Without a bound, a link to one long file costs the file's length for each name in a folder.
    #[test]
    fn long_config_is_not_read_whole_and_earlier_secrets_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let beside = "/etc/rancher/k3s/config.yaml.d";
        std::fs::create_dir_all(root.at(beside)).unwrap();
        std::fs::write(root.at("/etc/rancher/k3s/config.yaml"), "token: alpha1234 beta5678\n").unwrap();
        std::fs::write(root.at("/etc/long"), format!("# {}\n", "a".repeat(1 << 20))).unwrap();
        for number in 0..20_000 {
            std::os::unix::fs::symlink("/etc/long", root.at(format!("{beside}/{number}.yaml"))).unwrap();
        }
        let refused = AgentConfig::read(Kind::K3s, &root).unwrap_err().to_string();
        assert!(refused.contains("config.yaml.d/") && refused.contains("more than"), "{refused}");
        let known = Known::of_machine(&root, None, &[]);
        assert_eq!(known.clean("it is alpha1234 beta5678 here"), "it is [masked] here");
    }

    #[test]
    fn every_key_that_an_agent_keeps_is_known() {
        for name in ["link.pem", "enrolling.pem", "renewing.pem", "welcomed.pem", "link.pem.new"] {
            let folder = tempfile::tempdir().unwrap();
            let root = Root::new(folder.path());
            let path = root.at("/var/lib/reveille/agent/link").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let pem = "-----BEGIN PRIVATE KEY-----\nalpha1234 beta5678\n-----END PRIVATE KEY-----\n";
            std::fs::write(path, pem).unwrap();
            let known = Known::of_machine(&root, None, &[]);
            assert_eq!(known.clean("it is alpha1234 beta5678 here"), "it is [masked] here", "{name}");
        }
    }
}
