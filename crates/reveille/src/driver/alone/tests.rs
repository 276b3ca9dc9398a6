//! Tests controllers of one roster against one API server, over HTTP on 127.0.0.1, and the rule without requests.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::driver::clock;
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::Ownership;
use reveille_core::remedies::{AssignRoles, DeleteNode, NudgeGroup, RemoveRoutes, StartInstance};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// An API server that has only Leases: create and update with their conflicts, as in `kube-apiserver` (API conventions,
/// "Concurrency Control and Consistency").
#[derive(Clone, Default)]
struct Api {
    leases: Arc<Mutex<BTreeMap<String, serde_json::Value>>>,
    version: Arc<Mutex<u64>>,
    forbids: Arc<AtomicBool>,
    forbids_writes: Arc<AtomicBool>,
}

impl Api {
    fn answer(&self, method: &str, path: &str, body: &[u8]) -> (u16, serde_json::Value) {
        let refusal = |code: u16, reason: &str, name: &str| {
            let details = serde_json::json!({"name": name, "kind": "leases"});
            (
                code,
                serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
                "message": reason, "code": code, "details": details}),
            )
        };
        if self.forbids.load(Ordering::SeqCst)
            || method != "GET" && self.forbids_writes.load(Ordering::SeqCst)
        {
            return refusal(403, "Forbidden", "");
        }
        let mut leases = self.leases.lock().unwrap();
        let path = path.split('?').next().unwrap();
        let named = path.strip_prefix(LEASES).and_then(|rest| rest.strip_prefix('/')).unwrap_or_default();
        let next = || {
            let mut version = self.version.lock().unwrap();
            *version += 1;
            version.to_string()
        };
        match method {
            "GET" => match leases.get(named) {
                Some(lease) => (200, lease.clone()),
                None => refusal(404, "NotFound", named),
            },
            "POST" | "PUT" => {
                let mut lease: serde_json::Value = serde_json::from_slice(body).unwrap();
                let name = lease["metadata"]["name"].as_str().unwrap().to_owned();
                let known = leases.get(&name).map(|known| known["metadata"]["resourceVersion"].clone());
                if method == "POST" && known.is_some() {
                    return refusal(409, "AlreadyExists", &name);
                }
                if method == "PUT" && known.as_ref() != Some(&lease["metadata"]["resourceVersion"]) {
                    return refusal(409, "Conflict", &name);
                }
                lease["metadata"]["resourceVersion"] = next().into();
                leases.insert(name, lease.clone());
                (200, lease)
            }
            _ => refusal(405, "MethodNotAllowed", ""),
        }
    }

    async fn serve(self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(self.clone().one(stream));
        }
    }

    async fn one(self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let (head, length) = loop {
            let mut piece = [0; 4096];
            let Ok(read @ 1..) = stream.read(&mut piece).await else { return };
            bytes.extend_from_slice(&piece[..read]);
            let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
            let text = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length = length.map_or(0, |length| length.trim().parse::<usize>().unwrap());
            if bytes.len() >= end + 4 + length {
                break (end, length);
            }
        };
        let request = String::from_utf8_lossy(&bytes[..head]).into_owned();
        let mut words = request.split_whitespace();
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (code, answer) = self.answer(method, path, &bytes[head + 4..head + 4 + length]);
        let answer = answer.to_string();
        let reply = format!(
            "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
            answer.len()
        );
        drop(stream.write_all(reply.as_bytes()).await);
    }
}

/// A running API server and a client for it.
struct Bench {
    api: Api,
    cluster: Cluster,
    _directory: tempfile::TempDir,
}

async fn bench() -> Bench {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let api = Api::default();
    tokio::spawn(api.clone().serve(listener));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubeconfig");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}], \
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}], users: [{{name: u, user: {{token: t}}}}]}}"
    );
    std::fs::write(&file, text).unwrap();
    let config = reveille_kube::ClusterConfig { kubeconfig: Some(file), ..Default::default() };
    Bench { api, cluster: Cluster::connect(&config).await.unwrap(), _directory: directory }
}

fn identity(name: &str) -> Identity {
    let ledger = format!(":boot-{name}");
    Identity { holder: format!("host-{name}:7{ledger}"), ledger }
}

fn watcher(bench: &Bench, name: &str) -> Watcher {
    Watcher::new(bench.cluster.clone(), "prod", identity(name), clock::system())
}

/// A call that can do harm.
fn deletion() -> Call {
    Call::DeleteNode(DeleteNode { name: "w-1".into(), uid: "u1".into(), boot_id: None })
}

/// Calls that start a machine, remove a route or assign a role.
fn taking() -> [Call; 3] {
    let owned = Ownership::of_cluster(Mark::Tag("k8s-cluster=prod".into()));
    [
        Call::Start(StartInstance { cloud: "os".into(), instance: "i1".into(), owned }),
        Call::RemoveRoutes(RemoveRoutes {
            cloud: "os".into(),
            router: "r1".into(),
            routes: vec![],
            unless_used: vec![],
        }),
        Call::AssignRoles(AssignRoles {
            cloud: "os".into(),
            project: "p1".into(),
            user: "u1".into(),
            roles: vec![],
        }),
    ]
}

/// A call that cannot do harm.
fn repair() -> Call {
    Call::NudgeGroup(NudgeGroup { cloud: "os".into(), group: "g1".into(), mark: "m".into() })
}

/// What two controllers of one roster know after they asked, the first of them first.
pub(crate) async fn two_presences() -> (Presence, Presence) {
    let bench = bench().await;
    let (mut first, mut second) = (watcher(&bench, "a"), watcher(&bench, "b"));
    first.round().await;
    second.round().await;
    // A receiver keeps the last value when its sender is gone.
    (first.presence(), second.presence())
}

fn at(start: Instant, s: i64) -> Moment {
    Moment { mono: start + Duration::from_secs(s.unsigned_abs()), wall: Time::from_ms(s * 1000) }
}

fn claim(holder: &str, version: u64) -> Claim {
    Claim {
        holder: Some(holder.to_owned()).filter(|holder| !holder.is_empty()),
        let_go_by: None,
        version: version.to_string(),
    }
}

#[test]
fn lease_of_another_is_taken_over_only_after_it_stood_still() {
    let start = Instant::now();
    let mut rule = Rule::new(identity("a"));
    let other = identity("b").holder;
    // The table has seconds, the version at that time, and whether the Lease is overwritten.
    let table = [(0, 1, false), (60, 1, false), (170, 2, false), (460, 2, false), (471, 2, true)];
    for (s, version, written) in table {
        let next = rule.judge(Some(&claim(&other, version)), at(start, s));
        assert_eq!(next == Next::Write, written, "at {s} s");
    }
    rule.took();
    let own = format!("host-a:6{}", identity("a").ledger);
    assert_eq!(
        rule.judge(Some(&claim(&own, 3)), at(start, 472)),
        Next::Write,
        "the process before on this ledger"
    );
    assert_eq!(rule.judge(Some(&claim("", 4)), at(start, 473)), Next::Write, "it was let go");
    assert_eq!(rule.judge(None, at(start, 474)), Next::Write);
}

/// After a restore of a backup the Lease is ours, or missing, while another controller holds it and acts until its next
/// renewal. A Lease that the other controller releases is taken only after one round as the other's, so that the engine
/// learns of the handover.
#[test]
fn lease_that_went_back_is_no_lease_that_was_let_go() {
    let start = Instant::now();
    let other = identity("b").holder;
    for went_back in [None, Some(claim(&identity("a").holder, 1))] {
        let mut rule = Rule::new(identity("a"));
        assert_ne!(rule.judge(Some(&claim(&other, 7)), at(start, 0)), Next::Write);
        for (s, written) in [(15, false), (60, false), (299, false), (300, true)] {
            let next = rule.judge(went_back.as_ref(), at(start, s));
            assert_eq!(next == Next::Write, written, "{went_back:?} at {s} s");
        }
    }
    let let_go = Claim { let_go_by: Some(other.clone()), ..claim("", 8) };
    for seen_before in [false, true] {
        let mut rule = Rule::new(identity("a"));
        if seen_before {
            rule.judge(Some(&claim(&other, 7)), at(start, 0));
        }
        assert_eq!(
            rule.judge(Some(&let_go), at(start, 15)),
            Next::Leave(other.as_str().into()),
            "{seen_before}"
        );
        assert_eq!(rule.judge(Some(&let_go), at(start, 30)), Next::Write, "{seen_before}");
    }
    let mut rule = Rule::new(identity("b"));
    assert_eq!(
        rule.judge(Some(&let_go), at(start, 15)),
        Next::Write,
        "the process before on this ledger let it go"
    );
}

/// Either clock can end our own proof; another controller's silence is counted by the clock that never runs ahead.
#[test]
fn clock_change_ends_own_proof_but_not_the_lease_of_a_peer() {
    let start = Instant::now();
    // The table has seconds of the monotonic clock and of the wall clock; whether our proof is valid; and whether
    // another's Lease counts as abandoned.
    let table = [
        (15, 15, true, false),
        (15, 3600, false, false),
        (149, 149, true, false),
        (150, 150, false, false),
        (299, 40_000, false, false),
        (300, 300, false, true),
        (300, -3600, false, true),
        (15, -3600, true, false),
    ];
    for (mono, wall, stands, left) in table {
        let now = Moment { mono: start + Duration::from_secs(mono), wall: Time::from_ms(wall * 1000) };
        let mut rule = Rule { known: true, ..Rule::new(identity("a")) };
        let before = LeaseState::Alone(at(start, 0));
        let failed = rule.failed(&before, ClaimError::Moved, now);
        assert_eq!(matches!(failed, LeaseState::Alone(_)), stands, "{mono} s and {wall} s");
        let other = claim(&identity("b").holder, 1);
        assert_ne!(rule.judge(Some(&other), at(start, 0)), Next::Write);
        assert_eq!(rule.judge(Some(&other), now) == Next::Write, left, "{mono} s and {wall} s");
    }
}

#[test]
fn takeover_waits_longer_than_the_last_possible_call() {
    let call = Span::from_ms(i64::try_from(crate::driver::executor::CALL_WITHIN.as_millis()).unwrap());
    assert!(LEFT_AFTER >= PROVES + call + Span::from_s(30), "{LEFT_AFTER}");
}

#[tokio::test(start_paused = true)]
async fn lease_that_was_not_renewed_in_time_forbids_acting() {
    let wall = Arc::new(Mutex::new(Time::from_ms(0)));
    let (sender, lease_state) = watch::channel(LeaseState::Asking);
    let hand = wall.clone();
    let presence = Presence { lease_state, clock: Arc::new(move || *hand.lock().unwrap()) };
    assert!(presence.forbids(&deletion()).is_some(), "nothing is known yet");
    sender.send_replace(LeaseState::Alone(Moment::now(&presence.clock)));
    assert_eq!(presence.forbids(&deletion()), None);
    *wall.lock().unwrap() = Time::from_ms(151_000);
    assert!(
        presence.forbids(&deletion()).is_some(),
        "the monotonic clock stood still while the machine slept"
    );
    *wall.lock().unwrap() = Time::from_ms(0);
    tokio::time::advance(Duration::from_secs(151)).await;
    assert!(presence.forbids(&deletion()).is_some(), "the wall clock was set back");
    assert_eq!(presence.forbids(&repair()), None, "the API server may be silent because of what is repaired");
    for call in taking() {
        assert!(presence.forbids(&call).is_some(), "{call}");
    }
}

#[tokio::test]
async fn second_controller_of_a_roster_observes_until_release() {
    let bench = bench().await;
    let (mut first, mut second) = (watcher(&bench, "a"), watcher(&bench, "b"));
    let (one, two) = (first.presence(), second.presence());
    first.round().await;
    second.round().await;
    first.round().await;
    second.round().await;
    assert_eq!(one.forbids(&deletion()), None);
    let why = two.forbids(&deletion()).unwrap();
    assert!(why.contains("another controller acts for this roster: host-a:7"), "{why}");
    first.let_go().await;
    second.round().await;
    let handover = two.pause().map(|pause| pause.scope);
    assert_eq!(handover, Some(PauseScope::OtherController), "one round more, for the engine to know of it");
    second.round().await;
    assert_eq!(two.forbids(&deletion()), None, "the Lease was let go");
}

#[tokio::test]
async fn two_controllers_that_begin_at_once_get_one_lease() {
    let bench = bench().await;
    let (mut first, mut second) = (watcher(&bench, "a"), watcher(&bench, "b"));
    let (one, two) = (first.presence(), second.presence());
    tokio::join!(first.round(), second.round());
    tokio::join!(first.round(), second.round());
    assert_eq!(one.forbids(&deletion()).is_none(), two.forbids(&deletion()).is_some(), "one of them acts");
}

#[tokio::test]
async fn cluster_that_forbids_leases_is_relied_upon_and_said() {
    let bench = bench().await;
    bench.api.forbids.store(true, Ordering::SeqCst);
    let mut only = watcher(&bench, "a");
    let presence = only.presence();
    only.round().await;
    assert_eq!(presence.forbids(&deletion()), None);
    assert!(presence.says().unwrap().contains("relies on being the only one"), "{:?}", presence.says());
}

#[tokio::test]
async fn rights_that_were_taken_away_do_not_let_two_act() {
    let bench = bench().await;
    let (mut first, mut second) = (watcher(&bench, "a"), watcher(&bench, "b"));
    first.round().await;
    second.round().await;
    bench.api.forbids.store(true, Ordering::SeqCst);
    second.round().await;
    assert!(second.presence().forbids(&deletion()).is_some(), "a Lease was read before");
}

/// An account that may read Leases and not write them finds the Lease of another account's controller, which ended without
/// letting it go. For ever it said that the other one acts, and mended nothing. Whether it is alone it cannot prove, until a
/// person deletes that Lease and restarts it.
#[tokio::test]
async fn left_lease_that_may_not_be_written_is_no_other_controller() {
    let bench = bench().await;
    let (mut first, mut second) = (watcher(&bench, "a"), watcher(&bench, "b"));
    first.round().await;
    second.round().await;
    bench.api.forbids_writes.store(true, Ordering::SeqCst);
    let presence = second.presence();
    second.round().await;
    assert!(presence.forbids(&repair()).is_some(), "the other one may act still");
    let seen = second.rule.seen.as_mut().unwrap();
    seen.since.mono -= Duration::from_secs(301);
    for _ in 0..2 {
        second.round().await;
        assert_eq!(presence.forbids(&repair()), None);
        assert!(presence.forbids(&deletion()).is_some());
    }
    bench.api.leases.lock().unwrap().clear();
    second.round().await;
    assert!(presence.forbids(&deletion()).is_some(), "the one that held it may run yet");
    let mut again = watcher(&bench, "b");
    again.round().await;
    assert_eq!(again.presence().forbids(&deletion()), None, "a person deleted it, and restarted this one");
}

/// Two controllers of one account, which loses the right to write Leases. A person deletes the Lease: both see it go.
#[tokio::test]
async fn lease_that_goes_after_the_right_to_write_lets_one_act() {
    let bench = bench().await;
    let (mut first, mut second) = (watcher(&bench, "a"), watcher(&bench, "b"));
    first.round().await;
    second.round().await;
    bench.api.forbids_writes.store(true, Ordering::SeqCst);
    second.round().await;
    second.rule.seen.as_mut().unwrap().since.mono -= Duration::from_secs(301);
    first.round().await;
    second.round().await;
    bench.api.leases.lock().unwrap().clear();
    first.round().await;
    second.round().await;
    let acting = [&first, &second].map(|it| it.presence().forbids(&deletion()).is_none());
    assert_eq!(acting, [true, false]);
}

/// Two controllers of one account, which loses the right to write Leases. The one that waited acts after five minutes; the one
/// that held the Lease is restarted. Or three controllers, two of which waited.
#[tokio::test]
async fn right_to_write_that_was_taken_away_does_not_let_two_act() {
    let mut found = Vec::new();
    for other in ["a", "c"] {
        let bench = bench().await;
        let (mut first, mut second, mut third) =
            (watcher(&bench, "a"), watcher(&bench, "b"), watcher(&bench, "c"));
        first.round().await;
        second.round().await;
        third.round().await;
        bench.api.forbids_writes.store(true, Ordering::SeqCst);
        if other == "a" {
            // The next process of the first controller, on the same state directory.
            third = watcher(&bench, "a");
            drop(first);
        } else {
            third.rule.seen.as_mut().unwrap().since.mono -= Duration::from_secs(301);
        }
        second.rule.seen.as_mut().unwrap().since.mono -= Duration::from_secs(301);
        second.round().await;
        third.round().await;
        let acts = |one: &Watcher| one.presence().forbids(&deletion()).is_none();
        found.push((other, acts(&second), acts(&third)));
    }
    assert!(found.iter().all(|(_, second, third)| !(*second && *third)), "{found:?}");
}
