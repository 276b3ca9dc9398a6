//! What a provider says of how it hosts an instance, as JSON: what it does not say is left out.

use std::sync::Arc;

use reveille_core::model::hosting::{Check, Checks, GroupPhase, Hosting, Notice, NoticeKind, OwnerGroup};

use crate::ledger::FromWireError;
use crate::ledger::mirror::{Mirror, mirror_struct, words};

mirror_struct! {
    WireHosting of Hosting {
        #[serde(default = "unchecked", skip_serializing_if = "says_nothing")]
        checks: Checks,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<Notice>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        spot: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<OwnerGroup>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        no_identity: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        loses_disks: bool,
    }
}

mirror_struct! {
    WireChecks of Checks {
        #[serde(default = "unknown", skip_serializing_if = "is_unknown")]
        host: Check,
        #[serde(default = "unknown", skip_serializing_if = "is_unknown")]
        guest: Check,
        #[serde(default = "unknown", skip_serializing_if = "is_unknown")]
        disk: Check,
    }
}

fn says_nothing(checks: &WireChecks) -> bool {
    *checks == Checks::default().out()
}

fn is_unknown(word: &Arc<str>) -> bool {
    &**word == "unknown"
}

fn unknown() -> Arc<str> {
    Arc::from("unknown")
}

fn unchecked() -> WireChecks {
    Checks::default().out()
}

mirror_struct! {
    WireNotice of Notice {
        kind: NoticeKind,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<Arc<str>>,
        text: Arc<str>,
    }
}

mirror_struct! {
    WireOwnerGroup of OwnerGroup {
        name: Arc<str>,
        phase: GroupPhase,
        word: Arc<str>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        protected: bool,
    }
}

words! {
    Check "outcome of a check" [Check::Unknown, Check::Pending, Check::Passed, Check::Impaired], |check| match check {
        Check::Unknown => "unknown",
        Check::Pending => "pending",
        Check::Passed => "passed",
        Check::Impaired => "impaired",
    };
    NoticeKind "announcement of a provider" NoticeKind::ALL, NoticeKind::name;
    GroupPhase "phase in a group" GroupPhase::ALL, GroupPhase::name;
}
