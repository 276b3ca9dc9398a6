//! What the registry must not forget, as lines: `{"t":"enrolled","at":"2026-…",…}`.
//!
//! Every change of the [`super::index::Index`] is one of these records, and is durable before the server answers a client.
//! Replaying them in order gives the same index. A record holds no secret: of an invitation's token its hash, of a key the
//! hash of its public half, and nothing of a join's token.
//!
//! A newer program may add fields, with a default; it can read every older line. A line of an unknown kind stops the
//! start: a skipped line could be a removal.

use std::collections::BTreeSet;

use reveille_core::model::id::{PoolName, RosterName};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_wire::agent::frame::{StageStep, Trouble};
use reveille_wire::agent::plan::Held;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Facts, Identity, Role, StageWord};
use serde::{Deserialize, Serialize};

use super::flow::{JoinEnd, JoinFlow};
use super::ids::{AuthorityHash, InvitationId, KeyHash, MachineId};
use super::invitation::Invitation;
use super::machine::{Machine, Removal};
use super::trace::{Leg, Report};

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Record {
    /// An invitation was made.
    Invited(Invitation),
    /// An invitation that ended long ago is forgotten.
    Uninvited {
        /// The invitation.
        invitation: InvitationId,
    },
    /// An operator revoked an invitation.
    Revoked {
        /// When.
        at: Time,
        /// The invitation.
        invitation: InvitationId,
    },
    /// A machine came with the invitation and claimed a name of another machine.
    Conflicted {
        /// When.
        at: Time,
        /// The invitation.
        invitation: InvitationId,
    },
    /// A machine is enrolled, or enrolled again with another key.
    Enrolled(Enrolled),
    /// The machine says something else about itself than before.
    Described {
        /// The machine.
        machine: MachineId,
        /// The machine's boot id.
        boot_id: Word,
        /// What the machine says.
        facts: Facts,
    },
    /// The machine asked for a certificate with another key, which counts from now on beside the keys before.
    KeyOffered {
        /// The machine.
        machine: MachineId,
        /// The key.
        key: KeyHash,
    },
    /// The machine was welcomed with such a key; all others are void.
    KeyTaken {
        /// The machine.
        machine: MachineId,
        /// The key; none in a line of an earlier version, which means the newest key.
        #[serde(default)]
        key: Option<KeyHash>,
    },
    /// A session of the machine was welcomed with a certificate of another authority than before.
    Shown {
        /// The machine.
        machine: MachineId,
        /// The authority.
        authority: AuthorityHash,
    },
    /// The machine has another plan.
    Planned {
        /// The machine.
        machine: MachineId,
        /// Its plan.
        plan: Held,
    },
    /// The machine reported a stage.
    Staged(Staged),
    /// This server said why a stage is not left, or that it does not block it any more.
    Noted {
        /// When.
        at: Time,
        /// The machine.
        machine: MachineId,
        /// The stage.
        stage: StageWord,
        /// The reason.
        trouble: Option<Trouble>,
    },
    /// The machine or its Node was removed.
    Removed {
        /// When.
        at: Time,
        /// The machine.
        machine: MachineId,
        /// What was removed.
        what: Removal,
    },
    /// The machine was readmitted.
    Readmitted {
        /// The machine.
        machine: MachineId,
    },
    /// The machine's instance is gone for good.
    Departed {
        /// When the server received that.
        at: Time,
        /// The machine.
        machine: MachineId,
    },
    /// The machine's instance is in sight again.
    Returned {
        /// The machine.
        machine: MachineId,
    },
    /// The machine is forgotten: only its record's name is kept.
    Forgotten {
        /// When.
        at: Time,
        /// The machine.
        machine: MachineId,
    },
    /// The machine fell silent while it joins.
    FellSilent {
        /// When the server noticed the silence.
        at: Time,
        /// The machine.
        machine: MachineId,
        /// The last message of the machine.
        since: Time,
    },
    /// The machine was heard again.
    HeardAgain {
        /// When.
        at: Time,
        /// The machine.
        machine: MachineId,
    },
    /// The machine's join has ended, and was reported.
    JoinOver {
        /// When.
        at: Time,
        /// The machine.
        machine: MachineId,
        /// How the join ended.
        end: JoinEnd,
    },
    /// The machine's join as a checkpoint keeps it.
    Joining {
        /// The machine.
        machine: MachineId,
        /// The join.
        #[serde(rename = "course")]
        flow: Box<JoinFlow>,
    },
    /// The API server of a roster's cluster has answered: from now on there are Nodes whose names a machine could take.
    ClusterAnswered {
        /// The roster.
        roster: RosterName,
    },
    /// A leg of the machine's way as a checkpoint keeps it.
    Leg(KeptLeg),
    /// What else a checkpoint keeps of a machine.
    Kept {
        /// The machine.
        machine: MachineId,
        /// The machine's newest next key.
        next_key: Option<KeyHash>,
        /// The highest number of a kept report.
        reports_kept: u64,
    },
}

/// See [`Record::Enrolled`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enrolled {
    /// When.
    pub at: Time,
    /// The machine's record.
    pub machine: MachineId,
    /// The invitation.
    pub invitation: InvitationId,
    /// True: this counts as a use of the invitation. A line of a checkpoint does not.
    pub used: bool,
    /// The machine's roster.
    pub roster: RosterName,
    /// The machine's pool.
    pub pool: PoolName,
    /// The machine's roles.
    pub roles: BTreeSet<Role>,
    /// The machine's identity.
    pub identity: Identity,
    /// What the machine says about itself.
    pub facts: Facts,
    /// The name of the machine's Node.
    pub node_name: Word,
    /// The machine's key.
    pub key: KeyHash,
}

/// See [`Record::Staged`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Staged {
    /// When the server received the report.
    pub at: Time,
    /// The machine.
    pub machine: MachineId,
    /// The report's number.
    pub seq: u64,
    /// The stage.
    pub stage: StageWord,
    /// What happened to the stage.
    pub step: StageStep,
    /// The number of attempts.
    pub attempts: u32,
    /// Why the stage is not left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Trouble>,
    /// The time on the machine's clock.
    pub stamp: Word,
}

/// See [`Record::Leg`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptLeg {
    /// The machine.
    pub machine: MachineId,
    /// The stage.
    pub stage: StageWord,
    /// When the server heard that the stage was entered.
    pub entered: Option<Time>,
    /// When the server heard that the stage was left.
    pub left: Option<Time>,
    /// The number of attempts.
    pub attempts: u32,
    /// What the machine says about it.
    pub agent_says: Option<Trouble>,
    /// What this server says about it.
    pub server_says: Option<Trouble>,
    /// The time on the machine's clock.
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
