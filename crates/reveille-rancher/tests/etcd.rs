//! Members of etcd, as its JSON gateway tells them: a made-up cluster of three that can be spoiled in one way at a time.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

use std::cell::RefCell;
use std::rc::Rc;

use futures::executor::block_on;
use reveille_rancher::ask::{ApiClient, Given, Refused, Request};
use reveille_rancher::repair::Outcome;
use reveille_rancher::repair::etcd::{members, remove};
use serde_json::{Value, json};

/// Ids as the gateway writes them, and as people know them.
const IDS: [(u64, &str); 3] =
    [(0x8e9e_05c5_2164_694d, "8e9e05c52164694d"), (0xfd42_2379_fda5_0e48, "fd422379fda50e48"), (7, "7")];

#[derive(Clone)]
struct World {
    members: Vec<u64>,
    leader: u64,
    silent: Vec<u64>,
    learner: Option<u64>,
    /// Whom an alarm was raised for.
    full: Option<u64>,
    /// Entries that this one is behind.
    behind: (u64, u64),
    /// Who tells a list of its own.
    stale: Option<u64>,
    /// Who thinks that it leads itself.
    split: Option<u64>,
    /// How a removal is answered instead of being done.
    refuses: Option<Refused>,
    /// A removal is done, and its answer lost.
    loses_answer: bool,
    asked: Vec<(u64, String, Value)>,
}

impl World {
    fn of_three() -> Self {
        let ids: Vec<u64> = IDS.iter().map(|(id, _)| *id).collect();
        Self {
            leader: ids[2],
            members: ids,
            silent: Vec::new(),
            learner: None,
            full: None,
            behind: (0, 0),
            stale: None,
            split: None,
            refuses: None,
            loses_answer: false,
            asked: Vec::new(),
        }
    }

    fn list(&self, of: u64) -> Value {
        let member = |id: &u64| {
            let number = IDS.iter().position(|(known, _)| known == id).unwrap() + 1;
            let mut member = json!({"ID": id.to_string(), "name": format!("etcd-cp-{number}"),
                "peerURLs": [format!("https://10.0.0.{number}:2380")], "clientURLs": []});
            if self.learner == Some(*id) {
                member["isLearner"] = json!(true);
            }
            member
        };
        let told = self.members.iter().filter(|id| self.stale != Some(of) || **id != IDS[0].0);
        json!({"header": {"cluster_id": "99", "member_id": of.to_string(), "raft_term": "2"},
               "members": told.map(member).collect::<Vec<_>>()})
    }

    fn status(&self, of: u64) -> Value {
        let behind = if self.behind.0 == of { self.behind.1 } else { 0 };
        let leader = if self.split == Some(of) { of } else { self.leader };
        let mut status = json!({"header": {"cluster_id": "99", "member_id": of.to_string()}, "version": "3.5.21",
            "raftIndex": "100000", "raftAppliedIndex": (100_000 - behind).to_string(), "leader": leader.to_string()});
        if self.full == Some(of) {
            status["errors"] = json!(["memberID:7 alarm:NOSPACE "]);
        }
        status
    }

    fn answer(&mut self, of: u64, target: &str, body: &Value) -> Result<Value, Refused> {
        self.asked.push((of, target.to_owned(), body.clone()));
        if self.silent.contains(&of) || !self.members.contains(&of) {
            return Err(lost("no answer within 5 s"));
        }
        match target {
            "/v3/maintenance/status" => Ok(self.status(of)),
            "/v3/cluster/member/list" => Ok(self.list(of)),
            "/v3/maintenance/transfer-leadership" => {
                assert_eq!(of, self.leader, "only who leads can hand over");
                self.leader = body["targetID"].as_str().unwrap().parse().unwrap();
                Ok(json!({}))
            }
            "/v3/cluster/member/remove" => {
                if let Some(refused) = &self.refuses {
                    return Err(refused.clone());
                }
                let id: u64 = body["ID"].as_str().unwrap().parse().unwrap();
                self.members.retain(|member| *member != id);
                if self.loses_answer { Err(lost("the connection broke")) } else { Ok(self.list(of)) }
            }
            other => panic!("the crate sends no request to {other}"),
        }
    }

    fn clients(self) -> (Vec<Endpoint>, Rc<RefCell<Self>>) {
        let world = Rc::new(RefCell::new(self));
        (IDS.map(|(id, _)| Endpoint(id, Rc::clone(&world))).into(), world)
    }
}

fn lost(why: &str) -> Refused {
    Refused { cause: why.to_owned(), missing: false, code: None, may_have_happened: true }
}

struct Endpoint(u64, Rc<RefCell<World>>);

impl ApiClient for Endpoint {
    async fn send(&self, request: Request) -> Result<Given, Refused> {
        let body = serde_json::from_slice(request.body.as_deref().unwrap()).unwrap();
        let value = self.1.borrow_mut().answer(self.0, &request.target, &body)?;
        Ok(Given { body: value.to_string().into_bytes(), date: None })
    }
}

#[test]
fn members_are_told_with_their_places_and_the_one_that_leads() {
    let (clients, world) = World::of_three().clients();
    let all = block_on(members(&clients)).unwrap();
    assert_eq!(all.iter().map(|member| member.id.as_str()).collect::<Vec<_>>(), IDS.map(|(_, id)| id));
    assert_eq!(all[0].name, "etcd-cp-1");
    assert!(all[0].hosts.contains("10.0.0.1"));
    assert!(all.iter().all(|member| member.healthy && member.unwell.is_empty()));
    assert_eq!(all.iter().map(|member| member.is_leader).collect::<Vec<_>>(), [false, false, true]);
    let is_through_the_quorum =
        |(_, target, body): &(u64, String, Value)| !target.ends_with("list") || body["linearizable"] == true;
    assert!(world.borrow().asked.iter().all(is_through_the_quorum));
}

#[test]
fn a_member_is_well_only_where_it_says_so_itself() {
    type Spoil = fn(&mut World);
    let table: [(Spoil, &str); 4] = [
        (|w| w.silent.push(7), "no endpoint"),
        (|w| w.learner = Some(7), "learner"),
        (|w| w.full = Some(7), "NOSPACE"),
        (|w| w.behind = (7, 5_001), "5001 entries behind"),
    ];
    for (spoil, expected) in table {
        let mut world = World::of_three();
        world.leader = IDS[0].0;
        spoil(&mut world);
        let all = block_on(members(&world.clients().0)).unwrap();
        assert!(all[0].healthy && all[1].healthy && !all[2].healthy, "{expected}: {all:?}");
        assert!(all[2].unwell.contains(expected), "{all:?}");
    }
    let mut world = World::of_three();
    world.behind = (7, 5_000);
    assert!(block_on(members(&world.clients().0)).unwrap()[2].healthy, "etcd itself takes writes there");
}

#[test]
fn members_that_contradict_each_other_are_no_answer() {
    type Spoil = fn(&mut World);
    let table: [(Spoil, &str); 3] = [
        (|w| w.stale = Some(7), "who is a member"),
        (|w| w.split = Some(IDS[0].0), "who leads"),
        (|w| w.silent = w.members.clone(), "no endpoint answers"),
    ];
    for (spoil, expected) in table {
        let mut world = World::of_three();
        spoil(&mut world);
        let why = block_on(members(&world.clients().0)).unwrap_err().why;
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn who_leads_hands_over_and_another_is_asked_to_remove_it() {
    let (clients, world) = World::of_three().clients();
    assert_eq!(block_on(remove(&clients, "7")), Outcome::Accepted);
    let world = world.borrow();
    assert_eq!(world.members, [IDS[0].0, IDS[1].0]);
    let writes: Vec<(u64, &str)> = (world.asked.iter())
        .filter(|(_, target, _)| target.ends_with("remove") || target.ends_with("leadership"))
        .map(|(of, target, _)| (*of, target.as_str()))
        .collect();
    assert_eq!(writes, [(7, "/v3/maintenance/transfer-leadership"), (IDS[0].0, "/v3/cluster/member/remove")]);
}

#[test]
fn etcd_member_is_not_removed_without_healthy_quorum() {
    type Spoil = fn(&mut World);
    let table: [(Spoil, &str); 4] = [
        (|w| w.silent.push(IDS[0].0), "not well: etcd-cp-1"),
        (|w| w.learner = Some(IDS[1].0), "learner"),
        (|w| w.members = vec![IDS[0].0, 7], "fewer than 2 of 2"),
        (|w| w.members = vec![7], "fewer than 1 of 1"),
    ];
    for (spoil, expected) in table {
        let mut world = World::of_three();
        spoil(&mut world);
        let (clients, world) = world.clients();
        let Outcome::Failed { why } = block_on(remove(&clients, "7")) else { panic!("{expected}") };
        assert!(why.contains(expected), "{why}");
        assert!(!world.borrow().asked.iter().any(|(_, target, _)| target.ends_with("remove")), "{expected}");
    }
}

#[test]
fn an_answer_says_no_more_than_it_does() {
    let refused = |code, missing| Refused { cause: "x".to_owned(), missing, code, may_have_happened: false };
    let why = || "x".to_owned();
    for (answer, expected) in [
        (refused(Some(404), true), Outcome::AlreadySo),
        (refused(Some(403), false), Outcome::Refused { why: why() }),
        (refused(Some(503), false), Outcome::Failed { why: why() }),
        (refused(None, false), Outcome::Failed { why: why() }),
    ] {
        let mut world = World::of_three();
        world.refuses = Some(answer);
        assert_eq!(block_on(remove(&world.clients().0, "7")), expected);
    }
    let mut world = World::of_three();
    world.loses_answer = true;
    let (clients, world) = world.clients();
    assert!(matches!(block_on(remove(&clients, "7")), Outcome::Unknown { .. }));
    assert_eq!(world.borrow().members.len(), 2);
    assert_eq!(block_on(remove(&clients, "7")), Outcome::AlreadySo, "looked for first, and not there");
}
