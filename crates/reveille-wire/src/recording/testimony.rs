//! What a machine said of itself, with what a catalogue made of it, as JSON.
//!
//! ```text
//!   {"testimony":{"console":"…","guest":{"boot":"first-boot",…},"told":[{"cause":"no-network-at-boot","code":"RV113",…}]}}
//! ```
//!
//! The text is kept beside the judgement, so that another catalogue can be tried on it; a replay decides by the judgement.
//! What the cluster says of the machine is judged with it, and kept as what it proves.
//! Recordings of before consoles were judged outside of the engine hold `{"console":"…"}`, which whoever plays them judges.

use std::sync::Arc;

use reveille_core::model::hearing::{CertificateRequest, Hearing, RequestState, Said, Unread};
use reveille_core::model::id::NodeName;
use reveille_core::model::incident::{Confidence, Line};
use reveille_core::model::node::{Node, NodeEvent};
use reveille_core::model::stage::Stage;
use reveille_core::model::testimony::{BootProgress, ConfigDrive, Guest, Quote, Testimony, Told};
use serde::{Deserialize, Serialize};

use crate::ledger::FromWireError;
use crate::ledger::cause::{self, WireKnown};
use crate::ledger::mirror::{Mirror, mirror_struct, words};

words! {
    RequestState "state of a certificate request" RequestState::ALL, RequestState::name;
    BootProgress "step of a boot" BootProgress::ALL, BootProgress::name;
    ConfigDrive "state of a config drive" ConfigDrive::ALL, ConfigDrive::name;
}

mirror_struct! {
    WireGuest of Guest {
        boot: BootProgress,
        config_drive: ConfigDrive,
        addressed: bool,
        answered: bool,
    }
}

mirror_struct! {
    WireQuote of Quote {
        source: Arc<str>,
        text: Arc<str>,
        line: Line,
    }
}

mirror_struct! {
    WireHearing of Hearing {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeName>,
        asks_as: NodeName,
        console_counts: bool,
    }
}

mirror_struct! {
    WireUnread of Unread {
        source: Arc<str>,
        why: Arc<str>,
    }
}

mirror_struct! {
    WireRequest of CertificateRequest {
        name: Arc<str>,
        signer: Arc<str>,
        requester: Arc<str>,
        state: RequestState,
        message: Arc<str>,
        stamped: Arc<str>,
    }
}

mirror_struct! {
    WireSaid of Said {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<Arc<Node>>,
        events: Vec<NodeEvent>,
        requests: Vec<CertificateRequest>,
        unread: Vec<Unread>,
    }
}

/// A testimony.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WireTestimony {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    console: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    no_console: Option<Arc<str>>,
    guest: WireGuest,
    told: Vec<WireTold>,
    /// Recordings of before the cluster was heard have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unread: Vec<WireUnread>,
}

/// A cause that texts prove.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WireTold {
    cause: Arc<str>,
    code: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    known: Option<WireKnown>,
    stage: Arc<str>,
    confidence: Arc<str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unanswered: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    no_lease: bool,
    proof: Vec<WireQuote>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    against: Vec<WireQuote>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    follows: Vec<Self>,
}

impl Mirror for Testimony {
    type Wire = WireTestimony;

    fn out(&self) -> WireTestimony {
        WireTestimony {
            console: self.console.as_ref().ok().cloned(),
            no_console: self.console.as_ref().err().cloned(),
            guest: self.guest.out(),
            told: self.told.out(),
            unread: self.unread.out(),
        }
    }

    fn back(wire: WireTestimony) -> Result<Self, FromWireError> {
        let why = wire.no_console.unwrap_or_else(|| Arc::from("not said why"));
        Ok(Self {
            console: wire.console.ok_or(why),
            guest: Guest::back(wire.guest)?,
            told: Vec::back(wire.told)?,
            unread: Vec::back(wire.unread)?,
        })
    }
}

impl Mirror for Told {
    type Wire = WireTold;

    fn out(&self) -> WireTold {
        WireTold {
            cause: Arc::from(self.cause.label()),
            code: Arc::from(self.cause.code()),
            known: cause::known(&self.cause),
            stage: self.stage.out(),
            confidence: self.confidence.out(),
            unanswered: self.unanswered,
            no_lease: self.no_lease,
            proof: self.proof.out(),
            against: self.against.out(),
            follows: self.follows.out(),
        }
    }

    fn back(wire: WireTold) -> Result<Self, FromWireError> {
        let stage = Stage::back(wire.stage)?;
        Ok(Self {
            cause: cause::back(wire.code, wire.cause, wire.known, stage)?,
            stage,
            confidence: Confidence::back(wire.confidence)?,
            unanswered: wire.unanswered,
            no_lease: wire.no_lease,
            proof: Vec::back(wire.proof)?,
            against: Vec::back(wire.against)?,
            follows: Vec::back(wire.follows)?,
        })
    }
}
