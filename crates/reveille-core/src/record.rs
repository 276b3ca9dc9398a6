//! What the ledger keeps: the engine's memory, one closed list.
//!
//! Records are facts in the past tense. A replay in order (`engine::restore`) gives back everything that a restart must not
//! forget: which machines had joined, which have a problem since when, what was decided and how it ended. A healthy fleet
//! adds no records. `reveille-wire` and `reveille-record` define the bytes on disk.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::PauseScope;
use crate::model::agent::AgentBlocker;
use crate::model::attempt::{Attempt, Why};
use crate::model::before::{ActionMark, Before};
use crate::model::call::Call;
use crate::model::id::{
    AgentId, ClusterUid, Fence, IncidentId, InstanceId, IntentId, NodeName, PoolName, ZoneName,
};
use crate::model::incident::{FaultKind, Finding, IncidentKey, MachineKey};
use crate::model::outcome::Outcome;
use crate::model::time::Time;
use crate::model::trace::Trace;

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Record {
    /// A process took the ledger.
    Started {
        /// When.
        at: Time,
        /// Its fencing number; higher than all before.
        fence: Fence,
    },
    /// This ledger is about this cluster.
    Cluster {
        /// When that was known, or confirmed by a person.
        at: Time,
        /// Which.
        cluster: ClusterUid,
    },
    /// These machines were seen with their node: they have joined once, for good. Those that were Ready; of one that was not yet,
    /// [`Record::Born`] follows, and this once more when it is.
    Joined {
        /// When.
        at: Time,
        /// Who.
        machines: Vec<Joined>,
    },
    /// This machine appeared while we watched, and its Node has not been Ready yet: its whole history is known, also after a
    /// restart.
    Born {
        /// When.
        at: Time,
        /// Who.
        machine: MachineKey,
    },
    /// A machine's Node was cordoned, or carries another sign that would make its deletion one on purpose, or neither any more.
    /// Should the Node go while no process runs, its machine is not expected back. Or a person locked the machine, or unlocked
    /// it, or set it apart from its pool. Where that, a lock or a pause ends while no process runs, the machine may boot still.
    Cordoned {
        /// When.
        at: Time,
        /// Who.
        machine: MachineKey,
        /// Whether it is, and carries no other sign.
        cordoned: bool,
        /// The other sign: a pause, a wish to keep it, the key of the program that takes it away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sign: Option<Arc<str>>,
        /// It carries a pause beside that sign, which is another one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        paused: bool,
        /// The machine is locked in its cloud.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        locked: bool,
        /// The machine is set apart from its pool: the pool's mark is off, or its group lets it stand by.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        apart: bool,
        /// The group of its cloud that keeps it, or kept it until a person took it out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<Arc<str>>,
        /// Names by which people paused it with a command, also those that it has lost since.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        named: Vec<Arc<str>>,
        /// Its Node was seen to go with no sign on it, and no incident says so: the machine is in ERROR, or stopped. Should no
        /// process run then, the Node did not go meanwhile.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        gone: bool,
        /// Since when the machine is missing from its cloud's list, and it is open what became of it. `None`: it is listed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing_since: Option<Time>,
    },
    /// A machine's node left on purpose (drained, scaled down): it is not expected back.
    Left {
        /// When.
        at: Time,
        /// Who.
        machine: MachineKey,
        /// By which sign.
        why: Arc<str>,
    },
    /// Others took a machine of these pools away: the pools are left alone for a while.
    OthersActed {
        /// When that was noticed.
        at: Time,
        /// Where. More than one where it could not be told of which it was.
        pools: Vec<PoolName>,
        /// Until when nothing is done beside them.
        until: Time,
        /// Who did what, for people.
        what: Arc<str>,
        /// They rolled the pools: another image or version turned up there.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        rollout: bool,
        /// Whether they did is not known: the pool had two versions when a process began, and one may be years old.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        guessed: bool,
        /// Since when others have been at work there without a break. `None`: since `at`, or since an earlier record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Time>,
        /// Of a pool that was rolled: images that the next process knows of it, and finds nothing new in.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Arc<str>>,
        /// The same of versions.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        versions: Vec<Arc<str>>,
    },
    /// The Nodes of these machines went together, and their API server denied each by name: nothing is done to them before they
    /// have a Node again, which is told by [`Record::Joined`].
    LostTogether {
        /// When that was believed.
        at: Time,
        /// Who.
        machines: Vec<MachineKey>,
    },
    /// These instances are gone for good; nothing about them needs to be kept.
    Forgotten {
        /// When.
        at: Time,
        /// Who.
        machines: Vec<MachineKey>,
    },
    /// These are out of sight, and no newcomers if they come back, as a checkpoint of a rotated ledger keeps it.
    Departed {
        /// When.
        at: Time,
        /// Who.
        machines: Vec<MachineKey>,
        /// They are there, and an operator took their marks off: they did not go.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        disowned: bool,
    },
    /// This machine joined for the first time while something was counted against its pool, or a replacement there waited for its
    /// successor. Answers it for its dwell, that is over, or proved.
    Arrived {
        /// When.
        at: Time,
        /// Of which pool.
        pool: PoolName,
        /// Who.
        machine: MachineKey,
        /// The newest repair of then: it is the successor of none that began later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<IntentId>,
        /// Replacements there whose machine was in sight still: it is the successor of none of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        beside: Vec<IntentId>,
    },
    /// A newcomer of this pool answers after its dwell: what was counted against the pool is over.
    FaultsForgiven {
        /// When.
        at: Time,
        /// Which.
        pool: PoolName,
    },
    /// A pause began or is over, one of the roster as well; or a person unlocked the machine of that id. What they had to
    /// themselves may boot still when it is over, also where that was while no process ran.
    Paused {
        /// When.
        at: Time,
        /// What it covers.
        scope: PauseScope,
        /// It is over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        over: bool,
    },
    /// These were forgotten, or out of sight, and are in sight again: what is known of them holds as before. They may boot still.
    Returned {
        /// When.
        at: Time,
        /// Who.
        machines: Vec<MachineKey>,
    },
    /// How far a machine with a problem came, from both sides, and what its agent said of it last.
    Traced {
        /// When.
        at: Time,
        /// Which.
        machine: MachineKey,
        /// Its stages.
        trace: Trace,
        /// Its agent, where it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        told: Option<AgentTold>,
    },
    /// A fault was seen for the first time.
    Opened {
        /// When: the first sight.
        at: Time,
        /// Its number.
        incident: IncidentId,
        /// About what, and what.
        key: IncidentKey,
        /// Charged to.
        #[serde(skip_serializing_if = "Option::is_none")]
        pool: Option<PoolName>,
        /// The subject's name for people.
        label: Arc<str>,
        /// Since when its machine had been seen to serve before that. `None` where it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        served_since: Option<Time>,
        /// Since when its machine had been away, where an earlier incident of that machine tells. `None`: since `at`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        away_since: Option<Time>,
        /// When by a clock that stood still while nothing was watched, as a checkpoint keeps it. `None`: at `at`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        watched_from: Option<Time>,
        /// When a process began first while this was open, as a checkpoint of a rotated ledger keeps it: the records of those
        /// starts are gone. `None`: none did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resumed_at: Option<Time>,
    },
    /// The conclusion about it changed.
    Diagnosed {
        /// When.
        at: Time,
        /// Which.
        incident: IncidentId,
        /// What is concluded now.
        findings: Vec<Finding>,
    },
    /// Something was decided. Recorded before it is done.
    Intended {
        /// When.
        at: Time,
        /// Its number.
        intent: IntentId,
        /// For which incident.
        incident: IncidentId,
        /// Which repair step of its escalation.
        repair_step: u8,
        /// By whom.
        fence: Fence,
        /// What will be called.
        call: Call,
        /// What must be another value afterwards: boot ids and the newest action before the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        before: Option<Before>,
        /// Where its trust is earned, so that a failure cools that down also after a restart.
        #[serde(skip_serializing_if = "Option::is_none")]
        domain: Option<Domain>,
    },
    /// A try that is over, as a checkpoint of a rotated ledger keeps it. Of one that the ledger knows: what is known by now.
    Tried {
        /// For which incident.
        incident: IncidentId,
        /// The try, with its outcome and verdict as far as they are known.
        attempt: Attempt,
        /// The repair step that the incident is on now.
        repair_step: u8,
    },
    /// Where an incident stands on its escalation: as a checkpoint of a rotated ledger keeps it, and where a new one goes on with
    /// what was tried for the same machine before.
    CarriedOver {
        /// Which incident.
        incident: IncidentId,
        /// The repair step that it is on.
        repair_step: u8,
        /// How often that was tried.
        tries: u32,
        /// Nothing for it before this.
        #[serde(skip_serializing_if = "Option::is_none")]
        not_before: Option<Time>,
        /// What the cloud showed before a reboot that was not confirmed, and may only be late.
        #[serde(skip_serializing_if = "Option::is_none")]
        unconfirmed: Option<ActionMark>,
        /// Tries that held and did not last: each was counted then.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lapsed: Vec<IntentId>,
        /// The place among the repairs at once that it keeps although nothing of it is under way. `None`: as the answers to its
        /// calls say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Place>,
        /// Since when its deletion of which nothing was seen may come late, by a clock that stood still while nothing was
        /// watched. `None`: since its answer or its verdict, or there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        late_since: Option<Time>,
        /// When its machine had looked well for its dwell, and it waited for a person's word alone, by a clock that stood still
        /// while nothing was watched. `None`: it does not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outlasted: Option<Time>,
    },
    /// How far everything that is counted has come, as a checkpoint of a rotated ledger keeps it: what had a number may be
    /// forgotten, and no number is given twice. Also after a gap or a jump of the clock, because what was begun counts on, and
    /// when our sight of the nodes begins or ends.
    Numbered {
        /// When.
        at: Time,
        /// The highest number of an incident.
        incident: IncidentId,
        /// The highest number of an intent.
        intent: IntentId,
        /// When repairs that can hurt were begun within the hour.
        begun: Vec<Time>,
        /// Which of these tidy up, of which no more than half of the hour may. Empty in ledgers that did not keep it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tidied: Vec<Time>,
        /// Instances that we deleted: no other client is charged with their deletion.
        deleted: Vec<InstanceId>,
        /// Since when no process has seen a complete list of nodes. `None`: it is seen, as when a process died that wrote nothing
        /// of it, or what went unseen is in the ledger.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unseen_since: Option<Time>,
        /// What our clock showed just before `at`. If that is earlier, nothing was watched in between, by the sleep of a process,
        /// a clock that was set ahead, or because no process ran. If it is later, the clock was set back. What was noted before
        /// has as long to go as it had then. `None`: the clock did not jump. Earlier ledgers tell of gaps only.
        #[serde(default, skip_serializing_if = "Option::is_none", alias = "unwatchedSince")]
        jumped_from: Option<Time>,
    },
    /// A recorded intent was not carried out after all, and why.
    Dropped {
        /// When.
        at: Time,
        /// Which.
        intent: IntentId,
        /// Why.
        why: Why,
    },
    /// The call ended.
    Ended {
        /// When.
        at: Time,
        /// Which.
        intent: IntentId,
        /// How.
        outcome: Outcome,
    },
    /// A fresh read told whether it worked.
    Judged {
        /// When.
        at: Time,
        /// Which.
        intent: IntentId,
        /// True when it held.
        held: bool,
        /// What was seen.
        text: Arc<str>,
    },
    /// Every repair step is used up, or a limit was met: a person is asked.
    GivenUp {
        /// When.
        at: Time,
        /// Which.
        incident: IncidentId,
        /// Why.
        why: Arc<str>,
    },
    /// A person asked for a repair of this machine now. Recorded once for each value, whatever comes of it.
    Asked {
        /// When it was seen.
        at: Time,
        /// Of which machine.
        machine: MachineKey,
        /// In the person's words.
        value: Arc<str>,
        /// The incident that it is about. None where the machine had no problem: the request then had no effect.
        #[serde(skip_serializing_if = "Option::is_none")]
        incident: Option<IncidentId>,
    },
    /// The incident's machine would be deleted now, and is kept for a look.
    Kept {
        /// When.
        at: Time,
        /// Which incident.
        incident: IncidentId,
        /// It is not deleted before this.
        until: Time,
    },
    /// The fault is over.
    Closed {
        /// When.
        at: Time,
        /// Which.
        incident: IncidentId,
        /// How it ended.
        verdict: Verdict,
        /// When by a clock that stood still while nothing was watched, as a checkpoint keeps it. `None`: at `at`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        watched_from: Option<Time>,
    },
    /// The probe width of a domain changed.
    Width {
        /// When.
        at: Time,
        /// Which domain.
        domain: Domain,
        /// How many at once from now on.
        width: u32,
        /// Nothing there before this.
        #[serde(skip_serializing_if = "Option::is_none")]
        not_before: Option<Time>,
        /// Repairs there that failed in a row.
        failures: u32,
        /// The repair that was proved, where one was: what else is being proved there is not. `None` in ledgers that did not
        /// keep it, too.
        #[serde(skip_serializing_if = "Option::is_none")]
        proved: Option<IntentId>,
        /// The newcomer that proved it: it proves no other. `None` where none did, and in ledgers that did not keep it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        successor: Option<MachineKey>,
    },
    /// An instance was deleted for this fault text; counted against "the same fault k times".
    FaultSeen {
        /// When.
        at: Time,
        /// Of which pool.
        pool: PoolName,
        /// Which instance.
        instance: InstanceId,
        /// The cloud's words, normalised.
        fault: Arc<str>,
    },
    /// How often a repair was asked for, and how often a fresh read found its effect, in records that a rotated ledger does
    /// not keep. Only a checkpoint holds it.
    Counted {
        /// When.
        at: Time,
        /// The name of the repair step that is counted.
        repair: Arc<str>,
        /// Calls made.
        requested: u32,
        /// Of these, effects that a fresh read found.
        verified: u32,
    },
}

/// A machine that was seen with its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Joined {
    /// Which.
    pub machine: MachineKey,
    /// The node's name.
    pub node: NodeName,
    /// The pool that its marks proved then. If the Node goes while no process is looking, its cleanup is charged to that
    /// pool. `None` where its marks proved none, and in ledgers that did not keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolName>,
}

/// What a restart must remember of a machine's agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentTold {
    /// Which it is.
    pub agent: AgentId,
    /// Why it leaves its machine alone, where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "hold")]
    pub blocker: Option<AgentBlocker>,
}

/// A place that a call keeps which was answered as failed: it may only be late, or came late, and its machine boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Place {
    /// Where its trust is earned; none where the ledger does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    /// A fresh read of before this tells nothing.
    pub settled: Time,
    /// It is free from then on, whatever was read.
    pub until: Time,
}

/// Where trust is earned: machines of one pool, in one zone, with one kind of fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Domain {
    /// Pool.
    pub pool: PoolName,
    /// Zone; `None` where neither the cloud nor the Node names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<ZoneName>,
    /// Kind of fault.
    #[serde(rename = "fault")]
    pub kind: FaultKind,
}

/// How an incident ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A repair of ours held.
    Mended,
    /// It went away without us.
    Recovered,
    /// The subject itself is gone (deleted, replaced, out of the roster).
    SubjectGone,
    /// It turned out to be another fault, which has an incident of its own.
    Superseded,
}

impl Verdict {
    /// Nothing says that the fault is over: it has another name by now, or its machine went out of sight. What was tried counts
    /// when it is seen again.
    pub const fn leaves_the_fault(self) -> bool {
        matches!(self, Self::SubjectGone | Self::Superseded)
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mended => "mended",
            Self::Recovered => "recovered",
            Self::SubjectGone => "subject-gone",
            Self::Superseded => "superseded",
        }
    }
}
