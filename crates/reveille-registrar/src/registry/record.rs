//! What the registry must not forget, as lines: `{"t":"enrolled","at":"2026-…",…}`.
//!
//! Every change of the [`super::book::Book`] is one of these, and is made durable before anybody is answered. Reading them back
//! in order gives the same book. There is no secret in them: of a token its hash, of a key the hash of its public half, and the
//! join's tokens not at all.
//!
//! A newer program may add fields, with a default; an older line is always read. A line of an unknown kind stops the start: what
//! is passed over here could be a removal.

use std::collections::BTreeSet;

use reveille_core::model::id::{PoolName, RosterName};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_wire::agent::frame::{StageStep, Trouble};
use reveille_wire::agent::plan::Held;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Facts, Identity, Role, StageWord};
use serde::{Deserialize, Serialize};

use super::course::{Course, JoinEnd};
use super::ids::{AuthorityHash, InvitationId, KeyHash, MachineId};
use super::invitation::Invitation;
use super::machine::{Machine, Removal};
use super::trace::{Leg, Report};

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Record {
    /// Somebody was invited.
    Invited(Invitation),
    /// An invitation was over for long, and is forgotten.
    Uninvited {
        /// Which.
        invitation: InvitationId,
    },
    /// A person took an invitation back.
    Revoked {
        /// When.
        at: Time,
        /// Which.
        invitation: InvitationId,
    },
    /// Somebody came with it who claimed what another machine is known by.
    Conflicted {
        /// When.
        at: Time,
        /// Which.
        invitation: InvitationId,
    },
    /// A machine is known from now on, or known anew with another key.
    Enrolled(Enrolled),
    /// It says something else of itself than before.
    Described {
        /// Which.
        machine: MachineId,
        /// Its boot.
        boot_id: Word,
        /// What it says.
        facts: Facts,
    },
    /// It asked for a certificate with another key, which counts from now on, beside those before.
    KeyOffered {
        /// Which.
        machine: MachineId,
        /// The key.
        key: KeyHash,
    },
    /// It was welcomed with such a key; all others are void.
    KeyTaken {
        /// Which.
        machine: MachineId,
        /// The key; none in a line of before, which means the newest.
        #[serde(default)]
        key: Option<KeyHash>,
    },
    /// A session of it was welcomed with a certificate of another authority than before.
    Shown {
        /// Which.
        machine: MachineId,
        /// The authority.
        authority: AuthorityHash,
    },
    /// It has another plan.
    Planned {
        /// Which.
        machine: MachineId,
        /// Its plan.
        plan: Held,
    },
    /// It said something of a stage.
    Staged(Staged),
    /// This server said why a stage is not left, or that it is no longer in the way.
    Noted {
        /// When.
        at: Time,
        /// Which machine.
        machine: MachineId,
        /// Which stage.
        stage: StageWord,
        /// Why.
        trouble: Option<Trouble>,
    },
    /// It, or its node, is to stay away.
    Removed {
        /// When.
        at: Time,
        /// Which.
        machine: MachineId,
        /// What of it.
        what: Removal,
    },
    /// It may come again.
    Readmitted {
        /// Which.
        machine: MachineId,
    },
    /// Its instance is gone for good.
    Departed {
        /// When that was heard.
        at: Time,
        /// Which.
        machine: MachineId,
    },
    /// And is in sight again.
    Returned {
        /// Which.
        machine: MachineId,
    },
    /// Nothing of it is kept any more but that it was.
    Forgotten {
        /// When.
        at: Time,
        /// Which.
        machine: MachineId,
    },
    /// Nothing was heard of it while it joins.
    FellSilent {
        /// When that was found.
        at: Time,
        /// Which.
        machine: MachineId,
        /// When it was heard last.
        since: Time,
    },
    /// And then something was.
    HeardAgain {
        /// When.
        at: Time,
        /// Which.
        machine: MachineId,
    },
    /// Its join is over, and was told of.
    JoinOver {
        /// When.
        at: Time,
        /// Which.
        machine: MachineId,
        /// How.
        end: JoinEnd,
    },
    /// Its join as a checkpoint keeps it.
    Joining {
        /// Which.
        machine: MachineId,
        /// It.
        course: Box<Course>,
    },
    /// A leg of its way as a checkpoint keeps it.
    Leg(KeptLeg),
    /// What else a checkpoint keeps of a machine.
    Kept {
        /// Which.
        machine: MachineId,
        /// The newest key that it may come with next.
        next_key: Option<KeyHash>,
        /// The highest report that was kept.
        reports_kept: u64,
    },
}

/// See [`Record::Enrolled`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enrolled {
    /// When.
    pub at: Time,
    /// Its record.
    pub machine: MachineId,
    /// By which invitation.
    pub invitation: InvitationId,
    /// Counts as a use of it. A checkpoint's line does not.
    pub used: bool,
    /// Of which roster.
    pub roster: RosterName,
    /// In which pool.
    pub pool: PoolName,
    /// As what.
    pub roles: BTreeSet<Role>,
    /// Who it is.
    pub identity: Identity,
    /// What it says of itself.
    pub facts: Facts,
    /// The name of its node.
    pub node_name: Word,
    /// Its key.
    pub key: KeyHash,
}

/// See [`Record::Staged`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Staged {
    /// When it was heard.
    pub at: Time,
    /// Which machine.
    pub machine: MachineId,
    /// Its report's number.
    pub seq: u64,
    /// Which stage.
    pub stage: StageWord,
    /// What happened with it.
    pub step: StageStep,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it is not left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Trouble>,
    /// When, on the machine's clock.
    pub stamp: Word,
}

/// See [`Record::Leg`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptLeg {
    /// Which machine.
    pub machine: MachineId,
    /// Which stage.
    pub stage: StageWord,
    /// Heard to have begun.
    pub entered: Option<Time>,
    /// Heard to be over.
    pub left: Option<Time>,
    /// How often it was tried.
    pub attempts: u32,
    /// What the machine says.
    pub agent_says: Option<Trouble>,
    /// What this server says.
    pub server_says: Option<Trouble>,
    /// When, on the machine's clock.
    pub stamp: Word,
}

impl Enrolled {
    /// The line that a checkpoint keeps.
    pub(super) fn kept(of: &Machine) -> Self {
        Self {
            at: of.enrolled_at,
            machine: of.id.clone(),
            invitation: of.invitation.clone(),
            used: false,
            roster: of.roster.clone(),
            pool: of.pool.clone(),
            roles: of.roles.clone(),
            identity: of.identity.clone(),
            facts: of.facts.clone(),
            node_name: of.node_name.clone(),
            key: of.key,
        }
    }
}

impl Staged {
    /// The line of a report.
    pub(super) fn of(at: Time, machine: &MachineId, report: &Report) -> Self {
        Self {
            at,
            machine: machine.clone(),
            seq: report.seq,
            stage: StageWord(report.stage),
            step: report.step,
            attempts: report.attempts,
            error: report.error.clone(),
            stamp: report.stamp.clone(),
        }
    }

    /// The report of a line.
    pub(super) fn report(&self) -> Report {
        Report {
            seq: self.seq,
            stage: self.stage.0,
            step: self.step,
            attempts: self.attempts,
            error: self.error.clone(),
            stamp: self.stamp.clone(),
        }
    }
}

impl KeptLeg {
    /// The line that a checkpoint keeps.
    pub(super) fn of(machine: &MachineId, stage: Stage, leg: &Leg) -> Self {
        Self {
            machine: machine.clone(),
            stage: StageWord(stage),
            entered: leg.entered,
            left: leg.left,
            attempts: leg.attempts,
            agent_says: leg.agent_says.clone(),
            server_says: leg.server_says.clone(),
            stamp: leg.stamp.clone(),
        }
    }

    /// The leg of a line.
    pub(super) fn leg(&self) -> Leg {
        Leg {
            entered: self.entered,
            left: self.left,
            attempts: self.attempts,
            agent_says: self.agent_says.clone(),
            server_says: self.server_says.clone(),
            stamp: self.stamp.clone(),
        }
    }
}
