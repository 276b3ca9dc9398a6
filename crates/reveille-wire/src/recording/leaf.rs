//! Names, numbers and closed lists of words that only recordings need, beside those of the ledger.

use std::sync::Arc;

use reveille_core::effect::ReadErrorKind;
use reveille_core::event::Scope;
use reveille_core::model::id::{
    CloudName, ImageId, InstanceName, LookId, NetworkId, RecordId, RosterName, RouterId,
};
use reveille_core::model::instance::{InstanceState, PortStatus};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Mode;

use crate::ledger::FromWireError;
use crate::ledger::mirror::{Mirror, names, numbers, words};

names!(ImageId, InstanceName, NetworkId, RosterName);
numbers!(LookId, RecordId);

words! {
    InstanceState "state of an instance"
        [
            InstanceState::Building, InstanceState::Active, InstanceState::Rebooting, InstanceState::Stopped,
            InstanceState::Errored, InstanceState::Deleting, InstanceState::Gone, InstanceState::Other,
        ],
        |state| match state {
            InstanceState::Building => "building",
            InstanceState::Active => "active",
            InstanceState::Rebooting => "rebooting",
            InstanceState::Stopped => "stopped",
            InstanceState::Errored => "errored",
            InstanceState::Deleting => "deleting",
            InstanceState::Gone => "gone",
            InstanceState::Other => "other",
        };
    PortStatus "status of a port" [PortStatus::Active, PortStatus::Down, PortStatus::Unknown], |status| match status {
        PortStatus::Active => "active",
        PortStatus::Down => "down",
        PortStatus::Unknown => "unknown",
    };
    Ready "Ready condition" [Ready::True, Ready::False, Ready::Unknown], |ready| match ready {
        Ready::True => "true",
        Ready::False => "false",
        Ready::Unknown => "unknown",
    };
    Scope "scope of a listing" [Scope::Full, Scope::Changes], |scope| match scope {
        Scope::Full => "full",
        Scope::Changes => "changes",
    };
    Mode "mode of a remedy" [Mode::Off, Mode::Propose, Mode::Act], |mode| match mode {
        Mode::Off => "off",
        Mode::Propose => "propose",
        Mode::Act => "act",
    };
    ReadErrorKind "kind of a failed read"
        [
            ReadErrorKind::Unauthorized, ReadErrorKind::Forbidden, ReadErrorKind::Throttled,
            ReadErrorKind::Unavailable, ReadErrorKind::TimedOut, ReadErrorKind::Incomplete,
            ReadErrorKind::Malformed, ReadErrorKind::Gap,
        ],
        |kind| match kind {
            ReadErrorKind::Unauthorized => "unauthorized",
            ReadErrorKind::Forbidden => "forbidden",
            ReadErrorKind::Throttled => "throttled",
            ReadErrorKind::Unavailable => "unavailable",
            ReadErrorKind::TimedOut => "timed-out",
            ReadErrorKind::Incomplete => "incomplete",
            ReadErrorKind::Malformed => "malformed",
            ReadErrorKind::Gap => "gap",
        };
}

impl Mirror for (CloudName, RouterId) {
    type Wire = (Arc<str>, Arc<str>);

    fn out(&self) -> Self::Wire {
        (self.0.shared(), self.1.shared())
    }

    fn back(wire: Self::Wire) -> Result<Self, FromWireError> {
        Ok((CloudName::new(wire.0), RouterId::new(wire.1)))
    }
}
