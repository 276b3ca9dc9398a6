//! Masks secrets in a machine's messages, before the record, the log and the engine get them.
//!
//! An agent masks its own messages. An agent of another maker, or one under an attacker's control, may not. It would
//! write a neighbour's token into this server's records by quoting a log. Words for programs (codes, stages, ids) stay as
//! they are.

use reveille_core::diagnose::console::mask_secrets;
use reveille_wire::agent::AgentFrame;
use reveille_wire::agent::text::{List, Text};

fn mask<const MAX: usize, const LINES: bool>(text: &mut Text<MAX, LINES>) {
    let masked = mask_secrets(text).into_owned();
    if masked != **text {
        *text = Text::cut(&masked);
    }
}

/// The same frame, with secrets in its sentences masked.
pub(super) fn masked(mut frame: AgentFrame) -> AgentFrame {
    match &mut frame {
        AgentFrame::Stage(report) => {
            if let Some(error) = &mut report.error {
                mask(&mut error.text);
            }
        }
        AgentFrame::Heartbeat(beat) => {
            if let Some(account) = &mut beat.account {
                if let Some(work) = &mut account.work {
                    mask(&mut work.what);
                }
                if let Some(blocker) = &mut account.blocker {
                    mask(&mut blocker.text);
                }
                let announced = account.announced.iter().cloned().map(|mut one| {
                    mask(&mut one);
                    one
                });
                account.announced = List::first(announced);
            }
        }
        AgentFrame::Step(outcome) => mask(&mut outcome.tail),
        AgentFrame::Done(done) => mask(&mut done.tail),
        AgentFrame::Hello(_) | AgentFrame::Evidence(_) | AgentFrame::TokenWanted {} | AgentFrame::Unknown => {
        }
    }
    frame
}

#[cfg(test)]
mod tests {
    use reveille_wire::agent::frame::{
        Account, Blocker, Done, Ended, Heartbeat, StageReport, StageStep, Trouble,
    };
    use reveille_wire::agent::plan::{StepOutcome, StepState};

    use super::*;

    #[test]
    fn no_sentence_of_a_machine_keeps_a_secret() {
        let said = "kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef\npassword=hunter22";
        let error = Some(Trouble { code: "TOKEN_REFUSED".into(), text: said.into() });
        let stage = reveille_wire::agent::StageWord(reveille_core::model::stage::Stage::Authenticate);
        let blocker = Some(Blocker { kind: "other".into(), text: said.into() });
        let account = Account { blocker, announced: List::first([said.into()]), ..Account::default() };
        let frames = [
            AgentFrame::Stage(StageReport {
                seq: 1,
                stage,
                step: StageStep::Tried,
                attempts: 1,
                error,
                stamp: "".into(),
            }),
            AgentFrame::Heartbeat(Heartbeat { stage: None, joined: false, account: Some(account) }),
            AgentFrame::Step(StepOutcome { plan: 1, step: 0, state: StepState::Failed, tail: said.into() }),
            AgentFrame::Done(Done { id: 1, outcome: Ended::Failed, tail: said.into() }),
        ];
        for frame in frames {
            let kept = serde_json::to_string(&masked(frame)).unwrap();
            assert!(!kept.contains("0123456789abcdef") && !kept.contains("hunter22"), "{kept}");
            assert!(kept.contains("[masked]"), "{kept}");
        }
    }
}
