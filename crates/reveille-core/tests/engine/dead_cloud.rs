//! A roster of two clouds, one of which never answers: that is no gap for the machines of the other.

use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::Mark;
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};
use super::steps::{cloud_deletes, made, min, off, touched};

/// The roster, with a second cloud whose endpoint never answers.
fn with_dead_cloud() -> Roster {
    let mut both = roster();
    both.clouds.push("dead".into());
    let mut pool = both.pools.values().next().unwrap().clone();
    (pool.name, pool.cloud) = ("gpu".into(), "dead".into());
    pool.owned.pool = Some(Mark::Tag("k8s-pool=gpu".into()));
    both.pools.insert(pool.name.clone(), pool);
    both
}

/// A night without a process is over for hours. A machine that is made then and does not join is repaired, also where Reveille is
/// restarted, and also where the endpoint of another cloud of the roster is down all the time.
#[test]
fn cloud_that_is_down_prolongs_no_gap_for_others() {
    let mut found = Vec::new();
    for (clouds, night, restarts) in [(1, true, true), (2, false, true), (2, true, false), (2, true, true)] {
        let roster = || if clouds == 1 { roster() } else { with_dead_cloud() };
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        field = off(field, if night { min(5 * 60) } else { Span::from_s(5) }, roster());
        field.run(min(3 * 60));
        field.add_machine("new", false);
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        field.run(min(2));
        field.deaf = true;
        if restarts {
            field = off(field, Span::from_s(5), roster());
            field.deaf = true;
        }
        field.run(min(6 * 60));
        let of = |id: &str| {
            (
                touched(&field, id),
                made(&field).iter().any(|it| it.starts_with("delete") && it.ends_with(&format!(" {id}"))),
            )
        };
        let held =
            field.case("new", FaultKind::NeverJoined).map(|_| field.held("new", FaultKind::NeverJoined));
        found.push((clouds, night, restarts, of("new"), of("i004"), held));
    }
    let fine = found.iter().all(|(_, _, _, new, ..)| new.0 && new.1);
    assert!(fine, "(clouds, night, restarts, new (touched, deleted), i004, held): {found:#?}");
}

/// The same of a machine that had joined, and whose Node another client deletes while Reveille is restarted for five seconds.
#[test]
fn cloud_that_is_down_holds_no_machine_of_a_short_gap() {
    let mut found = Vec::new();
    for (clouds, night) in [(1, true), (2, false), (2, true)] {
        let roster = || if clouds == 1 { roster() } else { with_dead_cloud() };
        let mut field = Field::new(roster()).populate(10);
        field.run(min(20));
        field = off(field, if night { min(5 * 60) } else { Span::from_s(5) }, roster());
        field.run(min(3 * 60));
        let gone = field.nodes.remove("i004").unwrap();
        field = off(field, Span::from_s(5), roster());
        cloud_deletes(&mut field, &gone);
        field.deaf = true;
        field.run(min(6 * 60));
        found.push((clouds, night, touched(&field, "i004"), made(&field)));
    }
    assert!(found.iter().all(|(.., touched, _)| *touched), "{found:#?}");
}
