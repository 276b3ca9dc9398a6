//! `rancher abandon`: an operator ends a repair for good that was begun and stopped.
//!
//! ```text
//!  repair ledger ─▶ lines of the open repair ──┐
//!  a look, where one is possible ──────────────┴▶ steps, present state, manual steps ─▶ page
//!  --yes ─▶ the roster's lock, one line into the repair ledger: Abandoned
//! ```
//!
//! The command changes no cluster. A look that fails is reported and does not stop the command, because the operator may
//! abandon a repair whose cluster is gone.

use anyhow::{Context as _, anyhow};
use reveille_rancher::repair::aftermath::aftermath;
use reveille_rancher::repair::{Closing, Line, Order, Path};
use reveille_record::read_only;
use reveille_wire::report::{RancherAbandonReport, RancherStepReport, Report};

use super::repair::{Entry, Site, Taken, copies_folder, journal_folder, take, the_roster};
use crate::cli::failure::Failure;
use crate::cli::rancher::Abandon;
use crate::command::{Answer, Context, printing};

/// An open repair: its kind, and its lines in the repair ledger.
type Open = (Path, Vec<Line>);

/// Shows the repair, or ends it with `--yes`.
pub(super) async fn abandon(context: &Context, args: &Abandon) -> Result<Answer, Failure> {
    let (checked, rancher) = the_roster(context)?;
    let state_dir = context.state_dir(&checked.roster.name)?;
    // With --yes the repair ledger is read under the lock, because a process that continues the repair holds the lock.
    let mut taken = if args.yes { Some(take(&state_dir)?) } else { None };
    let read;
    let entries: &[Entry] = match &taken {
        Some(taken) => &taken.entries,
        None => {
            read = read_only::<Entry>(&journal_folder(&state_dir))
                .context("cannot read the journal of repairs")?;
            &read.records
        }
    };
    let (path, lines) = open_of(entries, &args.node)?;
    let order = order_of(&lines)
        .ok_or_else(|| Failure::internal(anyhow!("the journal does not say what was ordered")))?;
    let seen = match Site::open(&checked, &rancher, &state_dir, (&args.node, path, false)).await {
        Ok((site, _)) => site.see().await,
        Err(why) => Err(why.to_string().replace("\n  ", "; ")),
    };
    let told = aftermath(&order, &lines, seen.as_ref().ok());
    let mut now = told.now;
    if let Err(why) = &seen {
        now.push(format!("nothing could be looked at: {why}"));
    }
    let copies = copies_folder(&state_dir);
    if copies.is_dir() {
        now.push(format!("copies of records, without their secrets, are in {}", copies.display()));
    }
    if let Some(Taken { journal, .. }) = &mut taken {
        let entry = Entry { node: args.node.clone(), path, what: Line::Closed { how: Closing::Abandoned } };
        journal.append(&entry).context("cannot write the journal of repairs")?;
        journal.sync().context("cannot write the journal of repairs")?;
    }
    let step = |step: reveille_rancher::repair::aftermath::Step| RancherStepReport {
        at: step.at,
        what: step.what,
        ended: step.ended,
    };
    let report = RancherAbandonReport {
        cluster: rancher.cluster.clone(),
        node: args.node.clone(),
        way: path.word().to_owned(),
        steps: told.steps.into_iter().map(step).collect(),
        now,
        left: told.left,
        ended: taken.is_some(),
    };
    let (text, exit) = printing::print(context, Report::RancherAbandonReport(report), true)?;
    Ok(Answer { text, exit })
}

/// The open repair of this Node.
fn open_of(entries: &[Entry], node: &str) -> Result<Open, Failure> {
    let mut open: Vec<&Entry> = Vec::new();
    for entry in entries {
        match entry.what {
            Line::Closed { .. } => open.retain(|other| other.node != entry.node),
            _ => open.push(entry),
        }
    }
    let own: Vec<&Entry> = open.iter().copied().filter(|entry| entry.node == node).collect();
    let Some(first) = own.first() else {
        let failure = Failure::usage(anyhow!("no repair of {node} is open"));
        return Err(match open.first() {
            Some(other) => {
                failure.next(format!("one of {} is: reveille rancher abandon {}", other.node, other.node))
            }
            None => failure.next("none is; the next may begin"),
        });
    };
    Ok((first.path, own.iter().map(|entry| entry.what.clone()).collect()))
}

fn order_of(lines: &[Line]) -> Option<Order> {
    lines.iter().find_map(|line| match line {
        Line::Begun { order, .. } => Some(order.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use reveille_rancher::model::ClusterId;

    use super::*;

    fn entry(node: &str, what: Line) -> Entry {
        Entry { node: node.to_owned(), path: Path::Evict, what }
    }

    fn begun(node: &str) -> Line {
        let cluster = ClusterId("c-abcde".to_owned());
        Line::Begun {
            at_ms: 0,
            order: Order { cluster, node: node.to_owned(), path: Path::Evict, local_data: false },
            node_uid: "u".to_owned(),
            ips: BTreeSet::new(),
            roles: BTreeSet::new(),
        }
    }

    #[test]
    fn what_is_over_is_not_given_up_again_and_the_open_one_is_named() {
        let closed = Line::Closed { how: Closing::HandedOver };
        let entries = [
            entry("w-1", begun("w-1")),
            entry("w-1", closed.clone()),
            entry("w-2", begun("w-2")),
            entry("w-1", begun("w-1")),
            entry("w-1", Line::Closed { how: Closing::Abandoned }),
        ];
        let (path, lines) = open_of(&entries, "w-2").unwrap();
        assert_eq!((path, order_of(&lines).unwrap().node.as_str()), (Path::Evict, "w-2"));
        let said = open_of(&entries, "w-1").unwrap_err().to_string();
        assert!(said.contains("no repair of w-1 is open") && said.contains("abandon w-2"), "{said}");
        let said = open_of(&entries[..2], "w-1").unwrap_err().to_string();
        assert!(said.contains("the next may begin"), "{said}");
    }
}
