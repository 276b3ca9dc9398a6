//! What can come in, what can go out: two closed lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::model::id::RosterName;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::frame::{Account, Done, EvidencePart, Hello};
use reveille_wire::agent::identity::Part;
use reveille_wire::agent::plan::StepOutcome;
use reveille_wire::agent::text::{Sentence, Word};
use reveille_wire::agent::{AgentFrame, Facts, Identity, Reason, Refused, Role, ServerFrame, Verb};

use super::course::JoinOver;
use super::denied::{Denied, Named};
use super::ids::{Ask, AuthorityHash, Conn, InvitationId, KeyHash, MachineId, OrderId, TokenHash};
use super::invitation::{InvitationOver, Wish};
use super::machine::Removal;
use super::plans::Plans;
use super::record::Record;
use super::trace::Report;

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time passed.
    Tick,
    /// Plans were read.
    PlansRead(Plans),
    /// A person wants an invitation; the id and the secret were drawn outside.
    Invite {
        /// Who waits.
        ask: Ask,
        /// What for.
        wish: Wish,
        /// The public half.
        id: InvitationId,
        /// The hash of the secret half.
        hash: TokenHash,
    },
    /// A machine wants to be known.
    Enrol {
        /// Who waits.
        ask: Ask,
        /// The token's public half.
        id: InvitationId,
        /// The hash of the secret that it came with.
        hash: TokenHash,
        /// Who it is.
        identity: Identity,
        /// What it says of itself.
        facts: Facts,
        /// The name that its node is to have.
        node_name: Option<Word>,
        /// What the clusters say of Nodes of this name or with these ids; none where there is no cluster to ask.
        node: Option<NodeSaid>,
        /// Its key; it proved to have it.
        key: KeyHash,
        /// A record that was drawn, if one is needed.
        fresh: MachineId,
    },
    /// A machine wants its next certificate.
    Renew {
        /// Who waits.
        ask: Ask,
        /// Who it is, as the connection proved.
        peer: Peer,
        /// The key of the next one; it proved to have it.
        key: KeyHash,
    },
    /// These authorities are over: whoever comes by one of them is not known, also whoever was judged before and waited since.
    Retired(Vec<AuthorityHash>),
    /// A machine says hello.
    Arrived {
        /// Over which connection.
        conn: Conn,
        /// Who it is, as the connection proved.
        peer: Peer,
        /// What it says.
        hello: Hello,
    },
    /// A machine said something.
    Said {
        /// Over which connection.
        conn: Conn,
        /// The frame's number.
        n: u64,
        /// It.
        frame: AgentFrame,
    },
    /// A connection is over.
    Gone(Conn),
    /// What roles of machines are there and Ready in a roster's cluster.
    ClusterSaid {
        /// Which roster's.
        roster: RosterName,
        /// Which; none when nobody could say.
        present: Option<BTreeSet<Role>>,
    },
    /// A token was made, or was not.
    TokenMade {
        /// For which machine.
        machine: MachineId,
        /// Why not.
        outcome: Result<(), Sentence>,
    },
    /// Somebody gives a machine an order.
    Order {
        /// Its number.
        id: OrderId,
        /// Which machine.
        machine: MachineId,
        /// What.
        verb: Verb,
        /// An answer after this is not waited for.
        within: Span,
    },
    /// Instances are gone for good, as whoever asks the clouds knows, or are in sight again.
    InstancesSeen {
        /// Of which roster.
        roster: RosterName,
        /// Which.
        instances: Vec<Word>,
        /// They are gone.
        gone: bool,
    },
    /// The clock was set, or this process stood still: the next event is so much later than it would have been.
    ClockSet {
        /// By so much; less than nothing when it was set back.
        by: Span,
    },
    /// A person takes an invitation back.
    Revoke {
        /// Who waits.
        ask: Ask,
        /// Which.
        id: InvitationId,
    },
    /// A machine, or its node, is to stay away.
    Remove {
        /// Who waits.
        ask: Ask,
        /// Which: its record, a part of its identity, or its node's name.
        machine: Word,
        /// What of it; none: it may come again.
        what: Option<Removal>,
    },
}

/// What clusters say of the Nodes that have a name or one of some ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSaid {
    /// There is none.
    Absent,
    /// There are these.
    Present(Vec<NodeIds>),
    /// An API server answers, and has not said all that was asked: its first list may not be there yet.
    Partly,
    /// The API server did not say.
    Unknown,
    /// There are clusters to ask, and none was asked yet: what needs no answer of theirs is judged first.
    Unasked,
}

/// By what a Node knows its machine. What it does not carry is none. Its boot id is not here: every container on it can read
/// that.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NodeIds {
    /// Its name.
    pub name: Word,
    /// The instance of `spec.providerID`.
    pub instance: Option<Word>,
    /// `status.nodeInfo.systemUUID`; the kubelet takes the machine id where the firmware has none.
    pub system_uuid: Option<Word>,
}

/// A machine as a connection's certificate proved it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The certificate's name.
    pub machine: MachineId,
    /// The certificate's key.
    pub key: KeyHash,
    /// Who signed the certificate.
    pub authority: AuthorityHash,
    /// The certificate counts until then.
    pub not_after: Time,
}

/// What is to be done. Records are durable before anything else of the same step is.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Keep this.
    Record(Record),
    /// Answer.
    Reply(Ask, Reply),
    /// Say this over a connection.
    Send(Conn, ServerFrame),
    /// Say the machine's token over a connection. The registry does not know it.
    SendToken(Conn, MachineId),
    /// End a connection, with the reason as its last frame.
    Close(Conn, Refused),
    /// Make a token for the machine's join.
    MakeToken {
        /// For which machine.
        machine: MachineId,
        /// In which roster's cluster.
        roster: RosterName,
        /// It lasts so long.
        ttl: Span,
    },
    /// Take the machine's tokens away, those that were replaced, too.
    DropToken {
        /// Whose.
        machine: MachineId,
        /// In which roster's cluster.
        roster: RosterName,
    },
    /// An invitation opens nothing any more, because of who came with it. Said once.
    InvitationOver(InvitationOver),
    /// Tell whoever listens.
    Tell(Heard),
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The invitation stands.
    Invited {
        /// It.
        id: InvitationId,
        /// It lasts so long.
        ttl: Span,
    },
    /// The invitation is taken back. These were let in by it, and stay.
    Revoked(Vec<Named>),
    /// Sign a certificate for this key.
    Certify {
        /// The name in it.
        machine: MachineId,
        /// The key.
        key: KeyHash,
        /// The node's name.
        node_name: Word,
        /// It lasts so long.
        ttl: Span,
    },
    /// All that needs no cluster is judged, and was found right: ask for its Nodes, of which this roster's are its own, and ask
    /// again with what is said.
    NodesToAsk(RosterName),
    /// The machine, or its node, stays away; or may come again.
    Done(MachineId),
    /// No, to a machine.
    Refused(Refused),
    /// No, to a person.
    Denied(Denied),
}

impl From<Denied> for Reply {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl From<Reason> for Reply {
    fn from(reason: Reason) -> Self {
        Self::Refused(reason.into())
    }
}

/// What was heard of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// Which machine.
    pub who: Arc<Who>,
    /// What.
    pub what: What,
}

/// A machine, by all that others may know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// Its record.
    pub machine: MachineId,
    /// Of which roster.
    pub roster: RosterName,
    /// The name of its node.
    pub node_name: Word,
    /// Who it is.
    pub identity: Identity,
}

/// What was heard.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// It is known from now on.
    Enrolled,
    /// Its session stands.
    Arrived {
        /// Which one.
        session: u64,
        /// Its node is in the API.
        joined: bool,
    },
    /// Its session is over.
    Left,
    /// It was not heard for too long.
    Silent,
    /// Its instance is gone for good, and its record is forgotten.
    Forgotten,
    /// It said something of a stage.
    Staged(Report),
    /// Its join is over. Said once of each.
    JoinOver(Box<JoinOver>),
    /// A heartbeat.
    Alive {
        /// Where it is.
        stage: Option<Stage>,
        /// Its node is in the API.
        joined: bool,
        /// What it says of itself beyond that.
        account: Option<Box<Account>>,
    },
    /// How a step of its plan is going.
    Stepped(StepOutcome),
    /// What became of an order.
    Answered(OrderId, Done),
    /// An order has no answer.
    Unanswered(OrderId, NoAnswer),
    /// A part of the evidence.
    Evidence(OrderId, EvidencePart),
    /// It says that it answers its peers where no peer can be; nobody is told.
    NoPeerAt(Word),
    /// Another machine claims to be this one, and was refused.
    Rival(Part, Box<Identity>, Box<Facts>),
}

/// Why an order has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// It was not given: the machine has no session, or too many orders.
    NotGiven(&'static str),
    /// It was given, and whether the machine took it is not known.
    Unknown(&'static str),
}

impl NoAnswer {
    /// In words.
    pub const fn why(self) -> &'static str {
        match self {
            Self::NotGiven(why) | Self::Unknown(why) => why,
        }
    }
}
