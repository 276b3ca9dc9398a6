//! A join that ends only when the Node exists and stays: the agent's loop, ordered to join, until it says how it ended.
//!
//! The end is one of three. The Node is Ready and has stayed; or the agent leaves the machine alone, for a reason that an
//! operator has to settle; or attempts or time are used up. For reasons that pass by themselves (no server answers yet,
//! an operator's own join is under way) the loop waits.

use std::ops::ControlFlow;
use std::time::Duration;

use reveille_agent::effect::{Report, UNDONE};
use reveille_agent::rejoin::Blocker;
use reveille_agent::{Event, Settings};
use reveille_core::model::time::{Span, Time};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::driver::{Driver, Said};
use crate::executor::Tokens;

/// So many checks in a row were answered by an untrusted server: one server of several may be about to be replaced.
const STRANGERS_MOST: u32 = 3;

/// How a join ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The Node exists, is Ready, and has stayed so.
    Joined,
    /// The agent does nothing to this machine: the reason.
    LeftAlone(Blocker),
    /// The server that answers is not the right API server, and waiting does not help.
    Stranger(String),
    /// All attempts failed: their number.
    GaveUp(u32),
    /// The time is over: the last known obstacle.
    Late(String),
}

/// The agent's settings while an operator waits for a join: it inspects often, and tries again soon.
pub fn settings(dwell: Span) -> Settings {
    Settings {
        check_every: Span::from_s(5),
        api_timeout: Span::from_s(10),
        // A cloud controller that does not know the machine deletes its Node within seconds: an agent that inspects
        // seldom sees none come.
        inspect_every: Span::from_s(1),
        backoff: Span::from_s(10),
        backoff_max: Span::from_min(2),
        back_within: Span::from_min(2),
        peer_timeout: Span::from_s(15),
        dwell,
        ..Settings::default()
    }
}

/// Joins. `listen` gets every message on the way.
pub async fn join<T: Tokens + 'static>(
    driver: Driver<T>,
    within: Duration,
    mut listen: impl FnMut(Time, &Said),
) -> Ended {
    let (sender, orders) = mpsc::channel(1);
    // There is room for one event, and no other task sends.
    sender.try_send(Event::Ordered).ok();
    let mut last = "nothing was learned yet".to_owned();
    let mut strangers = 0;
    let run = driver.run(orders, |at, said| {
        listen(at, said);
        note(&mut last, said);
        if let Said::Api(answered) = said {
            let stranger = answered.as_ref().filter(|unanswered| unanswered.lasts);
            strangers = stranger.map_or(0, |_| strangers + 1);
            if let Some(stranger) = stranger.filter(|_| strangers >= STRANGERS_MOST) {
                return ControlFlow::Break(Ended::Stranger(stranger.why.clone()));
            }
        }
        match said {
            Said::Report(Report::Back) => ControlFlow::Break(Ended::Joined),
            Said::Report(Report::GaveUp(attempts)) => ControlFlow::Break(Ended::GaveUp(*attempts)),
            Said::Report(Report::Blocked(blocker)) if !passes(*blocker) => {
                ControlFlow::Break(Ended::LeftAlone(*blocker))
            }
            _ => ControlFlow::Continue(()),
        }
    });
    let ended = timeout(within, run).await.ok();
    drop(sender);
    ended.unwrap_or(Ended::Late(last))
}

/// True when the reason may end without an operator's action.
const fn passes(blocker: Blocker) -> bool {
    match blocker {
        Blocker::NotProved(_)
        | Blocker::ClockWrong
        | Blocker::JoinUnderWay
        | Blocker::NeverJoined
        | Blocker::CannotTell
        | Blocker::NotLooked => true,
        Blocker::Leaving(_)
        | Blocker::ControlPlane
        | Blocker::NameTaken
        | Blocker::AnotherCluster
        | Blocker::AnotherClusterSilent => false,
    }
}

/// Notes the obstacle, as far as it was reported.
fn note(last: &mut String, said: &Said) {
    match said {
        Said::Api(Some(unanswered)) => unanswered.why.clone_into(last),
        Said::Undone(_, why) | Said::MemoryFailed(why) => why.clone_into(last),
        // The reason of a verb that was not carried out was reported already.
        Said::Report(Report::Failed(_, UNDONE, _)) => {}
        Said::Report(report @ (Report::Blocked(_) | Report::Failed(..))) => *last = report.to_string(),
        Said::Found(found) => {
            if let Some(awaits) = &found.awaits {
                awaits.clone_into(last);
            } else if !found.ready_message.is_empty() {
                *last = format!("its node is not Ready for long enough: {}", found.ready_message);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
