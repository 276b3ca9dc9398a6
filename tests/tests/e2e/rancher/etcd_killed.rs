//! A machine that holds etcd is taken out by a program that is killed at each step of its book and after each of its writes.
//!
//! Two clusters at once, each with an etcd of its own, because where the answer to a write was lost its end is never in the book.
//! A thread of the test asks etcd and the API server all the while: whether there is a quorum, who is a member, whether the Node
//! is there.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use reveille_tests::lab::Lab;
use reveille_tests::rancher::api::Api;
use reveille_tests::rancher::door::Dies;
use reveille_tests::rancher::kinds;
use reveille_tests::rancher::relay::Done;
use reveille_tests::rancher::syncer::{Syncer, Ways};
use reveille_tests::reveille::{Place, Reveille};

use super::etcd::{Asker, Etcd, SUBJECT, against, member_of, people};
use super::{Ground, stage};

/// The removal of a member, as a write.
const REMOVAL: &str = "removal of a member";
/// Between two looks of the watching thread.
const APART: Duration = Duration::from_millis(400);

/// Where the program of the first cluster dies: on its way to the member, and after each write from then on.
const FIRST: [&str; 8] = [
    "begun",
    "intent save",
    "ended save",
    "intent cordon",
    "ended cordon",
    REMOVAL,
    "DELETE of a Node",
    "DELETE of a record",
];
/// And that of the second: after its first write, and at each step from the member on.
const SECOND: [&str; 7] = [
    "PUT of a Node",
    "intent removeMember",
    "ended removeMember",
    "intent deleteNode",
    "ended deleteNode",
    "intent deleteRecord",
    "ended deleteRecord",
];

/// One cluster, its etcd, and the program that takes a machine out.
struct Scene {
    ground: Ground,
    asker: Asker,
    reveille: Reveille,
    place: Place,
    dies: BTreeSet<String>,
    _etcd: Etcd,
    _syncer: Syncer,
}

/// However often it is killed and started again it ends the same: the member leaves once, the quorum is never lost, the Node goes
/// after the member and the record after the Node, each by one write that is taken.
pub(crate) fn kill_at_any_step_removes_etcd_member_once_and_before_node(lab: &mut Lab) -> Result<()> {
    kinds::install(&lab.kube)?;
    let wanted = [("c-etcd-a", 22, &FIRST[..]), ("c-etcd-b", 23, &SECOND[..])];
    stage::play(wanted.into_iter().map(|(id, net, dies)| (id, Scene::set(lab, id, net, dies))))
}

impl stage::Scene for Scene {
    fn played(&mut self) -> Result<()> {
        Self::played(self)
    }

    fn id(&self) -> &str {
        &self.ground.id
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn ground(self) -> Ground {
        self.ground
    }
}

impl Scene {
    fn set(lab: &mut Lab, id: &str, net: u8, dies: &[&str]) -> Result<Self> {
        let mut ground = Ground::lay(lab, id, net, 2, 0)?;
        people(&mut ground)?;
        let etcd = Etcd::start(lab, &ground)?;
        let syncer = Syncer::start(&ground.api, &ground.id, Ways { plans: true, tidies: false });
        let (asker, member) = (etcd.asker(), member_of(&ground, SUBJECT));
        let relayed = |port: u16| {
            let (asker, member) = (asker.clone(), member.clone());
            let is_so = move || asker.names().is_ok_and(|names| !names.contains(&member));
            ground
                .door
                .relay(port, Done { words: REMOVAL, at: "intent removeMember", is_so: Box::new(is_so) })
        };
        let ports = etcd.ports().into_iter().map(relayed).collect::<Result<Vec<u16>>>()?;
        let mut place = etcd.place(lab, &ground, &ports)?;
        place.log = place.log.with_file_name(format!("{}.log", ground.id));
        let dies = dies.iter().map(|place| (*place).to_owned()).collect();
        let reveille = lab.reveille.clone();
        Ok(Self { ground, asker, reveille, place, dies, _etcd: etcd, _syncer: syncer })
    }

    fn played(&mut self) -> Result<()> {
        let name = self.ground.name(SUBJECT);
        against(&self.reveille, &self.place, &name, "")?;
        let state = self.place.state.join(&self.place.name);
        self.ground.door.kill_along(&state, Dies::At(self.dies.clone()));
        let is_over = AtomicBool::new(false);
        let (api, asker, own) = (&self.ground.api, &self.asker, member_of(&self.ground, SUBJECT));
        let (code, seen) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| watched(api, asker, &name, &own, &is_over));
            let code = self.ground.lived(&self.reveille, &self.place, &["rancher", "evict", &name, "--yes"]);
            is_over.store(true, Ordering::Relaxed);
            (code, watching.join().unwrap_or_else(|_| Err(anyhow!("the watching thread panicked"))))
        });
        let (code, seen) = (code?, seen?);
        ensure!(code == Some(0), "it ended with {code:?}; it died at {:?}", self.ground.door.deaths());
        ensure!(self.ground.door.deaths() == self.dies, "it died at {:?}", self.ground.door.deaths());
        let writes = self.ground.door.writes();
        ensure!(writes == ["PUT of a Node", "DELETE of a Node", "DELETE of a record"], "it wrote {writes:?}");
        let stay: BTreeSet<String> = [1, 2].map(|number| member_of(&self.ground, number)).into();
        let all: BTreeSet<String> = stay.iter().cloned().chain([own]).collect();
        ensure!(seen == [all, stay], "members came and went: {seen:?}");
        ensure!(self.ground.api.get(&format!("/api/v1/nodes/{name}"))?.is_none(), "its Node is there");
        let left = self.ground.records_about(SUBJECT)?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    }
}

/// Who were members, in order, each set once. An answer of etcd needs its quorum: none means that it was lost.
fn watched(
    api: &Api,
    asker: &Asker,
    node: &str,
    own: &str,
    is_over: &AtomicBool,
) -> Result<Vec<BTreeSet<String>>> {
    let mut seen: Vec<BTreeSet<String>> = Vec::new();
    loop {
        let is_last = is_over.load(Ordering::Relaxed);
        // The Node first: one that is gone by now went before whatever etcd says next.
        let has_node = api.get(&format!("/api/v1/nodes/{node}"))?.is_some();
        let members: BTreeSet<String> = asker.names().context("etcd has no quorum")?.into_iter().collect();
        ensure!(has_node || !members.contains(own), "its Node went before its member");
        if seen.last() != Some(&members) {
            seen.push(members);
        }
        if is_last {
            return Ok(seen);
        }
        std::thread::sleep(APART);
    }
}
