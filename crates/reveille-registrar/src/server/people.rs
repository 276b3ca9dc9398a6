//! What people are answered over the socket of a server that runs.

use std::collections::BTreeSet;

use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Facts, Identity, Role};
use tempfile::TempDir;
use tokio::sync::watch;

use super::admin::{Answer, Ask, Invited, ask};
use super::listing::InvitationState;
use super::{Hand, Limits, Setup, start, token};
use crate::registry::{Event, KeyHash, MachineId, Reply, Settings};

struct Office {
    directory: TempDir,
    hand: Hand,
    stop: watch::Sender<bool>,
    running: tokio::task::JoinHandle<bool>,
}

impl Office {
    async fn open() -> Self {
        let directory = TempDir::new().unwrap();
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
async fn all_invitations_are_listed_page_by_page_without_a_secret_and_one_that_leaked_is_taken_back() {
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
