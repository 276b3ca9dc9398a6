//! What is written without end in a roster's cluster, seen all the time that `run` runs.
//!
//! ```text
//!  spec.hot ─▶ look without end ─▶ Standing (what is hot now) ─┐
//!  the watch of nodes, that is there anyway ───────────────────┴▶ a line in the log, roll, why
//! ```
//!
//! It stands beside the engine's loop and has no say in it: a look that fails is begun anew, ever later, and the worst that a
//! broken one costs is that nothing is told. Nothing is written, and nothing is remembered when the process ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reveille_core::model::id::RosterName;
use reveille_hot::verdict::Subject;
use reveille_hot::{Resource, Settings, Verdict};
use reveille_kube::Cluster;
use reveille_wire::report::{HotVerdict, MachineReport, Report};
use reveille_wire::roster::HotRef;
use tokio::sync::watch;

use super::look::{Begin, Listener, Look};
use crate::view::hot as view;

/// Between two readings of the counts: a big API server's are megabytes.
const COUNTS_EVERY: Duration = Duration::from_secs(120);
/// A look that could not begin is tried again after this, then after twice as long, …
const AGAIN_MIN: Duration = Duration::from_secs(10);
/// … and never later than this.
const AGAIN_MAX: Duration = Duration::from_secs(300);
/// Verdicts that a report carries.
const REPORTED_MAX: usize = 20;

/// What is hot in one cluster now.
#[derive(Clone)]
pub(crate) struct Standing {
    cluster: Cluster,
    seen: Arc<Mutex<BTreeMap<Subject, Verdict>>>,
}

impl Standing {
    /// Of a cluster whose nodes are watched.
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self { cluster, seen: Arc::default() }
    }

    /// Writes into a report what it is about.
    pub(crate) fn fill(&self, report: &mut Report) {
        match report {
            Report::RollReport(roll) => {
                roll.hot = self.verdicts();
                roll.hot.truncate(REPORTED_MAX);
            }
            Report::WhyReport(why) => {
                why.hot = self.verdicts();
                why.hot.retain(|verdict| is_about(verdict, &why.machine));
            }
            _ => {}
        }
    }

    /// Hottest first.
    fn verdicts(&self) -> Vec<HotVerdict> {
        let mut all: BTreeMap<Subject, Verdict> = BTreeMap::new();
        for verdict in self.cluster.hot_nodes() {
            all.insert(verdict.subject.clone(), verdict);
        }
        // What a look of its own saw of a node is more than what the watch of nodes tells.
        all.extend(self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let mut all: Vec<Verdict> = all.into_values().collect();
        all.sort_by_key(|verdict| {
            std::cmp::Reverse(verdict.rates.first().and_then(|rate| rate.per_1000_s()))
        });
        all.iter().map(view::verdict).collect()
    }
}

/// The Node itself, or a record of it.
fn is_about(verdict: &HotVerdict, machine: &MachineReport) -> bool {
    let Some(node) = &machine.node else { return false };
    let is_node =
        verdict.group.is_empty() && verdict.resource == "nodes" && verdict.name.as_ref() == Some(node);
    let is_record = verdict.machine.as_ref().is_some_and(|machine| machine.node.as_ref() == Some(node));
    is_node || is_record
}

/// Hears what a look tells, keeps it, and says it in the log.
struct Keeper {
    roster: RosterName,
    seen: Arc<Mutex<BTreeMap<Subject, Verdict>>>,
}

impl Keeper {
    fn change(&self, change: impl FnOnce(&mut BTreeMap<Subject, Verdict>)) {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Listener for Keeper {
    fn hot(&mut self, verdict: &Verdict, is_new: bool) {
        if is_new {
            let rate = verdict.rates.first().map(ToString::to_string).unwrap_or_default();
            let names: Vec<&str> = verdict.suspects.iter().map(|suspect| suspect.name.as_str()).collect();
            let by = if names.is_empty() { "nobody named".to_owned() } else { names.join(", ") };
            tracing::warn!(
                roster = self.roster.as_str(),
                "cluster: {} is hot: {rate}; {}; suspected: {by}. More: reveille hot",
                verdict.subject,
                verdict.class.name
            );
        }
        self.change(|seen| drop(seen.insert(verdict.subject.clone(), verdict.clone())));
    }

    fn cool(&mut self, subject: &Subject) {
        tracing::info!(roster = self.roster.as_str(), "cluster: {subject} is hot no more");
        self.change(|seen| drop(seen.remove(subject)));
    }

    fn untold(&mut self, kind: &Resource, why: &str) {
        tracing::warn!(
            roster = self.roster.as_str(),
            "cluster: writes of {kind} are not counted: {why}. reveille rbac --hot prints the rights"
        );
    }
}

/// Looks until it is told to stop.
pub(crate) async fn keep(
    standing: Standing,
    wanted: HotRef,
    roster: RosterName,
    mut stopped: watch::Receiver<bool>,
) {
    let mut again = AGAIN_MIN;
    let mut keeper = Keeper { roster, seen: standing.seen };
    while !*stopped.borrow() {
        let opened = Look::open(standing.cluster.clone(), begin(&wanted), &mut keeper).await;
        match opened {
            Ok(look) if look.kinds() > 0 => {
                // Nobody left to tell is as good as being told.
                let stop = async { drop(stopped.wait_for(|stop| *stop).await) };
                look.run(stop).await;
                return;
            }
            Ok(_) => tracing::warn!(
                roster = keeper.roster.as_str(),
                "cluster: it has none of the kinds of spec.hot; looks again in {} s",
                again.as_secs()
            ),
            Err(failure) => tracing::warn!(
                roster = keeper.roster.as_str(),
                "cluster: hot objects are not looked for: {failure}; tries again in {} s",
                again.as_secs()
            ),
        }
        // The time is over, or it is told to stop: either way the loop sees which.
        drop(tokio::time::timeout(again, stopped.wait_for(|stop| *stop)).await);
        again = (again * 2).min(AGAIN_MAX);
    }
}

fn begin(wanted: &HotRef) -> Begin {
    let usual = Settings::default();
    Begin {
        settings: Settings {
            sustained: wanted.sustained_per_1000_s.unwrap_or(usual.sustained),
            at_once: wanted.at_once_per_1000_s.unwrap_or(usual.at_once),
            ..usual
        },
        kinds: wanted.kinds.clone(),
        leaves_out_unknown: true,
        lasts: None,
        is_short: false,
        counts_every: COUNTS_EVERY,
    }
}

#[cfg(test)]
mod tests {
    use reveille_wire::report::Answers;
    use serde_json::json;

    use super::*;
    use crate::render;

    #[test]
    fn a_verdict_is_about_a_machine_by_its_node_or_by_the_record_of_it() {
        let machine = MachineReport {
            name: "i-1".to_owned(),
            key: "k".to_owned(),
            pool: None,
            zone: None,
            answers: Answers::Yes,
            stage: None,
            state: "ready".to_owned(),
            since: None,
            what: String::new(),
            node: Some("w-1".to_owned()),
            instance: None,
            cloud: None,
        };
        let table = [
            (json!({"group": "", "resource": "nodes", "name": "w-1"}), true),
            (json!({"group": "", "resource": "nodes", "name": "w-10"}), false),
            (json!({"group": "", "resource": "pods", "name": "w-1"}), false),
            (
                json!({"group": "management.cattle.io", "resource": "nodes", "name": "m-1", "machine": {"node": "w-1", "addresses": []}}),
                true,
            ),
            (json!({"group": "management.cattle.io", "resource": "nodes", "name": "w-1"}), false),
        ];
        for (mut verdict, expected) in table {
            let rest = json!({"heat": "hot", "since": "2026-01-01T00:00:00Z", "rates": [], "class": "unseen", "means": "",
                "suspects": [], "fields": [], "notes": [], "firstAid": []});
            verdict.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            let verdict: HotVerdict = serde_json::from_value(verdict).unwrap();
            assert_eq!(is_about(&verdict, &machine), expected, "{}", render::hot::line(&verdict));
        }
    }
}
