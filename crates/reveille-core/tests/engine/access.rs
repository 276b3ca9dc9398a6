//! Service users: the controller reads roles seldom, gives them only when the roster says so, and concludes nothing from a
//! failed read.

use std::sync::Arc;

use reveille_core::decide::{self, Next};
use reveille_core::effect::{Call, Effect};
use reveille_core::engine::invariants::{self, SeenEffects};
use reveille_core::engine::{Restored, Start, State};
use reveille_core::model::access::{RoleRef, UserRef};
use reveille_core::model::id::{Fence, IncidentId, IntentId, RecordId};
use reveille_core::model::incident::{FaultKind, IncidentKey, Subject};
use reveille_core::model::roster::{Access, ServiceUser};
use reveille_core::model::roster::{Mode, Roster};
use reveille_core::model::time::Span;
use reveille_core::plan::context::Case;
use reveille_core::record::{Record, Verdict};
use reveille_core::remedies::AssignRoles;

use crate::fixture::{CLOUD, Field, role, roster};

fn ccm() -> Arc<UserRef> {
    Arc::new(UserRef::Name { name: "ccm".into(), domain: None })
}

fn named(repair: Mode) -> Roster {
    let roles = ["member", "network_admin"].map(|name| RoleRef::Name(name.into())).to_vec();
    let users = vec![ServiceUser { cloud: CLOUD.into(), user: ccm(), roles }];
    Roster { access: Access { users, repair, ..Access::default() }, ..roster() }
}

/// Five machines that are well, and a user who holds these roles.
fn field(repair: Mode, held: &[&str]) -> Field {
    let mut field = Field::new(named(repair)).populate(5);
    field.held = Some(held.iter().map(|name| role(name)).collect());
    field
}

fn case(field: &Field, kind: FaultKind) -> Option<&Case> {
    let subject = Subject::User(CLOUD.into(), ccm());
    field.state.context().cases.get(&IncidentKey { subject, kind })
}

fn opened(field: &Field) -> usize {
    field.records.iter().filter(|record| matches!(record, Record::Opened { .. })).count()
}

#[test]
fn roles_that_are_held_are_read_once_an_hour_and_leave_no_trace() {
    let mut field = field(Mode::Act, &["network_admin", "member", "reader"]);
    field.run(Span::from_min(50));
    assert_eq!(field.role_reads, 1);
    field.run(Span::from_min(130));
    assert_eq!(field.role_reads, 3);
    assert_eq!((opened(&field), field.calls.len()), (0, 0));
    let mut field = Field::new(roster()).populate(5);
    field.run(Span::from_min(120));
    assert_eq!(field.role_reads, 0);
}

#[test]
fn a_missing_role_is_given_read_back_and_mended() {
    let mut field = field(Mode::Act, &["member"]);
    field.run(Span::from_min(3));
    let [Call::AssignRoles(AssignRoles { project, user, roles, .. })] = &field.calls[..] else {
        panic!("{:?}", field.calls)
    };
    assert_eq!((project.as_str(), user.as_str(), &roles[..]), ("p-1", "u-1", &[role("network_admin")][..]));
    assert!(case(&field, FaultKind::RolesMissing).is_none());
    let mended = |record: &Record| matches!(record, Record::Closed { verdict: Verdict::Mended, .. });
    assert!(field.records.iter().any(mended));
}

#[test]
fn a_missing_role_is_only_told_unless_the_roster_says_act() {
    for (mode, held) in [(Mode::Propose, Some("access: proposed only, in the roster")), (Mode::Off, None)] {
        let mut field = field(mode, &[]);
        field.run(Span::from_min(30));
        assert_eq!(field.calls.len(), 0);
        let case = case(&field, FaultKind::RolesMissing).expect("it is open");
        let evidence = case.incident.findings[0].evidence[0].fact.to_string();
        assert_eq!(evidence, "lacks member, network_admin on project p-1; it holds nothing");
        let decision = decide::decide(&field.state.context(), case);
        match held {
            Some(why) => {
                assert!(matches!(&decision.next, Next::Held { call: Some(Call::AssignRoles(_)), .. }));
                assert_eq!(decision.held[0].1[0].to_string(), why);
            }
            None => assert!(matches!(decision.next, Next::Ask(_)), "{:?}", decision.next),
        }
    }
}

#[test]
fn granted_role_closes_the_incident_within_minutes() {
    let mut field = field(Mode::Propose, &[]);
    field.run(Span::from_min(3));
    field.held = Some(vec![role("member"), role("network_admin")]);
    field.run(Span::from_min(8));
    assert!(case(&field, FaultKind::RolesMissing).is_none());
    let recovered = |record: &Record| matches!(record, Record::Closed { verdict: Verdict::Recovered, .. });
    assert!(field.records.iter().any(recovered));
}

#[test]
fn unreadable_roles_are_reported_once_without_any_call() {
    let mut field = field(Mode::Act, &[]);
    field.held = None;
    field.run(Span::from_min(180));
    assert_eq!((opened(&field), field.calls.len()), (1, 0));
    let unreadable = case(&field, FaultKind::RolesUnreadable).expect("it is told");
    assert!(
        unreadable.incident.findings[0].evidence[0]
            .fact
            .to_string()
            .contains("may not list role assignments")
    );
    field.held = Some(vec![role("member"), role("network_admin")]);
    field.run(Span::from_min(65));
    assert!(case(&field, FaultKind::RolesUnreadable).is_none(), "it can be told again");
}

/// A role that was missing at the last good read stays missing while the cloud refuses to tell, and nothing is done on so
/// old a read.
#[test]
fn a_missing_role_is_not_given_on_an_old_word() {
    let mut field = field(Mode::Act, &[]);
    field.deaf = true;
    field.run(Span::from_min(2));
    let before = field.calls.len();
    assert!(before > 0);
    field.held = None;
    field.run(Span::from_min(180));
    assert_eq!(field.calls.len(), before, "{:?}", field.calls);
    assert!(case(&field, FaultKind::RolesMissing).is_some());
}

#[test]
fn a_role_that_does_not_stick_is_backed_off_and_given_up() {
    let mut field = field(Mode::Act, &["member"]);
    field.deaf = true;
    field.run(Span::from_min(180));
    assert_eq!(field.calls.len(), 4, "four tries, then a person: {:?}", field.calls);
    assert!(case(&field, FaultKind::RolesMissing).expect("still open").incident.given_up);
}

#[test]
fn restart_keeps_role_incident_open_until_roles_are_read() {
    let mut field = field(Mode::Propose, &["member"]);
    field.run(Span::from_min(3));
    let id = case(&field, FaultKind::RolesMissing).expect("it is open").incident.id;
    let how = Restored {
        start: Start { fence: Fence(2), acting: true },
        now: field.now + Span::from_s(5),
        last_alive: Some(field.now),
    };
    let state = State::restore(named(Mode::Propose), how, field.records.clone());
    let mut next = Field::with(state).populate(5);
    next.now = field.now;
    next.held = None;
    next.run(Span::from_min(20));
    assert_eq!(case(&next, FaultKind::RolesMissing).map(|case| case.incident.id), Some(id));
    next.held = Some(vec![role("member"), role("network_admin")]);
    next.run(Span::from_min(60));
    assert!(case(&next, FaultKind::RolesMissing).is_none());
}

/// The invariants judge by themselves: each of these calls is one that the engine must never make.
#[test]
fn the_invariants_refuse_what_the_roster_does_not_say() {
    let call = |user: &str, project: &str, name: &str| {
        Call::AssignRoles(AssignRoles {
            cloud: CLOUD.into(),
            project: project.into(),
            user: user.into(),
            roles: vec![role(name)],
        })
    };
    let table = [
        (Mode::Act, call("u-1", "p-1", "network_admin"), None),
        (Mode::Propose, call("u-1", "p-1", "network_admin"), Some(8)),
        (Mode::Act, call("u-2", "p-1", "network_admin"), Some(5)),
        (Mode::Act, call("u-1", "p-2", "network_admin"), Some(5)),
        (Mode::Act, call("u-1", "p-1", "admin"), Some(5)),
        (Mode::Act, call("u-1", "p-1", "member"), Some(7)),
    ];
    for (mode, call, broken) in table {
        let mut field = field(mode, &["member"]);
        field.deaf = true;
        field.list_cloud();
        let mut seen_effects = SeenEffects::default();
        let record = |intent| Record::Intended {
            at: field.now,
            intent,
            incident: IncidentId(900),
            repair_step: 0,
            fence: Fence(1),
            call: call.clone(),
            before: None,
            domain: None,
        };
        let (id, intent) = (RecordId(900), IntentId(900));
        let asked = [Effect::Record { id, record: record(intent) }];
        assert_eq!(invariants::check(&field.state, &asked, &mut seen_effects), Ok(()));
        seen_effects.acknowledge(id);
        let made = [Effect::Call { intent, fence: Fence(1), call: call.clone() }];
        let found = invariants::check(&field.state, &made, &mut seen_effects).err().map(|it| it.invariant);
        assert_eq!(found, broken, "{call}");
    }
}
