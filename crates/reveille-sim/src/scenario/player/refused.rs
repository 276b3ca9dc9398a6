//! A scenario whose roster is refused: nothing begins, and the roster reader's errors are all that there is to see.

use reveille_core::model::time::Span;
use reveille_wire::roster::Refusal;

use super::{Ended, Expected, Played};
use crate::drive::Counts;
use crate::scenario::Scenario;
use crate::scenario::claim::Claim;
use crate::scenario::then::{Expectation, Window};
use crate::scenario::timeline::{Line, Side};
use crate::trace::Digest;

/// The page of a refusal: each complaint a line, in the reader's own words.
pub(super) fn played(scenario: &Scenario, refusal: &Refusal) -> Played {
    let said = refusal.to_string();
    let line = |text: &str| Line {
        at: Span::ZERO,
        side: Side::Reveille,
        who: Vec::new(),
        text: text.trim_start().to_owned(),
    };
    let expected = |expected: &Expectation| Expected {
        line: expected.line,
        text: expected.text.clone(),
        ended: ended(expected, refusal),
    };
    Played {
        timeline: said.lines().map(line).collect(),
        expected: scenario.expectations.iter().map(expected).collect(),
        lasted: Span::ZERO,
        counts: Counts::default(),
        digest: Digest::default(),
    }
}

fn ended(expected: &Expectation, refusal: &Refusal) -> Ended {
    let failed = |instead: String| Ended::Failed(Span::ZERO, instead);
    let mistakes = refusal.complaints.len() + refusal.more;
    match &expected.claim {
        Claim::Mistakes(count) if *count as usize == mistakes => Ended::Held(None),
        Claim::Mistakes(_) => failed(format!("it has {mistakes}")),
        Claim::Refused(field, text) => {
            let there: Vec<_> = refusal.complaints.iter().filter(|it| it.field == *field).collect();
            if there.iter().any(|it| it.wrong.contains(text) || it.instead.contains(text)) {
                return Ended::Held(None);
            }
            let said: Vec<String> = there.iter().map(|it| format!("{}. {}", it.wrong, it.instead)).collect();
            let all = || refusal.complaints.iter().map(|it| it.field.as_str()).collect::<Vec<_>>().join(", ");
            failed(if said.is_empty() { format!("it is refused at {}", all()) } else { said.join("; ") })
        }
        // Nothing happens at all.
        _ if matches!(expected.window, Window::Never(..)) => Ended::Held(None),
        _ => failed("the roster is refused, so nothing begins".to_owned()),
    }
}
