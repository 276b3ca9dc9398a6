//! How much of the consoles of many machines is kept.

use std::collections::VecDeque;
use std::sync::Arc;

use reveille_core::effect::{Effect, Look, Outcome};
use reveille_core::event::{Answer, CloudFact, ClusterFact, Event};
use reveille_core::model::guest::Guest;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::log_findings::LogFindings;
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;

use super::fixture::*;

/// So many machines are not Ready at once, each with a talkative console.
#[test]
fn consoles_of_open_incidents_are_not_kept_whole() {
    const COUNT: usize = 60;
    let mut field = Field::new(roster()).populate(COUNT);
    field.run(Span::from_min(3));
    field.nodes.values_mut().for_each(|node| node.ready = Ready::False);
    field.sync_nodes();
    let console =
        format!("{}\nthe last line\n", "x".repeat(60).as_str().to_owned() + &"\nnoise".repeat(9000));
    for _ in 0..60 {
        field.now = field.now + Span::from_s(10);
        let mut events = VecDeque::from([Event::Cluster(ClusterFact::Alive), Event::Tick]);
        if (field.now.ms / 10_000) % 3 == 0 {
            let fact = CloudFact::read(field.snapshot());
            events.push_front(Event::Cloud { cloud: CLOUD.into(), fact });
        }
        while let Some(event) = events.pop_front() {
            for effect in field.step(event) {
                match effect {
                    Effect::Record { id, .. } => events.push_back(Event::Recorded(id)),
                    Effect::Look { id, look } => {
                        let answer = match &look {
                            Look::LogEvidence(..) => {
                                let console = Ok(console.as_str().into());
                                let (told, unread) = (Vec::new(), Vec::new());
                                let said = LogFindings { console, guest: Guest::UNSEEN, told, unread };
                                Answer::LogFindings(Arc::new(said))
                            }
                            look => field.answer(look),
                        };
                        events.push_back(Event::Looked { look: id, answer: Ok(answer) });
                    }
                    Effect::Call { intent, .. } => {
                        let outcome = Outcome::Accepted { request: None };
                        events.push_back(Event::Done { intent, outcome });
                    }
                    _ => {}
                }
            }
        }
    }
    let context = field.state.context();
    let kept = context.cases.values().filter_map(|case| case.gathered.log_findings.as_ref()?.as_ref().ok());
    let kept: Vec<&str> = kept.filter_map(|said| said.console.as_deref().ok()).collect();
    assert_eq!(kept.len(), COUNT, "each was read");
    assert!(kept.iter().all(|text| text.ends_with("noise\nthe last line")));
    let bytes: usize = kept.iter().map(|text| text.len()).sum();
    assert!(bytes < COUNT * console.len() / 5, "{bytes} bytes of {COUNT} consoles");
    assert!(field.case("i001", FaultKind::NotReady).is_some());
}
