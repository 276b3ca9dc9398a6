//! The plans file, read at the start and checked again while the server runs.
//!
//! ```text
//!  start: read ─┬▶ plans of some pools, and what is wrong with those of others, whose machines wait
//!               └▶ no file of plans: an error
//!  each look: digest of the file and of those it names ─ as before ─▶ nothing
//!                                                      └ another ─▶ read ─┬▶ other plans ─▶ told
//!                                                                         └▶ an error ─▶ told once; the plans stay
//! ```
//!
//! The watch compares content, not modification times. So it also finds a file that a rename put in place, that is
//! mounted from a ConfigMap, or that was written twice in a second. Reads are bounded, and the watch keeps only a digest
//! of each file.
//!
//! At the start there are no earlier plans that could stay. A plan that an earlier version accepted and this version
//! refuses must not stop a controller: its pool has no plan, and the other pools have theirs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use aws_lc_rs::digest::{Context, SHA256};
use reveille_core::model::id::{PoolName, RosterName};

use crate::plans_file::{Outcome, PlansError, read_into, text};
use crate::registry::Plans;

/// Checks the files, and remembers their content.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    pools: BTreeSet<(RosterName, PoolName)>,
    files: BTreeSet<PathBuf>,
    seen: Option<Vec<u8>>,
    plans: Plans,
    /// The content whose error was reported, and the error.
    told: Option<(Vec<u8>, String)>,
}

impl Watch {
    /// Reads the file. The errors of plans that cannot be followed are returned too; the pools of these plans have none.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not a plans file, or names a pool that does not exist or is ambiguous.
    pub fn begin(
        path: PathBuf,
        pools: BTreeSet<(RosterName, PoolName)>,
    ) -> Result<(Self, Vec<PlansError>), PlansError> {
        let mut read = Outcome::default();
        read_into(&path, &pools, &mut read)?;
        let told = read.refused.first().map(|error| telling(&read.files, error));
        let own = Self { path, pools, files: BTreeSet::new(), seen: None, plans: read.plans, told };
        Ok((own, read.refused))
    }

    /// The plans in force.
    pub const fn plans(&self) -> &Plans {
        &self.plans
    }

    /// Returns plans that differ from those before, or, once, the error why there are none.
    pub fn look(&mut self) -> Option<Result<Plans, PlansError>> {
        let seen = fingerprint(&self.files);
        if self.seen.as_ref() == Some(&seen) {
            return None;
        }
        let mut read = Outcome::default();
        let whole = read_into(&self.path, &self.pools, &mut read);
        let Outcome { plans, refused, files } = read;
        // The digest is taken before the read: a change in between is found at the next check.
        self.seen = (files == self.files).then_some(seen);
        self.files = files;
        match whole.err().or_else(|| refused.into_iter().next()) {
            None => {
                self.told = None;
                let other = self.plans != plans;
                self.plans.clone_from(&plans);
                other.then_some(Ok(plans))
            }
            Some(error) => {
                let told = telling(&self.files, &error);
                let news = self.told.as_ref() != Some(&told);
                self.told = Some(told);
                news.then_some(Err(error))
            }
        }
    }
}

/// The report also compares content: an operator who repaired another plan than the one with the error learns that the
/// error remains.
fn telling(files: &BTreeSet<PathBuf>, error: &PlansError) -> (Vec<u8>, String) {
    (fingerprint(files), format!("{error:?}"))
}

/// The digest of all files' contents, or of the errors of reading them.
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
    fn changed_plans_are_told_and_broken_file_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let (path, beside) = (directory.path().join("plans.yaml"), directory.path().join("cloud.conf"));
        let file = "  files:\n  - {path: /etc/kubernetes/cloud/c.conf, mode: \"0600\", from: cloud.conf}\n";
        std::fs::write(&path, plan("workers", file)).unwrap();
        std::fs::write(&beside, "a").unwrap();
        let pools = BTreeSet::from([("prod".into(), "workers".into())]);
        let (mut watch, refused) = Watch::begin(path.clone(), pools).unwrap();
        assert!(refused.is_empty());
        let content = |plans: Plans| match &plans.0.values().next().unwrap().files[0] {
            Step::WriteFile { content, .. } => content.as_str().to_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(content(watch.plans().clone()), "a");
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

    #[test]
    fn invalid_plan_at_start_blocks_only_its_own_pool() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plans.yaml");
        let pools = || ["gpu", "workers"].map(|pool| ("prod".into(), pool.into())).into();
        let file = |setting: &str| {
            format!(
                "  files:\n  - {{path: /etc/sysctl.d/a.conf, mode: \"0600\", content: \"{setting}=1\\n\"}}\n"
            )
        };
        let write = |gpu: &str, workers: &str| {
            let rest = plan("workers", &file(workers)).replace("plans:\n", "");
            std::fs::write(&path, plan("gpu", &file(gpu)) + &rest).unwrap();
        };
        let of = |plans: &Plans| plans.0.keys().map(|(_, pool)| pool.to_string()).collect::<Vec<_>>();
        // A plan that an earlier version accepted.
        write("net/../kernel/core_pattern", "vm.swappiness");
        let (mut watch, refused) = Watch::begin(path.clone(), pools()).unwrap();
        assert_eq!(of(watch.plans()), ["workers"]);
        let told: Vec<String> = refused.iter().map(ToString::to_string).collect();
        assert!(matches!(&told[..], [one] if one.contains("pool gpu") && one.contains("/../")), "{told:?}");
        assert!(watch.look().is_none() && watch.look().is_none(), "it was told at the start");
        write("net/../kernel/core_pattern", "vm.overcommit_memory");
        assert!(watch.look().unwrap().is_err(), "another plan was changed, and that does not count yet");
        assert!(watch.look().is_none());
        write("net.ipv4.ip_forward", "vm.swappiness");
        assert_eq!(of(&watch.look().unwrap().unwrap()), ["gpu", "workers"]);
        for text in ["plans: [\n".to_owned(), plan("none", ""), plan("gpu", "  run: sh\n")] {
            std::fs::write(&path, text).unwrap();
            assert!(
                Watch::begin(path.clone(), pools()).is_err(),
                "what is no file of these pools is refused whole"
            );
        }
        std::fs::remove_file(&path).unwrap();
        assert!(Watch::begin(path.clone(), pools()).is_err());
    }
}
