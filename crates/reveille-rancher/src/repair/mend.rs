//! Mend in place: one edit, then a watch over its effect, and the way back.
//!
//! ```text
//!  safeguards hold, twice ─▶ copy ─▶ one PUT ─▶ plan came, cluster quiet, twice ─▶ repaired
//!                                   └─ no plan in time, or etcd is to be replaced ─▶ both out again
//! ```
//!
//! After the plan came, there is no way back: while the cluster works on the plan, its host is part of the cluster, and Rancher
//! would empty the host when the parts are taken out. The repair waits for that, and hands over to a person where it does not
//! end.
//!
//! The repair edits only a record that has neither of the two parts, so that the way back is to have neither again. The record's
//! content at a look says how far the edit is, whichever process carried the write out.

use reveille_core::model::time::Time;

use super::journal::{Journal, Next, Seen};
use super::observation::Observation;
use super::safeguard::{Safeguard, stands};
use super::safeguards::against_mend;
use super::{Act, ActKind, Closing, Draft, Order, Pace};
use crate::model::Record;

/// What Rancher says when the edit would replace etcd's members.
pub(super) const REPLACED: &str = "Etcd plane nodes are replaced";

/// What comes next.
pub(super) fn next(
    order: &Order,
    pace: Pace,
    journal: &Journal,
    seen: &mut Seen,
    now: Time,
    observation: &Observation,
) -> Next {
    let Some((record, draft)) = journal.written() else {
        return before(order, pace, journal, seen, now, observation);
    };
    if observation.sample.records.is_none() || observation.sample.garbled > 0 {
        seen.clear_since = None;
        return Next::Wait("for records to be read".to_owned());
    }
    let found = observation.sample.records.iter().flatten().find(|(name, _)| *name == record);
    let Some((_, found)) = found else { return Next::Stop(format!("the record {record} is gone")) };
    let is_one = observation.records(order, &journal.ips(order, observation)).len() == 1;
    if stands(Safeguard::StillOne) && (found.deleting.is_some() || !is_one) {
        return Next::Stop(format!("the record {record} is on its way out, or has another beside it"));
    }
    let has_none = found.custom_config.is_none() && found.rke_node.is_none();
    if journal.may_have_begun(ActKind::PutBack) {
        return match (has_none, draft.is_in(found)) {
            (true, _) => Next::Close(Closing::PutBack),
            (false, true) => Next::Act(back(found, draft)),
            _ if !stands(Safeguard::OwnEdit) => Next::Act(back(found, draft)),
            (false, false) => Next::Stop(OTHERS.to_owned()),
        };
    }
    if has_none {
        if stands(Safeguard::NotAgain) && journal.was_taken(ActKind::Write) {
            return Next::Stop(
                "what was written is not there any more: another client removed it".to_owned(),
            );
        }
        // It did not arrive: from the beginning, with every safeguard, on the revision of now.
        return before(order, pace, journal, seen, now, observation);
    }
    if stands(Safeguard::OwnEdit) && !draft.is_in(found) {
        return Next::Stop(OTHERS.to_owned());
    }
    // If another client takes the edit out again, the repair begins again, with two looks of its own.
    seen.agreed_since = None;
    let is_gone = observation.node(order).is_none();
    watch(pace, journal, seen, now, observation, (found, draft, is_gone))
}

const OTHERS: &str = "another client wrote these fields meanwhile; an operator has to look";

fn back(record: &Record, draft: &Draft) -> Act {
    Act::PutBack {
        record: record.name.clone(),
        uid: record.uid.clone(),
        revision: record.revision.clone(),
        draft: draft.clone(),
    }
}

fn before(
    order: &Order,
    pace: Pace,
    journal: &Journal,
    seen: &mut Seen,
    now: Time,
    observation: &Observation,
) -> Next {
    let ips = journal.ips(order, observation);
    let (against, draft) = against_mend(order, observation, &ips);
    let (true, Some(draft)) = (against.is_empty(), draft) else {
        seen.agreed_since = None;
        return Next::Stop(against.join("; "));
    };
    let records = observation.records(order, &ips);
    let (Some(node), Some(record)) = (observation.node(order), records.first()) else {
        return Next::Stop("its Node or its record is not there".to_owned());
    };
    if stands(Safeguard::SameNode) && journal.node_uid().is_some_and(|uid| uid != node.uid.as_str()) {
        return Next::Stop("its Node is another one than the repair was begun for".to_owned());
    }
    if !seen.agrees(now, pace) && stands(Safeguard::SecondLook) {
        return Next::Wait("for a second look that agrees".to_owned());
    }
    if stands(Safeguard::CopyFirst) && !journal.has_done(ActKind::Save) {
        return Next::Act(Act::Save { records: vec![record.name.clone()] });
    }
    Next::Act(Act::Write {
        record: record.name.clone(),
        uid: record.uid.clone(),
        revision: record.revision.clone(),
        draft,
    })
}

/// It is written.
fn watch(
    pace: Pace,
    journal: &Journal,
    seen: &mut Seen,
    now: Time,
    observation: &Observation,
    (record, draft, is_gone): (&Record, &Draft, bool),
) -> Next {
    let is_replaced =
        observation.sample.cluster.conditions.values().any(|condition| condition.message.contains(REPLACED));
    let late = journal.last(ActKind::Write).is_some_and(|at| now.since(at) > pace.plan_within);
    if is_replaced {
        return Next::Act(back(record, draft));
    }
    let busy =
        observation.unquiet().or_else(|| is_gone.then(|| "for its Node, which is not there".to_owned()));
    if record.has_plan && busy.is_none() {
        let since = *seen.clear_since.get_or_insert(now);
        if now.since(since) >= pace.apart || !stands(Safeguard::Holds) {
            return Next::Close(Closing::Mended);
        }
        return Next::Wait("for a second look that it holds".to_owned());
    }
    seen.clear_since = None;
    if is_gone && late {
        return Next::Stop("its record is written, and its Node is gone".to_owned());
    }
    // The plan came, and the cluster works on it: a client that took the parts out now would have Rancher drop and empty the
    // host.
    let is_applied = record.has_plan && !observation.has_failed() && stands(Safeguard::PlanTime);
    if (late || !stands(Safeguard::PlanTime)) && !is_applied {
        return Next::Act(back(record, draft));
    }
    Next::Wait(busy.unwrap_or_else(|| "for its plan".to_owned()))
}
