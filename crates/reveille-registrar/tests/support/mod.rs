//! A registration server in this process on a free port, and machines that connect to it.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's support; each test file uses a part"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use reveille_core::model::time::Time;
use reveille_node::link::{Credential, Enrolment, Kept, Link, LinkError, Session};
use reveille_node::pins::Pins;
use reveille_node::target::Endpoint;
use reveille_registrar::registry::{Event, Heard, Plans, Reimage, Settings, Template};
use reveille_registrar::server::admin::{Answer, Ask, Invited, ask};
use reveille_registrar::server::{Hand, Limits, NodeAsked, Setup, TokenRequest, start};
use reveille_wire::agent::frame::Hello;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Distribution, Facts, Identity, Role, Secret, ServerFrame};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub(crate) const TOKEN: &str = "kuckuc.0123456789abcdef";

pub(crate) struct Site {
    pub(crate) directory: TempDir,
    pub(crate) link: Link,
    pub(crate) hand: Hand,
    pub(crate) heard: mpsc::Receiver<Heard>,
    stop: watch::Sender<bool>,
    running: JoinHandle<bool>,
    minting: JoinHandle<()>,
}

/// An invitation to the pool, in the only roster or in the named one, from any server with this state directory.
pub(crate) async fn invited(directory: &Path, change: impl FnOnce(&mut Wished)) -> Invited {
    let mut wished = Wished { roster: None, machine: None, reimage: None, ttl_s: 3600, uses: 1 };
    change(&mut wished);
    let question = Ask::Invite {
        roster: wished.roster,
        pool: "workers".into(),
        roles: BTreeSet::from([Role::Worker]),
        machine: wished.machine,
        reimage: wished.reimage,
        ttl_s: wished.ttl_s,
        uses: wished.uses,
    };
    match ask(directory, &question).await.unwrap() {
        Answer::Invited(invited) => invited,
        other => panic!("{other:?}"),
    }
}

/// Enrols a machine with this token.
pub(crate) async fn enrol(link: &Link, token: &Secret, who: &Who) -> Result<(Credential, Kept), LinkError> {
    let enrolment = Enrolment::new(who.identity.clone(), who.facts.clone(), None).unwrap();
    enrolment.ask(link, token, Time::from_ms(0)).await
}

pub(crate) async fn site() -> Site {
    site_with(TempDir::new().unwrap(), Settings::default(), Limits::default()).await
}

pub(crate) async fn site_with(directory: TempDir, settings: Settings, limits: Limits) -> Site {
    site_of(&["prod"], directory, settings, limits).await.0
}

/// A server of these rosters, with its questions to their clusters.
pub(crate) async fn site_of(
    rosters: &[&str],
    directory: TempDir,
    settings: Settings,
    limits: Limits,
) -> (Site, mpsc::Receiver<NodeAsked>) {
    let (mut site, nodes, mut token_requests) = begun(rosters, directory, settings, limits).await;
    site.minting = tokio::spawn(async move {
        while let Some(request) = token_requests.recv().await {
            if let TokenRequest::Make { reply, .. } = request
                && !reply.is_closed()
            {
                drop(reply.send(Ok(Secret::new(TOKEN))));
            }
        }
    });
    (site, nodes)
}

/// A server whose tokens the test makes, and which has no cluster to ask.
pub(crate) async fn site_that_mints(
    directory: TempDir,
    settings: Settings,
    limits: Limits,
) -> (Site, mpsc::Receiver<TokenRequest>) {
    let (site, _, token_requests) = begun(&["prod"], directory, settings, limits).await;
    (site, token_requests)
}

async fn begun(
    rosters: &[&str],
    directory: TempDir,
    settings: Settings,
    limits: Limits,
) -> (Site, mpsc::Receiver<NodeAsked>, mpsc::Receiver<TokenRequest>) {
    let setup = Setup {
        listen: "127.0.0.1:0".parse().unwrap(),
        names: vec!["localhost".to_owned()],
        directory: directory.path().to_owned(),
        pools: rosters.iter().map(|roster| ((*roster).into(), "workers".into())).collect(),
        settings,
        limits,
        version: "0.0.0-test",
    };
    let server = start(setup).await.unwrap();
    let pins: Vec<_> = server.pins.iter().map(|pin| pin.parse().unwrap()).collect();
    let link = Link {
        server: Endpoint { host: "127.0.0.1".to_owned(), port: server.address.port() },
        pins: Pins::new(pins).unwrap(),
    };
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(server.run.until(stopped));
    let minting = tokio::spawn(async {});
    let site = Site { directory, link, hand: server.hand, heard: server.heard, stop, running, minting };
    (site, server.nodes, server.token_requests)
}

impl Site {
    /// Stops the server; its directory is for the next one.
    pub(crate) async fn end(self) -> TempDir {
        self.stop.send_replace(true);
        assert!(self.running.await.unwrap(), "it ended as it was told");
        self.minting.abort();
        self.directory
    }

    pub(crate) async fn people(&self, question: Ask) -> Answer {
        ask(self.directory.path(), &question).await.unwrap()
    }

    pub(crate) async fn invite(&self, change: impl FnOnce(&mut Wished)) -> Invited {
        invited(self.directory.path(), change).await
    }

    pub(crate) async fn enrol(&self, token: &Secret, who: &Who) -> Result<(Credential, Kept), LinkError> {
        enrol(&self.link, token, who).await
    }

    pub(crate) async fn enrolled(&self, number: u32) -> (Who, Credential) {
        let who = who(number);
        let invited = self.invite(|_| {}).await;
        let (credential, _) = self.enrol(&invited.token, &who).await.unwrap();
        (who, credential)
    }

    pub(crate) async fn plans(&self) {
        self.planned(template("10.0.0.1:6443", "sha256:00")).await;
    }

    /// Gives the machines of the pool this template.
    pub(crate) async fn planned(&self, template: Template) {
        let plans = Plans([(("prod".into(), "workers".into()), template)].into());
        self.hand.say(Event::PlansRead(plans)).await.unwrap();
    }
}

/// A join by kubeadm, without anything else.
pub(crate) fn template(server: &str, pin: &str) -> Template {
    Template {
        distribution: Distribution::Kubeadm,
        server: server.into(),
        ca_pins: vec![pin.into()],
        labels: Default::default(),
        taints: Vec::new(),
        files: Vec::new(),
        config: None,
        needs: BTreeSet::new(),
    }
}

pub(crate) struct Wished {
    pub(crate) roster: Option<Word>,
    pub(crate) machine: Option<Word>,
    pub(crate) reimage: Option<Reimage>,
    pub(crate) ttl_s: u32,
    pub(crate) uses: u32,
}

#[derive(Clone)]
pub(crate) struct Who {
    pub(crate) identity: Identity,
    pub(crate) facts: Facts,
}

pub(crate) fn who(number: u32) -> Who {
    Who {
        identity: Identity {
            instance_id: Some(Word::cut(&format!("i-{number}"))),
            machine_id: Some(Word::cut(&format!("feed0000000040008000{number:012}"))),
            system_uuid: Some(Word::cut(&format!("c0ffee00-0000-4000-8000-{number:012}"))),
            boot_id: Word::cut(&format!("boot-{number}")),
        },
        facts: Facts { hostname: Word::cut(&format!("w-{number}")), ..Facts::default() },
    }
}

impl Who {
    pub(crate) fn hello(&self) -> Hello {
        Hello {
            protocol: 1,
            identity: self.identity.clone(),
            facts: self.facts.clone(),
            plan: None,
            joined: false,
        }
    }
}

/// The next matching frame; others are skipped. The wait has a time limit.
pub(crate) async fn until<T>(session: &mut Session, wanted: impl Fn(&ServerFrame) -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = wanted(&session.next().await.unwrap()) {
                return found;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), looking).await.unwrap()
}

pub(crate) fn code(error: &LinkError) -> &'static str {
    error.reason().map_or_else(|| panic!("{error}"), |reason| reason.code())
}

/// Everything that the server wrote, as text.
pub(crate) fn written(directory: &Path) -> String {
    let mut all = String::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                all.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
            }
        }
    }
    all
}
