//! Verdicts from a log that an operator gave us: audit log, or the API server's own.
//!
//! ```text
//!  Counts ─▶ hot ─▶ Verdict, with the writers where the log names them
//! ```

use reveille_core::model::time::Time;

use crate::class;
use crate::counts::{Client, Counted, Counts};
use crate::machine::Machine;
use crate::verdict::{Heat, Rate, Subject, Suspect, Verdict, Witness};

/// Verdicts of one log.
const VERDICTS_MAX: usize = 20;
/// Fewer writes than this are told and not called a rate.
const WRITES_MIN: u64 = 10;

/// What is hot in this log.
pub fn verdicts(counts: &Counts, by: Witness, now: Time) -> Vec<Verdict> {
    let mut hot = counts.hot();
    hot.truncate(VERDICTS_MAX);
    hot.into_iter().map(|counted| verdict(counted, by, now)).collect()
}

fn verdict(counted: Counted, by: Witness, now: Time) -> Verdict {
    let Counted { object, writes, over, share, by: clients, verbs } = counted;
    let mut notes = vec![format!("{share} % of all writes in the log, by {}", verbs.join(" and "))];
    if by == Witness::Klog {
        notes.push(
            "the API server's own log names no writer; each request is counted at the aggregator, once"
                .to_owned(),
        );
    }
    let alike = clients.len() > 1 && clients.iter().all(|(client, _)| client.agent == clients[0].0.agent);
    if alike {
        notes.push("one program on several addresses or as several users: two agents with one identity look like this".to_owned());
    }
    Verdict {
        machine: Machine::of_name(&object),
        subject: Subject::Object(object),
        heat: if writes < WRITES_MIN { Heat::Warm } else { Heat::Hot },
        since: now,
        rates: vec![Rate { by, writes, over }],
        class: class::of_clients(clients.len()),
        suspects: clients.into_iter().map(|(client, writes)| suspect(&client, writes, by)).collect(),
        flips: Vec::new(),
        pressure: None,
        notes,
    }
}

fn suspect(client: &Client, writes: u64, by: Witness) -> Suspect {
    let agent = client.agent.split(' ').next().unwrap_or_default();
    let name = format!("{agent} as {} from {}", client.user, client.addresses);
    Suspect { name, writes, seen_in: by.name() }
}
