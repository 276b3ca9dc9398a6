//! `spec.timing` and `spec.limits`: ages, intervals and limits.
//!
//! The reader checks every number alone, then against related numbers. A listing that goes stale before the next one is
//! due would leave the controller without data between the two. A backoff that begins above its end never grows. A
//! missing field takes the core's default, and related numbers are compared with that.

use reveille_core::model::roster::{Limits, Timing};
use reveille_core::model::time::Span;

use super::complaint::{Complaints, Spot};
use super::section::{Field, Section};
use super::shape::{LIMITS, TIMING};
use crate::duration;

/// Reads `spec.limits`.
pub(super) fn limits(field: Option<Field<'_>>, complaints: &mut Complaints) -> Limits {
    const NONE_AT_ALL: &str =
        "write 1 or more; to stop everything set paused on the pools, or off in their repair";
    let mut limits = Limits::default();
    let Some(section) = field.and_then(|field| Section::open(&field, LIMITS, complaints)) else {
        return limits;
    };
    let mut count = |name, max| {
        let field = section.take(name)?;
        field.count((1, max), NONE_AT_ALL, complaints)
    };
    limits.at_once = count("atOnce", 1_000).unwrap_or(limits.at_once);
    limits.per_hour = count("perHour", 10_000).unwrap_or(limits.per_hour);
    limits.network_at_once = count("networkAtOnce", 1_000).unwrap_or(limits.network_at_once);
    limits.same_fault_stops_at = count("sameFaultStopsAt", 1_000).unwrap_or(limits.same_fault_stops_at);
    let share = section.take("freezeAbove").and_then(|field| field.share_pct(complaints));
    limits.freeze_above_pct = share.unwrap_or(limits.freeze_above_pct);
    limits
}

/// Reads `spec.timing`.
pub(super) fn timing(field: Option<Field<'_>>, complaints: &mut Complaints) -> Timing {
    let mut timing = Timing::default();
    let Some(section) = field.and_then(|field| Section::open(&field, TIMING, complaints)) else {
        return timing;
    };
    let before = complaints.count();
    spans(&section, &mut timing, complaints);
    let share = section.take("shrink").and_then(|field| field.share_pct(complaints));
    timing.shrink_pct = share.unwrap_or(timing.shrink_pct);
    let tries = section.take("tries").and_then(|field| {
        field.count((1, 100), "write 1 or more; to try nothing set off in the pools' repair", complaints)
    });
    timing.tries = tries.unwrap_or(timing.tries);
    if complaints.count() == before {
        neighbours(&section, &timing, complaints);
    }
    timing
}

fn spans(section: &Section<'_>, timing: &mut Timing, complaints: &mut Complaints) {
    const BUSY: &str = "more often only burdens the cloud";
    const SOME: &str = "no time at all leaves no room for anything to happen";
    const TICK: &str = "time itself is looked at every 10 s only";
    let fields: [(&'static str, &mut Span, Span, &str); 12] = [
        ("cloudPeriod", &mut timing.cloud_period, Span::from_s(5), BUSY),
        ("cloudFullPeriod", &mut timing.cloud_full_period, Span::from_s(5), BUSY),
        ("cloudStaleAfter", &mut timing.cloud_stale_after, Span::from_s(5), SOME),
        ("clusterStaleAfter", &mut timing.cluster_stale_after, Span::from_s(10), TICK),
        (
            "leaseSilentAfter",
            &mut timing.lease_silent_after,
            Span::from_s(20),
            "a kubelet renews its lease every 10 s, and one renewal may be late",
        ),
        (
            "agentSilentAfter",
            &mut timing.agent_silent_after,
            Span::from_s(60),
            "an agent that lost us tries again within a minute",
        ),
        ("pauseJump", &mut timing.pause_jump, Span::from_s(20), TICK),
        ("backoffMin", &mut timing.backoff_min, Span::from_s(1), SOME),
        ("backoffMax", &mut timing.backoff_max, Span::from_s(1), SOME),
        ("verifyWithin", &mut timing.verify_within, Span::from_s(1), SOME),
        (
            "settle",
            &mut timing.settle,
            Span::from_s(1),
            "the first sight after blindness is not to be acted on",
        ),
        ("rolloutQuiet", &mut timing.rollout_quiet, Span::from_s(1), SOME),
    ];
    for (name, value, min, why) in fields {
        let read = section.take(name).and_then(|field| field.span(min, why, complaints));
        *value = read.unwrap_or(*value);
    }
}

/// Compares related numbers. The complaint is at the position of the number that the roster has.
fn neighbours(section: &Section<'_>, timing: &Timing, complaints: &mut Complaints) {
    struct Pair {
        low: (&'static str, Span),
        high: (&'static str, Span),
        equal_is_fine: bool,
        why: &'static str,
    }
    let period = ("cloudPeriod", timing.cloud_period);
    let pairs = [
        Pair {
            low: period,
            high: ("cloudFullPeriod", timing.cloud_full_period),
            equal_is_fine: true,
            why: "a full listing is one of the listings",
        },
        Pair {
            low: period,
            high: ("cloudStaleAfter", timing.cloud_stale_after),
            equal_is_fine: false,
            why: "every listing would go stale before the next one is due",
        },
        Pair {
            low: period,
            high: ("verifyWithin", timing.verify_within),
            equal_is_fine: true,
            why: "a repair would be judged before the cloud is looked at again",
        },
        Pair {
            low: ("backoffMin", timing.backoff_min),
            high: ("backoffMax", timing.backoff_max),
            equal_is_fine: true,
            why: "the wait between tries grows from the first to the second",
        },
    ];
    for Pair { low, high, equal_is_fine, why } in pairs {
        if low.1 < high.1 || (equal_is_fine && low.1 == high.1) {
            continue;
        }
        let spot = |name| section.take(name).map(|field| field.spot);
        let written = |name, span: Span, is_written: bool| {
            let origin = if is_written { "" } else { ", the default" };
            format!("{name} ({}{origin})", duration::text(span))
        };
        let (low_spot, high_spot) = (spot(low.0), spot(high.0));
        let wrong = format!(
            "{} is {}than {}: {why}",
            written(high.0, high.1, high_spot.is_some()),
            if equal_is_fine { "shorter " } else { "not longer " },
            written(low.0, low.1, low_spot.is_some()),
        );
        let spot: Spot = high_spot.or(low_spot).unwrap_or_default();
        complaints.add(&spot, wrong, format!("make {} longer or {} shorter", high.0, low.0));
    }
}
