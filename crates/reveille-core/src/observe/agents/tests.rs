//! Who is fresh, what is passed over, and when silence of many means something.

use std::collections::BTreeSet;

use super::*;
use crate::model::agent::{ApiSaid, KubeletSaid};

const fn at(s: i64) -> Time {
    Time::from_ms(s * 1000)
}

fn report(id: &str, life: &str, number: u64) -> AgentReport {
    AgentReport {
        who: Who { instance: Some(id.into()), ..Who::default() },
        life: life.into(),
        number,
        stages: Vec::new(),
        told: Vec::new(),
        kubelet: KubeletSaid::Runs,
        api: ApiSaid::Answers,
        work: None,
        hold: None,
        may: BTreeSet::new(),
    }
}

fn view() -> AgentsView {
    AgentsView::new(Span::from_s(90))
}

fn hear(view: &mut AgentsView, now: Time, report: AgentReport) -> Heard {
    view.said(now, &"a".into(), &Arc::new(report))
}

#[test]
fn what_comes_late_or_twice_is_no_sign_of_life() {
    let mut view = view();
    let table = [
        (0, "one", 4, Heard::News),
        (10, "one", 4, Heard::PassedOver),
        (20, "one", 3, Heard::PassedOver),
        (30, "one", 5, Heard::Same),
        (40, "two", 1, Heard::News),
        (50, "one", 6, Heard::PassedOver),
        (60, "two", 2, Heard::Same),
    ];
    for (s, life, number, heard) in table {
        assert_eq!(hear(&mut view, at(s), report("i1", life, number)), heard, "{life} {number}");
    }
    assert_eq!(view.get(&"a".into()).map(|seen| seen.heard), Some(at(60)));
}

#[test]
fn silence_counts_while_somebody_listens_and_no_longer_than_that() {
    let mut view = view();
    hear(&mut view, at(0), report("i1", "one", 1));
    let silence = |view: &AgentsView, s: i64| view.silence(at(s), view.get(&"a".into()).expect("heard"));
    assert_eq!(silence(&view, 60), Span::from_s(60));
    view.is_deaf(at(60));
    assert_eq!(silence(&view, 600), Span::from_s(60), "nobody listened");
    view.listens(at(600));
    assert_eq!(silence(&view, 610), Span::from_s(10), "its whole time begins anew");
    view.restart_sight(at(700));
    assert_eq!(silence(&view, 705), Span::from_s(5), "and so it does after a sleep of ours");
}

#[test]
fn one_that_cries_outage_is_not_believed_and_most_are() {
    let mut view = view();
    let say = |view: &mut AgentsView, agent: usize, api: ApiSaid, number: u64| {
        let id = format!("i{agent}");
        let said = AgentReport { api, ..report(&id, "one", number) };
        view.said(at(0), &format!("a{agent}").as_str().into(), &Arc::new(said));
        // Linked by hand: which machine it is does not matter here.
        let link = AgentLink {
            machine: MachineKey::Instance("os".into(), id.as_str().into()),
            by: LinkedBy::ProviderId,
        };
        if let Some(seen) = view.all.get_mut(&format!("a{agent}").as_str().into()) {
            seen.link = Some(link);
        }
    };
    for agent in 0..5 {
        say(&mut view, agent, ApiSaid::Answers, 1);
    }
    say(&mut view, 0, ApiSaid::LostByAll, 2);
    assert_eq!(view.outage(at(1)), None, "one");
    say(&mut view, 1, ApiSaid::Lost, 2);
    say(&mut view, 2, ApiSaid::LostHere, 2);
    assert_eq!(view.outage(at(1)), None, "two of five, and one that knows it is alone");
    say(&mut view, 3, ApiSaid::LostByAll, 2);
    assert_eq!(view.outage(at(1)), Some((3, 5)));
    assert_eq!(view.outage(at(100)), None, "nobody is fresh any more");
}
