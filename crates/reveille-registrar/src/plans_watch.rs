//! The file of plans, looked at again and again while the server runs.
//!
//! ```text
//!  each look: digest of the file and of those it names ─ as before ─▶ nothing
//!                                                      └ another ─▶ read ─┬▶ other plans ─▶ told
//!                                                                         └▶ an error ─▶ told once; the plans stay
//! ```
//!
//! By content, not by the time that a file system says: a file that was put in place by a rename, mounted from a ConfigMap or
//! written twice in a second is found all the same. Reading is bounded, and nothing is kept of a file but its digest.

use std::collections::BTreeSet;
use std::path::PathBuf;

use aws_lc_rs::digest::{Context, SHA256};
use reveille_core::model::id::{PoolName, RosterName};

use crate::plans_file::{PlansError, read_with, text};
use crate::registry::Plans;

/// Looks, and remembers what it saw.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    pools: BTreeSet<(RosterName, PoolName)>,
    files: BTreeSet<PathBuf>,
    seen: Option<Vec<u8>>,
    plans: Plans,
    told: Option<String>,
}

impl Watch {
    /// One that knows the plans that were read at the start.
    pub const fn new(path: PathBuf, pools: BTreeSet<(RosterName, PoolName)>, plans: Plans) -> Self {
        Self { path, pools, files: BTreeSet::new(), seen: None, plans, told: None }
    }

    /// Plans that say something else than those before, or, once, why there are none to be had.
    pub fn look(&mut self) -> Option<Result<Plans, PlansError>> {
        let seen = fingerprint(&self.files);
        if self.seen.as_ref() == Some(&seen) {
            return None;
        }
        let mut files = BTreeSet::new();
        let read = read_with(&self.path, &self.pools, &mut files);
        // Counted before they were read: what changes in between is another content at the next look.
        self.seen = (files == self.files).then_some(seen);
        self.files = files;
        match read {
            Ok(plans) => {
                self.told = None;
                let other = self.plans != plans;
                self.plans.clone_from(&plans);
                other.then_some(Ok(plans))
            }
            Err(error) => {
                let told = format!("{error:?}");
                let news = self.told.as_ref() != Some(&told);
                self.told = Some(told);
                news.then_some(Err(error))
            }
        }
    }
}

/// What all of them hold, or why they cannot be read.
fn fingerprint(files: &BTreeSet<PathBuf>) -> Vec<u8> {
    let mut digest = Context::new(&SHA256);
    for path in files {
        let held = text(path).unwrap_or_else(|error| format!("{error:?}"));
        digest.update(&held.len().to_be_bytes());
        digest.update(held.as_bytes());
    }
    digest.finish().as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use reveille_wire::agent::Step;

    use super::*;
    use crate::plans_file::tests::plan;

    #[test]
    fn plans_are_told_when_they_change_and_a_broken_file_is_told_once_and_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (path, beside) = (directory.path().join("plans.yaml"), directory.path().join("cloud.conf"));
        let file = "  files:\n  - {path: /etc/kubernetes/c.conf, mode: \"0600\", from: cloud.conf}\n";
        std::fs::write(&path, plan("workers", file)).unwrap();
        std::fs::write(&beside, "a").unwrap();
        let mut watch =
            Watch::new(path.clone(), BTreeSet::from([("prod".into(), "workers".into())]), Plans::default());
        let content = |plans: Plans| match &plans.0.values().next().unwrap().files[0] {
            Step::WriteFile { content, .. } => content.as_str().to_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(watch.look().map(|read| content(read.unwrap())), Some("a".to_owned()));
        assert!(watch.look().is_none(), "nothing changed");
        std::fs::write(&beside, "b").unwrap();
        assert_eq!(watch.look().map(|read| content(read.unwrap())), Some("b".to_owned()), "a file beside it");
        std::fs::write(&path, "plans: [\n").unwrap();
        let error = watch.look().unwrap().unwrap_err().to_string();
        assert!(error.contains("plans.yaml"), "{error}");
        assert!(watch.look().is_none(), "it is told once");
        std::fs::write(&path, plan("workers", file)).unwrap();
        assert!(watch.look().is_none(), "it says again what it said before");
        std::fs::remove_file(&beside).unwrap();
        assert!(watch.look().unwrap().is_err());
        std::fs::write(&beside, "c").unwrap();
        assert_eq!(watch.look().map(|read| content(read.unwrap())), Some("c".to_owned()));
    }
}
