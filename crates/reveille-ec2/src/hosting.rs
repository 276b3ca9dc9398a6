//! What AWS says of how it hosts an instance, in the model's words.
//!
//! ```text
//! status checks, events ─┐
//! Auto Scaling          ─┼─▶ Hosting; none where AWS says nothing of note
//! spot request, type    ─┤
//! the instance itself   ─┘
//! ```
//!
//! EC2 tells a rebalance recommendation to the instance and to EventBridge, and not through the API: it is not seen here.

use std::sync::Arc;

use reveille_cloud::text::message;
use reveille_core::model::hosting::{Check, Checks, GroupPhase, Hosting, Notice, NoticeKind, OwnerGroup};
use reveille_core::model::instance::{Instance, InstanceState};

use crate::instance::{Surroundings, Tables, WireInstance};
use crate::reply::filled;
use crate::status::{Checked, WireEvent};
use reveille_core::model::intern::Texts;

/// The instance in the model's words, with how it is hosted.
pub(crate) fn hosted(wire: WireInstance, around: &Surroundings, tables: &mut Tables) -> Instance {
    let hosting = of(&wire, around, &mut tables.texts);
    wire.into_instance(hosting, tables)
}

/// How the instance is hosted.
fn of(wire: &WireInstance, around: &Surroundings, texts: &mut Texts) -> Option<Arc<Hosting>> {
    let status = around.statuses.get(&wire.instance_id);
    let checks = status.map_or_else(Checks::default, |status| Checks {
        host: check(status.system_status.as_ref()),
        guest: check(status.instance_status.as_ref()),
        disk: check(status.attached_ebs_status.as_ref()),
    });
    let mut notices: Vec<Notice> = Vec::new();
    notices.extend(around.spots.get(&wire.instance_id).and_then(|code| interruption(code, texts)));
    if let Some(status) = status {
        notices.extend(status.events_set.items.iter().filter_map(|event| notice(event, texts)));
    }
    let hosting = Hosting {
        checks,
        notices,
        ended: ended(wire, texts),
        spot: wire.is_spot(),
        group: group(wire, around, texts),
        no_identity: wire.state() != InstanceState::Gone && !wire.has_identity(),
        loses_disks: wire.root_device_type.as_deref() == Some("instance-store")
            || wire.instance_type.as_ref().is_some_and(|kind| around.disks.contains(kind)),
    };
    (hosting != Hosting::default()).then(|| Arc::new(hosting))
}

fn check(said: Option<&Checked>) -> Check {
    match said.map(|checked| checked.status.as_str()) {
        Some("ok") => Check::Passed,
        Some("impaired") => Check::Impaired,
        Some("initializing") => Check::Pending,
        _ => Check::Unknown,
    }
}

/// The request's code while the instance still runs.
fn interruption(code: &str, texts: &mut Texts) -> Option<Notice> {
    code.starts_with("marked-for-").then(|| Notice {
        kind: NoticeKind::Interruption,
        not_before: None,
        text: texts.get(&message(&format!("spot request {code}"))),
    })
}

/// Events that are over stay listed for a week or two, and say so at their beginning.
fn notice(event: &WireEvent, texts: &mut Texts) -> Option<Notice> {
    let over = ["[Completed]", "[Canceled]"];
    if over.iter().any(|word| event.description.trim_start().starts_with(word)) {
        return None;
    }
    let kind = match event.code.as_str() {
        "instance-reboot" | "system-reboot" => NoticeKind::Reboot,
        "instance-stop" => NoticeKind::Stop,
        "instance-retirement" => NoticeKind::Retire,
        // `system-maintenance`, and whatever is new.
        _ => NoticeKind::Maintenance,
    };
    let text = match event.description.trim() {
        "" => event.code.clone(),
        words => format!("{}: {words}", event.code),
    };
    let not_before = filled(event.not_before.clone()).map(|time| texts.get(&time));
    Some(Notice { kind, not_before, text: texts.get(&message(&text)) })
}

/// Why AWS ended or stopped it. What a user did, or the guest itself, is not AWS's doing.
fn ended(wire: &WireInstance, texts: &mut Texts) -> Option<Arc<str>> {
    let state = wire.state();
    let reason =
        wire.state_reason.as_ref().filter(|_| state.is_leaving() || state == InstanceState::Stopped)?;
    let by_others = ["Client.User", "Client.InstanceInitiated"];
    if reason.code.is_empty() || by_others.iter().any(|begin| reason.code.starts_with(begin)) {
        return None;
    }
    let text = match reason.message.trim() {
        "" => reason.code.clone(),
        words if words.starts_with(&reason.code) => words.to_owned(),
        words => format!("{}: {words}", reason.code),
    };
    Some(texts.get(&message(&text)))
}

/// The group by Auto Scaling's word; by the instance's tag where Auto Scaling does not know it.
fn group(wire: &WireInstance, around: &Surroundings, texts: &mut Texts) -> Option<OwnerGroup> {
    let (name, word, protected) = match around.members.get(&wire.instance_id) {
        Some(member) => (member.group.as_str(), member.state.as_str(), member.protected),
        None => (wire.group()?, "", false),
    };
    Some(OwnerGroup { name: texts.get(name), phase: phase(word), word: texts.get(word), protected })
}

/// A group's warm pool has machines that were made ready, and are stopped, asleep, or run without serving.
fn phase(word: &str) -> GroupPhase {
    let (is_warm, word) = word.strip_prefix("Warmed:").map_or((false, word), |word| (true, word));
    match word {
        "InService" => GroupPhase::Kept,
        "Standby" | "EnteringStandby" | "Detaching" | "Detached" => GroupPhase::Apart,
        _ if word.starts_with("Terminat") => GroupPhase::Leaving,
        _ if is_warm => GroupPhase::Reserve,
        _ if word.starts_with("Pending") => GroupPhase::Coming,
        // Whatever is new.
        _ => GroupPhase::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_auto_scaling_state_has_a_phase_and_new_is_unknown() {
        let cases = [
            ("InService", GroupPhase::Kept),
            ("Pending", GroupPhase::Coming),
            ("Pending:Wait", GroupPhase::Coming),
            ("Terminating", GroupPhase::Leaving),
            ("Terminating:Proceed", GroupPhase::Leaving),
            ("Terminated", GroupPhase::Leaving),
            ("Standby", GroupPhase::Apart),
            ("Detaching", GroupPhase::Apart),
            ("Warmed:Pending:Wait", GroupPhase::Reserve),
            ("Warmed:Stopped", GroupPhase::Reserve),
            ("Warmed:Running", GroupPhase::Reserve),
            ("Warmed:Terminating:Wait", GroupPhase::Leaving),
            ("ReplacingRootVolume", GroupPhase::Unknown),
            ("", GroupPhase::Unknown),
        ];
        for (word, expected) in cases {
            assert_eq!(phase(word), expected, "{word}");
        }
    }

    #[test]
    fn an_event_that_is_over_is_no_notice() {
        let mut texts = Texts::default();
        let mut said = |code: &str, description: &str| {
            let event = WireEvent {
                code: code.to_owned(),
                description: description.to_owned(),
                not_before: Some("2026-12-01T00:00:00.000Z".to_owned()),
            };
            notice(&event, &mut texts).map(|notice| notice.to_string())
        };
        assert_eq!(said("system-reboot", "[Completed] Scheduled reboot"), None);
        assert_eq!(
            said("instance-retirement", "[Canceled] The instance is running on degraded hardware"),
            None
        );
        assert_eq!(
            said("instance-retirement", "The instance is running on degraded hardware").as_deref(),
            Some(
                "retire: instance-retirement: The instance is running on degraded hardware, not before 2026-12-01T00:00:00.000Z"
            )
        );
        assert_eq!(
            said("new-thing", "").as_deref(),
            Some("maintenance: new-thing, not before 2026-12-01T00:00:00.000Z")
        );
    }
}
