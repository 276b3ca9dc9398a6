//! Which of the fourteen stages a machine entered and left, when, how often it tried there, and what went wrong: told from
//! two sides.
//!
//! One side is ours: what clouds and cluster show. The other is the machine's: what its agent says. They are kept apart,
//! because they may differ, and where they do a person wants to know. Moments are ours on both sides: when we saw it, or
//! when we heard of it. At most one row for each stage and side, so a trace is bounded however long a join takes.

use serde::{Deserialize, Serialize};

use super::agent::{StageError, StageSaid};
use super::stage::Stage;
use super::time::Time;

/// A machine's way so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trace {
    /// As clouds and cluster show it, in order of the stages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Passage>,
    /// As its agent tells it, in order of the stages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Passage>,
}

/// One stage of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Passage {
    /// Which.
    pub stage: Stage,
    /// When we first saw or heard that it is there; the last time, where it came back to it.
    pub entered: Time,
    /// When we saw or heard that it went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Time>,
    /// How often it came there, or tried there.
    pub attempts: u32,
    /// The last thing that went wrong there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<StageError>,
}

impl Trace {
    /// Clouds and cluster show the machine in this stage now. True when that is news.
    pub fn shows(&mut self, stage: Stage, now: Time) -> bool {
        let open = self.seen.iter().rfind(|row| row.left.is_none()).map(|row| row.stage);
        if open == Some(stage) {
            return false;
        }
        for row in self.seen.iter_mut().filter(|row| row.stage != stage) {
            row.left.get_or_insert(now);
        }
        match self.seen.binary_search_by_key(&stage, |row| row.stage) {
            Ok(place) => {
                let row = &mut self.seen[place];
                (row.entered, row.left, row.attempts) = (now, None, row.attempts.saturating_add(1));
            }
            Err(place) => {
                self.seen
                    .insert(place, Passage { stage, entered: now, left: None, attempts: 1, error: None });
            }
        }
        true
    }

    /// Its agent says this of its stages. True when a stage was entered or left, or another error stands in one.
    pub fn hears(&mut self, stages: &[StageSaid], now: Time) -> bool {
        let mut news = false;
        for said in stages {
            let row = match self.said.binary_search_by_key(&said.stage, |row| row.stage) {
                Ok(place) => &mut self.said[place],
                Err(place) => {
                    news = true;
                    let row =
                        Passage { stage: said.stage, entered: now, left: None, attempts: 0, error: None };
                    self.said.insert(place, row);
                    &mut self.said[place]
                }
            };
            match (said.passed, row.left) {
                (true, None) => (row.left, news) = (Some(now), true),
                (false, Some(_)) => (row.entered, row.left, news) = (now, None, true),
                _ => {}
            }
            let code = |error: &Option<StageError>| error.as_ref().map(|error| error.code.clone());
            news |= code(&row.error) != code(&said.error);
            row.attempts = said.attempts;
            row.error.clone_from(&said.error);
        }
        // Stages that the agent no longer reports are of an earlier join: the agent has begun to join again from the start.
        let before = self.said.len();
        self.said.retain(|row| stages.iter().any(|said| said.stage == row.stage));
        news || self.said.len() != before
    }

    /// The clock went back: nothing was seen later than now.
    pub fn go_back_to(&mut self, now: Time) {
        for row in self.seen.iter_mut().chain(&mut self.said) {
            row.entered = row.entered.min(now);
            row.left = row.left.map(|at| at.min(now));
        }
    }

    /// Nothing is known.
    pub const fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.said.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(s: i64) -> Time {
        Time::from_ms(s * 1000)
    }

    fn said(stage: Stage, passed: bool, attempts: u32, code: Option<&str>) -> StageSaid {
        StageSaid { stage, passed, attempts, error: code.map(|code| StageError::new(code, "why")) }
    }

    #[test]
    fn stage_is_left_on_change_and_entered_again_on_return() {
        let mut trace = Trace::default();
        assert!(trace.shows(Stage::Provision, at(1)));
        assert!(!trace.shows(Stage::Provision, at(2)));
        assert!(trace.shows(Stage::OsBoot, at(3)));
        assert!(trace.shows(Stage::Stay, at(9)));
        assert!(trace.shows(Stage::OsBoot, at(20)), "its node is gone");
        let rows: Vec<_> =
            trace.seen.iter().map(|row| (row.stage, row.entered, row.left, row.attempts)).collect();
        assert_eq!(
            rows,
            [
                (Stage::Provision, at(1), Some(at(3)), 1),
                (Stage::OsBoot, at(20), None, 2),
                (Stage::Stay, at(9), Some(at(20)), 1),
            ]
        );
    }

    #[test]
    fn agent_stage_report_is_dated_on_receipt_and_is_news_once() {
        let mut trace = Trace::default();
        assert!(trace.hears(&[said(Stage::Trust, false, 1, None)], at(5)));
        assert!(!trace.hears(&[said(Stage::Trust, false, 2, None)], at(6)), "another attempt is no news");
        assert!(trace.hears(&[said(Stage::Trust, false, 3, Some("CA_PIN_MISMATCH"))], at(7)));
        assert!(
            trace.hears(&[said(Stage::Trust, true, 3, None), said(Stage::Register, false, 1, None)], at(8))
        );
        assert_eq!(trace.said[0].entered, at(5));
        assert_eq!(trace.said[0].left, Some(at(8)));
        assert_eq!(trace.said[1].entered, at(8));
        assert!(trace.hears(&[said(Stage::Trust, false, 1, None)], at(9)), "it starts from the beginning");
        assert_eq!(trace.said.len(), 1);
    }
}
