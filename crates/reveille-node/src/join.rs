//! A join that is over only when the node is there and stays: the agent's loop, ordered to join, until it says how it ended.
//!
//! The end is one of three: the node is Ready and has stayed; the machine is left alone, for a reason that a person has to
//! settle; or attempts or time are used up. Reasons that pass by themselves (nobody answers yet, a join by hand is under way)
//! are waited for.

use std::ops::ControlFlow;
use std::time::Duration;

use reveille_agent::effect::{Report, UNDONE};
use reveille_agent::rejoin::Hold;
use reveille_agent::{Event, Settings};
use reveille_core::model::time::{Span, Time};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::driver::{Driver, Said};
use crate::hands::Tokens;

/// So many checks in a row were answered by a stranger: one server of several may be on its way out.
const STRANGERS_MOST: u32 = 3;

/// How a join ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The node is there, Ready, and has stayed.
    Joined,
    /// Nothing is done to this machine, and why.
    LeftAlone(Hold),
    /// Who answers as the API server is not who was meant, and waiting does not mend that.
    Stranger(String),
    /// So many attempts came to nothing.
    GaveUp(u32),
    /// Its time is over, and the last thing that was known to stand against it.
    Late(String),
}

/// The agent's settings while somebody waits for a join: it looks often, and tries again soon.
pub fn settings(dwell: Span) -> Settings {
    Settings {
        check_every: Span::from_s(5),
        api_timeout: Span::from_s(10),
        // A cloud controller that does not know the machine takes its node within seconds: who looks seldom sees none come.
        inspect_every: Span::from_s(1),
        backoff: Span::from_s(10),
        backoff_max: Span::from_min(2),
        back_within: Span::from_min(2),
        peer_timeout: Span::from_s(15),
        dwell,
        ..Settings::default()
    }
}

/// Joins. Everything that is heard on the way goes to `listen`.
pub async fn join<T: Tokens + 'static>(
    driver: Driver<T>,
    within: Duration,
    mut listen: impl FnMut(Time, &Said),
) -> Ended {
    let (sender, orders) = mpsc::channel(1);
    // There is room for one, and nobody else sends.
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
            Said::Report(Report::Holds(hold)) if !passes(*hold) => {
                ControlFlow::Break(Ended::LeftAlone(*hold))
            }
            _ => ControlFlow::Continue(()),
        }
    });
    let ended = timeout(within, run).await.ok();
    drop(sender);
    ended.unwrap_or(Ended::Late(last))
}

/// It may be over without anybody doing anything.
const fn passes(hold: Hold) -> bool {
    match hold {
        Hold::NotProved(_)
        | Hold::ClockWrong
        | Hold::JoinUnderWay
        | Hold::NeverJoined
        | Hold::CannotTell
        | Hold::NotLooked => true,
        Hold::Leaving(_)
        | Hold::ControlPlane
        | Hold::NameTaken
        | Hold::AnotherCluster
        | Hold::AnotherClusterSilent => false,
    }
}

/// What stands against it, as far as was said.
fn note(last: &mut String, said: &Said) {
    match said {
        Said::Api(Some(unanswered)) => unanswered.why.clone_into(last),
        Said::Undone(_, why) | Said::MemoryFailed(why) => why.clone_into(last),
        // What could not be carried out was said with its reason.
        Said::Report(Report::Failed(_, UNDONE, _)) => {}
        Said::Report(report @ (Report::Holds(_) | Report::Failed(..))) => *last = report.to_string(),
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
