//! The answers to operators over the socket of a running server.

use std::collections::BTreeSet;

use reveille_core::model::time::Time;
use reveille_wire::agent::frame::Hello;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Facts, Identity, Role};
use tempfile::TempDir;
use tokio::sync::watch;

use super::admin::{Answer, Ask, Invited, ask};
use super::listing::{InvitationState, MachineRow, Signed};
use super::{Hand, Limits, Setup, start, token};
use crate::registry::{AuthorityHash, Conn, Event, KeyHash, MachineId, Peer, Removal, Reply, Settings};

struct Office {
    directory: TempDir,
    hand: Hand,
    stop: watch::Sender<bool>,
    running: tokio::task::JoinHandle<bool>,
}

impl Office {
    async fn open() -> Self {
        Self::open_in(TempDir::new().unwrap()).await
    }

    /// Another start with the same state directory.
    async fn again(self) -> Self {
        self.stop.send_replace(true);
        assert!(self.running.await.unwrap());
        Self::open_in(self.directory).await
    }

    async fn open_in(directory: TempDir) -> Self {
        let setup = Setup {
            listen: "127.0.0.1:0".parse().unwrap(),
            names: vec!["localhost".to_owned()],
            directory: directory.path().to_owned(),
            pools: BTreeSet::from([("prod".into(), "workers".into())]),
            settings: Settings::default(),
            limits: Limits::default(),
            version: "0.0.0-test",
        };
        let server = start(setup).await.unwrap();
        let (stop, stopped) = watch::channel(false);
        Self { directory, hand: server.hand, stop, running: tokio::spawn(server.run.until(stopped)) }
    }

    async fn ask(&self, question: Ask) -> Answer {
        ask(self.directory.path(), &question).await.unwrap()
    }

    async fn invite(&self, uses: u32) -> Invited {
        let question = Ask::Invite {
            roster: None,
            pool: "workers".into(),
            roles: BTreeSet::from([Role::Worker]),
            machine: None,
            reimage: None,
            ttl_s: 3600,
            uses,
        };
        match self.ask(question).await {
            Answer::Invited(invited) => invited,
            other => panic!("{other:?}"),
        }
    }

    async fn enrol(&self, invited: &Invited, number: u8) -> Result<MachineId, &'static str> {
        let (id, hash) = token::split(invited.token.expose()).unwrap();
        let asked = self.hand.ask(|ask| Event::Enrol {
            ask,
            id,
            hash,
            identity: identity(number),
            facts: facts(number),
            node_name: None,
            node: None,
            key: KeyHash([number; 32]),
            fresh: MachineId::new(format!("m-{number}")),
        });
        match asked.await.unwrap() {
            Reply::Certify { machine, .. } => Ok(machine),
            Reply::Refused(refused) => Err(refused.reason.code()),
            other => panic!("{other:?}"),
        }
    }

    /// The machine comes with a certificate of this authority.
    async fn arrive(&self, machine: &MachineId, number: u8, authority: AuthorityHash) -> Conn {
        let peer = Peer {
            machine: machine.clone(),
            key: KeyHash([number; 32]),
            authority,
            not_after: Time::from_ms(i64::MAX),
        };
        let hello = Hello {
            protocol: 1,
            identity: identity(number),
            facts: facts(number),
            plan: None,
            joined: false,
        };
        self.hand.open(|conn| Event::Arrived { conn, peer, hello }).await.unwrap().0
    }

    async fn machines(&self) -> Vec<MachineRow> {
        match self.ask(Ask::Machines { after: None }).await {
            Answer::Machines(page) => page.rows.into_vec(),
            other => panic!("{other:?}"),
        }
    }

    /// The newest authority.
    async fn rotate(&self) -> AuthorityHash {
        let Answer::Pins(pins) = self.ask(Ask::RotateCa {}).await else { panic!("no pins") };
        serde_json::from_value(serde_json::Value::String(pins.last().unwrap().to_string())).unwrap()
    }

    async fn close(self) {
        self.stop.send_replace(true);
        assert!(self.running.await.unwrap());
    }
}

fn identity(number: u8) -> Identity {
    let instance_id = Some(Word::cut(&format!("i-{number}")));
    Identity { instance_id, boot_id: "boot".into(), ..Identity::default() }
}

fn facts(number: u8) -> Facts {
    Facts { hostname: Word::cut(&format!("w-{number}")), ..Facts::default() }
}

#[tokio::test]
async fn invitations_are_listed_in_pages_and_leaked_one_is_revoked() {
    let office = Office::open().await;
    let leaked = office.invite(3).await;
    office.enrol(&leaked, 1).await.unwrap();
    for _ in 0..230 {
        office.invite(1).await;
    }
    let Answer::Revoked { count: 1, let_in } = office.ask(Ask::Revoke { id: leaked.id.clone() }).await else {
        panic!("not revoked")
    };
    assert!(let_in[0].contains("w-1"), "{let_in:?}");
    assert_eq!(office.enrol(&leaked, 2).await, Err("TOKEN_REVOKED"));
    let (mut rows, mut after, mut pages) = (Vec::new(), None, Vec::new());
    loop {
        let answer = office.ask(Ask::Invitations { after }).await;
        let text = serde_json::to_string(&answer).unwrap();
        let secret = leaked.token.expose().rsplit('.').next().unwrap();
        assert!(!text.contains(secret) && !text.contains("sha256"), "{text}");
        let Answer::Invitations(page) = answer else { panic!("{answer:?}") };
        pages.push(page.rows.len());
        after = page.rows.last().map(|row| row.id.clone());
        rows.extend(page.rows.into_vec());
        if !page.more {
            break;
        }
    }
    assert_eq!(pages, [200, 31]);
    let row = rows.iter().find(|row| row.id == leaked.id).unwrap();
    assert_eq!((row.state, row.uses_left, row.uses, row.conflicts), (InvitationState::Revoked, 2, 3, 0));
    assert_eq!((row.roster.as_str(), row.pool.as_str()), ("prod", "workers"));
    assert!((3590..=3600).contains(&row.expires_in_seconds), "{}", row.expires_in_seconds);
    let states: BTreeSet<_> = rows.iter().map(|row| row.state).collect();
    assert_eq!(states, BTreeSet::from([InvitationState::Open, InvitationState::Revoked]));
    office.close().await;
}

#[tokio::test]
async fn rotation_that_would_lock_out_a_machine_needs_force_to_finish() {
    let office = Office::open().await;
    let invited = office.invite(20).await;
    let mut known = Vec::new();
    for number in 1..=15 {
        known.push(office.enrol(&invited, number).await.unwrap());
    }
    let first: AuthorityHash = serde_json::from_value(invited.ca_pins[0].as_str().into()).unwrap();
    let conn = office.arrive(&known[0], 1, first).await;
    let rows = office.machines().await;
    let row = |rows: &[MachineRow], id: &MachineId| {
        rows.iter().find(|row| row.machine.as_str() == id.as_str()).unwrap().clone()
    };
    let one = row(&rows, &known[0]);
    assert_eq!((one.node_name.as_str(), one.instance_id.as_deref()), ("w-1", Some("i-1")));
    assert_eq!((one.roster.as_str(), one.pool.as_str(), one.removed), ("prod", "workers", None));
    assert!(one.connected && one.last_heard_seconds.is_some_and(|seconds| seconds < 60));
    assert_eq!((one.certificate, row(&rows, &known[1]).certificate), (Signed::Current, Signed::NotShown));

    let newest = office.rotate().await;
    office.hand.say(Event::Gone(conn)).await.unwrap();
    assert_eq!(row(&office.machines().await, &known[0]).certificate, Signed::Before);
    let finish = |force| Ask::FinishRotation { force };
    let Answer::Late { count, machines } = office.ask(finish(false)).await else { panic!("finished") };
    assert_eq!((count, machines.len()), (15, 10), "the first ten are named");
    assert!(machines.iter().any(|row| row.node_name.as_str() == "w-1"));
    for number in 2..=14 {
        office.arrive(&known[usize::from(number) - 1], number, newest).await;
    }
    let remove = Ask::Remove { machine: "w-15".into(), what: Some(Removal::Machine) };
    assert!(matches!(office.ask(remove).await, Answer::Removed(_)));
    let Answer::Late { count: 1, machines } = office.ask(finish(false)).await else { panic!("finished") };
    assert_eq!(machines[0].node_name.as_str(), "w-1", "a removed one is not waited for");
    let Answer::Pins(pins) = office.ask(finish(true)).await else { panic!("not forced") };
    assert_eq!(pins.len(), 1);
    assert_eq!(row(&office.machines().await, &known[0]).certificate, Signed::Retired);
    office.close().await;
}

#[tokio::test]
async fn rotation_met_by_all_machines_finishes_after_a_restart() {
    let office = Office::open().await;
    let invited = office.invite(2).await;
    let known = [office.enrol(&invited, 1).await.unwrap(), office.enrol(&invited, 2).await.unwrap()];
    let newest = office.rotate().await;
    office.arrive(&known[0], 1, newest).await;
    office.arrive(&known[1], 2, newest).await;
    let office = office.again().await;
    let Answer::Pins(pins) = office.ask(Ask::FinishRotation { force: false }).await else { panic!("late") };
    assert_eq!(pins.len(), 1);
    office.close().await;
}

#[tokio::test]
async fn rotation_waits_for_a_machine_with_only_its_node_removed() {
    let office = Office::open().await;
    let invited = office.invite(2).await;
    let known = [office.enrol(&invited, 1).await.unwrap(), office.enrol(&invited, 2).await.unwrap()];
    let remove = Ask::Remove { machine: "w-2".into(), what: Some(Removal::Node) };
    assert!(matches!(office.ask(remove).await, Answer::Removed(_)));
    let newest = office.rotate().await;
    office.arrive(&known[0], 1, newest).await;
    let finish = || Ask::FinishRotation { force: false };
    let Answer::Late { count: 1, machines } = office.ask(finish()).await else { panic!("locked out") };
    assert_eq!(machines[0].node_name.as_str(), "w-2");
    // No session of the machine is welcomed: the client with its key may be a copy, and nothing that it showed counts.
    office.arrive(&known[1], 2, newest).await;
    let office = office.again().await;
    assert!(matches!(office.ask(finish()).await, Answer::Late { count: 1, .. }));
    // An operator readmits the machine until it has come, and removes it again.
    let readmit = Ask::Remove { machine: "w-2".into(), what: None };
    assert!(matches!(office.ask(readmit).await, Answer::Removed(_)));
    office.arrive(&known[1], 2, newest).await;
    let remove = Ask::Remove { machine: "w-2".into(), what: Some(Removal::Node) };
    assert!(matches!(office.ask(remove).await, Answer::Removed(_)));
    assert!(matches!(office.ask(finish()).await, Answer::Pins(_)));
    office.close().await;
}

#[tokio::test]
async fn a_roster_that_is_not_there_is_told_with_those_that_are() {
    let office = Office::open().await;
    let question = Ask::Invite {
        roster: Some("nope".into()),
        pool: "workers".into(),
        roles: BTreeSet::from([Role::Worker]),
        machine: None,
        reimage: None,
        ttl_s: 60,
        uses: 1,
    };
    let Answer::Refused(why) = office.ask(question).await else { panic!("invited") };
    assert_eq!(why.as_str(), "There is no roster \"nope\"; there are: prod");
    office.close().await;
}
