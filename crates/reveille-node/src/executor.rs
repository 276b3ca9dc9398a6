//! Does what the agent decides to its machine: one verb at a time, deed by deed, each with its own deadline.
//!
//! A deed that fails ends the verb, and temporary files are removed all the same. The error contains the last line of the
//! program; the lines before it were passed on one by one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reveille_agent::effect::Verb;
use secrecy::ExposeSecret as _;
use thiserror::Error;
use tokio::sync::{Mutex, mpsc};

use crate::distribution::{Deed, Order};
use crate::durable::replace;
use crate::inspect::Inspector;
use crate::pem;
use crate::program::{self, ProgramError};
use crate::root::Root;
use crate::target::{TargetError, Token};

/// The time limit for restarting a unit.
const UNIT_WITHIN: Duration = Duration::from_secs(50);
/// The number of resets whose copies are kept.
const COPIES_KEPT: usize = 3;

/// The source of a new bootstrap token. The verb `RequestToken` asks it, and the verbs after it use the token.
pub trait Tokens: Send + Sync {
    /// A token to join with.
    fn token(&self) -> impl Future<Output = Result<Token, TokenError>> + Send;
}

/// Why there is no token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// No token was given.
    #[error("no bootstrap token was given; give one with --token-file, or in a configuration")]
    None,
    /// The given text is not a token.
    #[error(transparent)]
    Unreadable(#[from] TargetError),
    /// No usable token could be had: the reason.
    #[error("no bootstrap token was to be had: {0}")]
    Refused(String),
}

/// Why a verb was not carried out.
#[derive(Debug, Error)]
pub enum DeedError {
    /// A program failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A file could not be written, copied or removed.
    #[error("cannot {what} {}: {source}", .path.display())]
    File {
        /// The operation that failed.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// There is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The cluster's CA is not known.
    #[error("the cluster's authority could not be learned: {0}")]
    Authority(String),
    /// Marks of a control plane appeared after the decision.
    #[error(
        "a control plane, or a member of etcd, is on this machine, or a configuration that may name one cannot be read: nothing of it is taken away"
    )]
    ControlPlane,
    /// Another join began after the decision.
    #[error("another join or reset is under way on this machine: nothing is done beside it")]
    JoinUnderWay,
    /// This process does not reboot machines.
    #[error("this agent does not reboot its machine")]
    NoReboot,
}

/// An operator's settings for joins.
#[derive(Clone, Debug, Default)]
pub struct JoinSettings {
    /// The distribution's own configuration, as text.
    pub config: Option<String>,
    /// Preflight checks of the distribution to ignore.
    pub ignored_checks: Vec<String>,
    /// The folder of the copies before a reset.
    pub copies: PathBuf,
    /// The program that starts and stops units; `systemctl` on the path where none is named.
    pub systemctl: Option<PathBuf>,
}

/// The executor.
#[derive(Debug)]
pub struct Executor<T> {
    inspector: Arc<Inspector>,
    tokens: T,
    settings: JoinSettings,
    token: Mutex<Option<Token>>,
}

impl<T: Tokens> Executor<T> {
    /// An executor on this machine.
    pub fn new(inspector: Arc<Inspector>, tokens: T, settings: JoinSettings) -> Self {
        Self { inspector, tokens, settings, token: Mutex::new(None) }
    }

    /// Carries a verb out.
    ///
    /// # Errors
    ///
    /// The first deed that failed.
    pub async fn act(&self, verb: Verb, said: &mpsc::Sender<String>) -> Result<(), DeedError> {
        let distribution = self.inspector.distribution();
        // The machine was last read some seconds ago, and the agent runs no program yet.
        if matches!(verb, Verb::Bootstrap | Verb::Reset | Verb::Join) && self.inspector.is_joining() {
            return Err(DeedError::JoinUnderWay);
        }
        let deeds = match verb {
            Verb::RequestToken => {
                let token = self.tokens.token().await?;
                // Nothing is removed for an invalid token, and kubeadm would wait five minutes for it.
                self.inspector.try_token(&token).await.map_err(TokenError::Refused)?;
                self.inspector.take_token(token.clone()).await;
                *self.token.lock().await = Some(token);
                return Ok(());
            }
            Verb::RestartKubelet => distribution.restart(),
            // The decision was made when there was no control plane; a reset cannot be undone.
            Verb::Reset if self.inspector.leads() => return Err(DeedError::ControlPlane),
            Verb::Reset => distribution.reset(self.inspector.target()),
            Verb::Bootstrap | Verb::Join => {
                let token = self.token.lock().await.clone().ok_or(TokenError::None)?;
                let known = self.inspector.authorities().await;
                let known = known.map_err(|failure| DeedError::Authority(failure.to_string()))?;
                let order = Order {
                    target: self.inspector.target(),
                    node_name: self.inspector.node_name(),
                    token: &token,
                    authorities_pem: &pem::certificates(&known.authorities),
                    bundle: known.bundle,
                    config: self.settings.config.as_deref(),
                    ignored_checks: &self.settings.ignored_checks,
                };
                if verb == Verb::Join { distribution.join(&order) } else { distribution.bootstrap(&order) }
            }
            Verb::RebootByWatchdog | Verb::RebootBySystem => return Err(DeedError::NoReboot),
        };
        self.perform(&deeds, said).await
    }

    async fn perform(&self, deeds: &[Deed], said: &mpsc::Sender<String>) -> Result<(), DeedError> {
        let _fleeting = Fleeting::of(deeds, self.inspector.root());
        let mut result = Ok(());
        for deed in deeds {
            let clears = matches!(deed, Deed::Remove(_));
            if result.is_ok() || clears {
                let done = self.do_one(deed, said).await;
                result = result.and(done);
            }
        }
        result
    }

    async fn do_one(&self, deed: &Deed, said: &mpsc::Sender<String>) -> Result<(), DeedError> {
        let root = self.inspector.root();
        match deed {
            Deed::Write { path, content } => {
                let path = root.at(path);
                replace(&path, content.expose_secret().as_bytes()).map_err(|source| DeedError::File {
                    what: "write",
                    path,
                    source,
                })
            }
            Deed::Remove(path) => {
                let path = root.at(path);
                match fs::remove_file(&path) {
                    Err(source) if source.kind() != io::ErrorKind::NotFound => {
                        Err(DeedError::File { what: "remove", path, source })
                    }
                    _ => Ok(()),
                }
            }
            Deed::Keep(paths) => keep(root, paths, &self.settings.copies),
            Deed::Run { program, arguments, within } => {
                program::run(program, arguments, *within, said).await?;
                Ok(())
            }
            Deed::Unit(verb, unit) => {
                let words = verb.words().iter().chain(std::iter::once(unit));
                let arguments: Vec<String> = words.map(|word| (*word).to_owned()).collect();
                let asked = self.settings.systemctl.as_ref().map(|path| path.to_string_lossy());
                program::run(asked.as_deref().unwrap_or("systemctl"), &arguments, UNIT_WITHIN, said).await?;
                Ok(())
            }
        }
    }
}

/// Files that the same deeds write and remove, one with a token among them: they are removed also when the caller does
/// not wait for the deeds any more.
struct Fleeting(Vec<PathBuf>);

impl Fleeting {
    fn of(deeds: &[Deed], root: &Root) -> Self {
        let is_removed =
            |path: &String| deeds.iter().any(|deed| matches!(deed, Deed::Remove(other) if other == path));
        let written = deeds.iter().filter_map(|deed| match deed {
            Deed::Write { path, .. } if is_removed(path) => Some(root.at(path)),
            _ => None,
        });
        Self(written.collect())
    }
}

impl Drop for Fleeting {
    fn drop(&mut self) {
        for path in &self.0 {
            // Where the deeds ran to their end, the file is gone already.
            fs::remove_file(path).ok();
        }
    }
}

/// Copies what a reset removes, into a numbered folder; deletes the oldest copies.
fn keep(root: &Root, paths: &[String], copies: &Path) -> Result<(), DeedError> {
    let failed = |what, path: &Path| {
        let path = path.to_owned();
        move |source| DeedError::File { what, path, source }
    };
    let mut numbers: Vec<u64> = match fs::read_dir(copies) {
        Ok(entries) => {
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        }
        Err(_) => Vec::new(),
    };
    numbers.sort_unstable();
    let folder = copies.join(numbers.last().map_or(1, |last| last + 1).to_string());
    for path in paths {
        copy(root, Path::new(path), &folder)?;
    }
    let extra = (numbers.len() + 1).saturating_sub(COPIES_KEPT);
    for number in &numbers[..extra.min(numbers.len())] {
        let old = copies.join(number.to_string());
        fs::remove_dir_all(&old).map_err(failed("remove", &old))?;
    }
    Ok(())
}

fn copy(root: &Root, path: &Path, to: &Path) -> Result<(), DeedError> {
    let failed = |source| DeedError::File { what: "keep a copy of", path: path.to_owned(), source };
    if root.folder(path).map_err(failed)?.is_some() {
        for name in root.names(path).map_err(failed)?.unwrap_or_default() {
            copy(root, &path.join(name), to)?;
        }
        return Ok(());
    }
    let Some(bytes) = root.bytes(path).map_err(failed)? else { return Ok(()) };
    replace(&to.join(path.strip_prefix("/").unwrap_or(path)), &bytes).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_file_is_removed_on_drop_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        for path in ["/run/token", "/etc/kept", "/etc/earlier"] {
            replace(&root.at(path), b"x").unwrap();
        }
        let write = |path: &str| Deed::Write { path: path.to_owned(), content: "x".into() };
        let remove = |path: &str| Deed::Remove(path.to_owned());
        let deeds = [write("/run/token"), write("/etc/kept"), remove("/run/token"), remove("/etc/earlier")];
        drop(Fleeting::of(&deeds, &root));
        let is_there = |path: &str| root.has(path);
        assert_eq!(["/run/token", "/etc/kept", "/etc/earlier"].map(is_there), [false, true, true]);
    }
}
