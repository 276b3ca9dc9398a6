//! What the registry takes in and what it puts out: two closed lists.

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

use super::denied::{Denied, Named};
use super::flow::JoinOver;
use super::ids::{Ask, AuthorityHash, Conn, InvitationId, KeyHash, MachineId, OrderId, TokenHash};
use super::invitation::{InvitationOver, Wish};
use super::machine::Removal;
use super::plans::Plans;
use super::record::Record;
use super::trace::Report;

/// An input of the registry.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time passed.
    Tick,
    /// The plans were read.
    PlansRead(Plans),
    /// An operator wants an invitation; the id and the secret were drawn outside.
    Invite {
        /// The request to answer.
        ask: Ask,
        /// The wanted invitation.
        wish: Wish,
        /// The token's public half.
        id: InvitationId,
        /// The hash of the token's secret half.
        hash: TokenHash,
    },
    /// A machine asks to be enrolled.
    Enrol {
        /// The request to answer.
        ask: Ask,
        /// The token's public half.
        id: InvitationId,
        /// The hash of the secret that the machine showed.
        hash: TokenHash,
        /// The machine's identity.
        identity: Identity,
        /// What the machine says about itself.
        facts: Facts,
        /// The name that the machine's Node should have.
        node_name: Option<Word>,
        /// What the clusters say about Nodes with this name or these ids; none where there is no cluster to ask.
        node: Option<NodeSaid>,
        /// The machine's key; the machine proved that it has it.
        key: KeyHash,
        /// A record name that was drawn, if one is needed.
        fresh: MachineId,
    },
    /// A machine asks for its next certificate.
    Renew {
        /// The request to answer.
        ask: Ask,
        /// The machine, as the connection proved.
        peer: Peer,
        /// The next key; the machine proved that it has it.
        key: KeyHash,
    },
    /// These authorities are retired: a machine with a certificate of one of them is unknown, also one that was checked
    /// before and has waited since.
    Retired(Vec<AuthorityHash>),
    /// A machine sent a hello.
    Arrived {
        /// The connection.
        conn: Conn,
        /// The machine, as the connection proved.
        peer: Peer,
        /// The hello.
        hello: Hello,
    },
    /// A machine sent a frame.
    Said {
        /// The connection.
        conn: Conn,
        /// The frame's number.
        n: u64,
        /// The frame.
        frame: AgentFrame,
    },
    /// A connection has ended.
    Gone(Conn),
    /// Which roles of machines exist and are Ready in a roster's cluster.
    ClusterSaid {
        /// The roster.
        roster: RosterName,
        /// The roles; none when the API server did not answer.
        present: Option<BTreeSet<Role>>,
    },
    /// A token was made, or could not be made.
    TokenMade {
        /// The machine.
        machine: MachineId,
        /// The reason why not.
        outcome: Result<(), Sentence>,
    },
    /// The engine or an operator gives a machine an order.
    Order {
        /// The order's number.
        id: OrderId,
        /// The machine.
        machine: MachineId,
        /// The order.
        verb: Verb,
        /// The registry does not wait for an answer after this.
        within: Span,
    },
    /// Instances are gone for good, as the engine knows from the cloud, or are in sight again.
    InstancesSeen {
        /// The roster.
        roster: RosterName,
        /// The instances.
        instances: Vec<Word>,
        /// True: the instances are gone.
        gone: bool,
    },
    /// The clock was set, or this process stood still: the time of the next event is shifted by this much.
    ClockSet {
        /// The shift; negative when the clock was set back.
        by: Span,
    },
    /// An operator takes an invitation back.
    Revoke {
        /// The request to answer.
        ask: Ask,
        /// The invitation.
        id: InvitationId,
    },
    /// An operator removes a machine or its Node, or takes the removal back.
    Remove {
        /// The request to answer.
        ask: Ask,
        /// The machine: its record, a part of its identity, or the name of its Node.
        machine: Word,
        /// What to remove; none: the machine may come again.
        what: Option<Removal>,
    },
}

/// What clusters say about Nodes that have a name or one of some ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSaid {
    /// There is no such Node.
    Absent,
    /// These Nodes exist.
    Present(Vec<NodeIds>),
    /// An API server answers, but has not answered everything: its first list may not be complete yet.
    Partly,
    /// The API server did not answer.
    Unknown,
    /// There are clusters to ask, and none was asked yet: the registry first judges what needs no cluster.
    Unasked,
}

/// The ids by which a Node identifies its machine. An id that the Node does not carry is none. The boot id is left out:
/// every container on the Node can read it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NodeIds {
    /// The Node's name.
    pub name: Word,
    /// The instance of `spec.providerID`.
    pub instance: Option<Word>,
    /// `status.nodeInfo.systemUUID`; the kubelet takes the machine id where the firmware has none.
    pub system_uuid: Option<Word>,
}

/// A machine as the certificate of a connection proved it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The machine in the certificate.
    pub machine: MachineId,
    /// The certificate's key.
    pub key: KeyHash,
    /// The authority that signed the certificate.
    pub authority: AuthorityHash,
    /// The end of the certificate.
    pub not_after: Time,
}

/// An output of the registry. The server makes records durable before it performs anything else of the same step.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Make this record durable.
    Record(Record),
    /// Answer a request.
    Reply(Ask, Reply),
    /// Send this frame over a connection.
    Send(Conn, ServerFrame),
    /// Send the machine's token over a connection. The registry does not know the token.
    SendToken(Conn, MachineId),
    /// Close a connection, with the reason as the last frame.
    Close(Conn, Refused),
    /// Make a token for the machine's join.
    MakeToken {
        /// The machine.
        machine: MachineId,
        /// The roster of the cluster.
        roster: RosterName,
        /// The token's lifetime.
        ttl: Span,
    },
    /// Delete the machine's tokens, replaced ones included.
    DropToken {
        /// The machine.
        machine: MachineId,
        /// The roster of the cluster.
        roster: RosterName,
    },
    /// An invitation is used up or void, because of the machines that used it. Sent once.
    InvitationOver(InvitationOver),
    /// Tell the controller.
    Tell(Heard),
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The invitation is open.
    Invited {
        /// The invitation's id.
        id: InvitationId,
        /// The invitation's lifetime.
        ttl: Span,
    },
    /// The invitation is revoked. These machines were admitted by it, and stay.
    Revoked(Vec<Named>),
    /// Sign a certificate for this key.
    Certify {
        /// The machine in the certificate.
        machine: MachineId,
        /// The key.
        key: KeyHash,
        /// The name of the Node.
        node_name: Word,
        /// The certificate's lifetime.
        ttl: Span,
    },
    /// The claim is right as far as the registry can judge without the clusters. Ask the clusters for Nodes, of which
    /// this roster's Nodes are the machine's own, and send the claim again with the answer.
    NodesToAsk(RosterName),
    /// The machine or its Node is removed, or readmitted.
    Done(MachineId),
    /// A refusal for a machine.
    Refused(Refused),
    /// A refusal for an operator.
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

/// A message about a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// The machine.
    pub who: Arc<Who>,
    /// The message.
    pub what: What,
}

/// A machine, with all ids by which other parts know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The machine's record.
    pub machine: MachineId,
    /// The machine's roster.
    pub roster: RosterName,
    /// The name of the machine's Node.
    pub node_name: Word,
    /// The machine's identity.
    pub identity: Identity,
}

/// The kinds of messages about a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The machine is enrolled.
    Enrolled,
    /// The machine's session has begun.
    Arrived {
        /// The session's number.
        session: u64,
        /// The machine's Node is in the API.
        joined: bool,
    },
    /// The machine's session has ended.
    Left,
    /// The machine has been silent for too long.
    Silent,
    /// The machine's instance is gone for good, and its record is forgotten.
    Forgotten,
    /// The machine reported a stage.
    Staged(Report),
    /// The machine's join has ended. Sent once for each join.
    JoinOver(Box<JoinOver>),
    /// A heartbeat.
    Alive {
        /// The machine's stage.
        stage: Option<Stage>,
        /// The machine's Node is in the API.
        joined: bool,
        /// The agent's account of itself.
        account: Option<Box<Account>>,
    },
    /// The progress of a step of the machine's plan.
    Stepped(StepOutcome),
    /// The result of an order.
    Answered(OrderId, Done),
    /// An order stays without an answer.
    Unanswered(OrderId, NoAnswer),
    /// A part of the evidence.
    Evidence(OrderId, EvidencePart),
    /// The machine says that it answers peers at an address where no peer can be; the registry tells no peer about it.
    NoPeerAt(Word),
    /// Another machine claimed the identity of this one, and was refused.
    Rival(Part, Box<Identity>, Box<Facts>),
}

/// Why an order stays without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The order was not sent: the machine has no session, or too many orders.
    NotGiven(&'static str),
    /// The order was sent, and the server does not know whether the machine took it.
    Unknown(&'static str),
}

impl NoAnswer {
    /// The reason in words.
    pub const fn why(self) -> &'static str {
        match self {
            Self::NotGiven(why) | Self::Unknown(why) => why,
        }
    }
}
