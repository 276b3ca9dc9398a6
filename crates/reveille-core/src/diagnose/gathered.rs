//! Evidence that was read on purpose before anything is done, and what is known of it by now.
//!
//! What a machine says of itself arrives judged (see [`crate::model::log_findings`]) and is kept so: its machine is weighed
//! again with every reading of the world. Of the text itself only the last lines are kept, for a machine of which nothing else
//! is known, and more of them where a pool keeps its failed machines: who comes to look finds them in the incident.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::effect::Look;
use crate::model::before::ActionMark;
use crate::model::evidence::Evidence;
use crate::model::id::{CloudName, IntentId, NodeName, RequestId};
use crate::model::incident::FaultKind;
use crate::model::instance::{InstanceAction, InstanceState};
use crate::model::log_evidence::EvidenceQuery;
use crate::model::log_findings::LogFindings;
use crate::model::time::{ServiceTime, Time};
use crate::observe::cloud::Seen;

use super::console;

/// Evidence that was asked for before anything was done.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// When it was last asked for.
    pub asked_at: Option<Time>,
    /// Reads of the last round that are not answered. An answer to one of an earlier round is none of them: a machine was renamed
    /// between two, two answers of the same kind came, and it was to be deleted although its log of actions was not read.
    pub outstanding: Vec<Look>,
    /// What the machine says of itself, or why that read failed.
    pub log_findings: Option<Result<Arc<LogFindings>, Arc<str>>>,
    /// The last lines of the console, where failed machines are kept for a look.
    pub last_words: Option<Arc<str>>,
    /// The newest entry of the action log: what was done last, by whom.
    pub last_action: Option<Arc<str>>,
    /// The newest reboot or launch that the cloud shows, to tell afterwards whether another happened.
    pub newest_reboot: Option<ActionMark>,
    /// When others last did something after which a machine boots, by the cloud's own clock (see [`handled`]).
    pub handled: Option<ServiceTime>,
    /// When the newest of these actions began by that clock that is ours.
    pub own_boot: Option<ServiceTime>,
    /// The request by which the cloud seems to log this reboot of ours, where no answer told it.
    pub own_request: Option<(IntentId, RequestId)>,
    /// When it was last launched by that clock, where the cloud tells that and not by whom (EC2).
    pub launched: Option<ServiceTime>,
    /// What the cloud showed before a reboot that was not confirmed: should another show now, that reboot came late.
    pub unconfirmed: Option<ActionMark>,
    /// Its log names a deletion that no list has shown, and it was asked for itself and has not answered.
    pub unread_deletion: bool,
    /// A read of this round failed.
    pub missed: bool,
    /// Rounds in a row in which a read failed: not knowing is not evidence.
    pub failures: u32,
}

/// What words can explain: that a machine did not join, does not come back, or is not Ready.
const fn is_heard(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::NeverJoined | FaultKind::Vanished | FaultKind::NotReady)
}

/// Whether the machine's console tells its problem. It does where the machine never joined. It also does where the machine
/// counts as joined for its name alone, and may be another machine of that name. The console of any other machine may print
/// much about problems that it survived.
pub fn console_counts(kind: FaultKind, seen: &Seen) -> bool {
    kind == FaultKind::NeverJoined || (kind == FaultKind::Vanished && seen.joined.is_none())
}

/// The read that explains a machine with this fault by words; none while it has no guest.
pub fn evidence_query(kind: FaultKind, cloud: &CloudName, seen: &Seen) -> Option<Look> {
    let instance = &seen.instance;
    if instance.state == InstanceState::Building {
        return None;
    }
    if !is_heard(kind) {
        return Some(Look::Console(cloud.clone(), instance.id.clone()));
    }
    let node = seen.nodes.first().or(seen.joined.as_ref()).cloned();
    let asks_as = node.clone().unwrap_or_else(|| NodeName::new(instance.name.as_str().to_lowercase()));
    let evidence_query = EvidenceQuery { node, asks_as, console_counts: console_counts(kind, seen) };
    Some(Look::LogEvidence(cloud.clone(), instance.id.clone(), Arc::new(evidence_query)))
}

/// Actions after which a machine boots, or goes on where it stood, and has to come back. Also actions that take it off for
/// a while and, where they fail, leave it in ERROR or running as before (nova/compute/instance_actions.py). Not `create`
/// and `delete`: no client is at work on what they leave in ERROR. And not `attach_volume` and the like: the storage driver
/// of a cluster tries those again and again, and would hold a repair for ever.
const HANDLES: [&str; 20] = [
    "reboot",
    "trigger_crash_dump",
    "start",
    "stop",
    "rescue",
    "unrescue",
    "rebuild",
    "resize",
    "revertResize",
    "migrate",
    "live-migration",
    "evacuate",
    "shelve",
    "shelveOffload",
    "unshelve",
    "suspend",
    "resume",
    "pause",
    "unpause",
    "restore",
];

/// When the newest of these actions began that are not `ours`, and the newest of those that are: the cloud took our requests and
/// logs them under the same ids. One of ours that was never answered boots the machine like any other, and counts as such: two
/// reboots that were never made hid a person's.
pub fn handled(actions: &[InstanceAction], ours: &BTreeSet<RequestId>) -> [Option<ServiceTime>; 2] {
    let newest = |own: bool| {
        let of = |it: &&InstanceAction| HANDLES.contains(&&*it.action) && ours.contains(&it.request) == own;
        actions.iter().filter(of).filter_map(|it| ServiceTime::parse(&it.started)).max()
    };
    [newest(false), newest(true)]
}

/// When the cloud last launched it, where it tells that in place of a log.
pub fn launched(actions: &[InstanceAction]) -> Option<ServiceTime> {
    ServiceTime::parse(&actions.iter().find(|it| &*it.action == "launch")?.started)
}

impl Gathered {
    /// Asked for, and all of it answered.
    pub const fn is_complete(&self) -> bool {
        self.asked_at.is_some() && self.outstanding.is_empty()
    }

    /// Findings arrived. They are dropped for a machine that the cloud does not let run: the engine asks for none there. Of
    /// the console only the lines that are quoted are kept: the consoles of ten thousand machines that are not Ready would
    /// fill 640 MB.
    pub fn take_log_findings(&mut self, kind: FaultKind, log_findings: &LogFindings) {
        self.log_findings = is_heard(kind).then(|| {
            let console = log_findings.console.as_ref().map(|text| console::as_quoted(text));
            Ok(Arc::new(LogFindings { console: console.map_err(Arc::clone), ..log_findings.clone() }))
        });
    }

    /// The end of a console that may be quoted whole, as far as a quote is long.
    pub fn take_last_words(&mut self, text: &str) {
        self.last_words = console::last_lines(text, Evidence::TEXT_BYTES_MAX);
    }
}
