//! Messages of invited or enrolled machines that no honest agent sends: the same bytes, against a real server.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/raw.rs"]
mod raw;
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use reveille_core::model::time::{Span, Time};
use reveille_node::link::Credential;
use reveille_registrar::registry::{
    Event, InvitationId, NodeIds, NodeSaid, Reply, Settings, TokenHash, Wish,
};
use reveille_registrar::server::{Limits, NodeAsked};
use reveille_wire::agent::{AgentFrame, Identity, Numbered, Refused};
use support::{Site, Who, site, site_of, who};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::Message;

/// A request whose key is on the curve P-384 and whose signature is over SHA-256; both sides can verify it.
const P384_BY_SHA256: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIIBBTCBiwIBADAMMQowCAYDVQQDDAF3MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE
/baknpOCFO69XIhYU2q1ndYzhSl5o91YoJvNGvY1F36zewNiePeIO2rrZtQsWXVB
4QM+K8L545PY8tApWAuG9x/EL5I0O4cODQ4CVeCa1kDLR9XxpgEvRKz87zyctptt
oAAwCgYIKoZIzj0EAwIDaQAwZgIxAMIKGvR3SFFAfCg8ZjDcvZhA4sOYIw91pP5y
M/Wfju3iXjzeAshueQ5g04nN5dHr6wIxAJS16ZrmD9cJXyKiBuhy2nRb0xz7eY+1
+sus+SvC97IrN/EMQO8rfHf11xdHYBZfAQ==
-----END CERTIFICATE REQUEST-----
";
/// A request with a key on P-256 whose point is compressed.
const COMPRESSED: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIGmME4CAQAwDDEKMAgGA1UEAwwBdzA5MBMGByqGSM49AgEGCCqGSM49AwEHAyIA
AmPphXwb1afFqDRz0/PDBy/EZXYv4m9zuouSiiUo5fDpoAAwCgYIKoZIzj0EAwID
SAAwRQIhAL5VSJIi8K2F4aZ6rUw/ZW1NqBJsJYvb6A3DSzsEw5PZAiAgTeC4HonE
Z2MLsJszR7fUKxNus5CJN8i/28r5q4p7TA==
-----END CERTIFICATE REQUEST-----
";

/// How often an invitation was used, as the server remembers it.
async fn uses(site: &Site) -> u32 {
    let counted = site.hand.view(|registry, _| registry.index().invitations().map(|it| it.uses).sum());
    counted.await.unwrap()
}

#[tokio::test]
async fn a_request_that_no_certificate_comes_of_uses_no_token_up() {
    let site = site().await;
    let invited = site.invite(|_| {}).await;
    let bearer = format!("authorization: Bearer {}\r\n", invited.token.expose());
    for (what, csr) in [("P-384 signed over SHA-256", P384_BY_SHA256), ("a compressed point", COMPRESSED)] {
        let identity = &who(9).identity;
        let facts = &who(9).facts;
        let body =
            serde_json::json!({"protocol": 1, "identity": identity, "facts": facts, "csr": csr}).to_string();
        let ask = raw::post("/v1/enrol", &bearer, &body);
        let answer = raw::say(raw::tls13(&site.link, None).await, &ask).await;
        println!("{what}: {}", &answer[..answer.len().min(17)]);
        assert!(answer.starts_with("HTTP/1.1 400"), "{what}: {answer}");
        let (_, refused) = raw::refused(&answer);
        assert_eq!(refused.reason.code(), "BAD_FRAME", "{what}");
        assert_eq!(uses(&site).await, 0, "{what}");
    }
    site.enrol(&invited.token, &who(1)).await.unwrap();
    assert_eq!(uses(&site).await, 1);
    site.end().await;
}

/// A welcomed session of this machine, over which the test then writes raw bytes.
async fn welcomed(site: &Site, machine: &Who, credential: Credential) -> raw::Socket {
    let mut socket = raw::socket(&site.link, &raw::shown(credential)).await;
    let hello = Numbered { n: 1, frame: AgentFrame::Hello(machine.hello()) };
    socket.send(Message::text(serde_json::to_string(&hello).unwrap())).await.unwrap();
    socket.next().await.unwrap().unwrap();
    socket
}

/// Sends the bytes again and again until the server takes no more, at most `times`. Returns the server's last frame, and
/// how many repetitions it took.
async fn flood(
    mut socket: raw::Socket,
    first: &[u8],
    again: &[u8],
    times: usize,
) -> (Option<Refused>, usize) {
    let stream = socket.get_mut();
    let batch = again.repeat(100);
    stream.write_all(first).await.unwrap();
    let mut taken = 0;
    while taken < times && stream.write_all(&batch).await.is_ok() && stream.flush().await.is_ok() {
        taken += 100;
        tokio::task::yield_now().await;
    }
    let last = async {
        let mut last = None;
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Text(text) = message {
                last = raw::refusal(&text).or(last);
            }
        }
        last
    };
    (tokio::time::timeout(Duration::from_secs(2), last).await.unwrap_or_default(), taken)
}

#[tokio::test]
async fn flood_of_empty_frames_ends_the_session() {
    const TIMES: usize = 200_000;
    let cases: [(&str, &[u8], &[u8]); 4] = [
        ("empty fragments", &[0x01, 0x80, 0, 0, 0, 0], &[0x00, 0x80, 0, 0, 0, 0]),
        ("fragments of a byte", &[0x01, 0x80, 0, 0, 0, 0], &[0x00, 0x81, 0, 0, 0, 0, b' ']),
        ("empty pings", &[], &[0x89, 0x80, 0, 0, 0, 0]),
        ("empty pongs", &[], &[0x8a, 0x80, 0, 0, 0, 0]),
    ];
    let site = site().await;
    for (number, (what, first, again)) in (1..).zip(cases) {
        let (machine, credential) = site.enrolled(number).await;
        let socket = welcomed(&site, &machine, credential).await;
        let begun = Instant::now();
        let (last, taken) = flood(socket, first, again, TIMES).await;
        let code = last.as_ref().map(|refused| refused.reason.code());
        println!("{what}: {code:?} after {:?}, {taken} of {TIMES} were sent", begun.elapsed());
        assert_eq!(code, Some("TOO_MANY"), "{what}");
    }
    site.end().await;
}

#[tokio::test]
async fn requests_sent_without_pause_are_answered_at_a_pace() {
    let site = site().await;
    let (_, credential) = site.enrolled(1).await;
    let shown = raw::shown(credential);
    let poll = raw::post("/v1/poll", "", "{\"session\":1,\"ack\":0,\"frames\":[],\"hold_s\":0}");
    let ping = b"GET /v1/ping HTTP/1.1\r\nhost: x\r\n\r\n".to_vec();
    for (what, shown, ask) in [("polls of a machine", Some(&shown), poll), ("a client's pings", None, ping)] {
        let mut stream = raw::tls13(&site.link, shown).await;
        let (begun, mut answered, mut part) = (Instant::now(), 0, [0; 4096]);
        while begun.elapsed() < Duration::from_secs(2) && answered < 2000 {
            stream.write_all(&ask).await.unwrap();
            assert!(stream.read(&mut part).await.unwrap() > 0);
            answered += 1;
        }
        println!("{what}: {answered} answers in {:?}", begun.elapsed());
        assert!((60..120).contains(&answered), "{what}: {answered}");
    }
    site.end().await;
}

/// The body of a request to enrol, with this host name.
fn enrolment(identity: &Identity, hostname: &str) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let csr = rcgen::CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
    let facts = serde_json::json!({"hostname": hostname});
    serde_json::json!({"protocol": 1, "identity": identity, "facts": facts, "csr": csr}).to_string()
}

/// A cluster with a Node of this name, which has an id of machine 1. Returns how often it was asked.
fn cluster(mut asked: tokio::sync::mpsc::Receiver<NodeAsked>, name: &'static str) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Some(question) = asked.recv().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let node = NodeIds {
                name: name.into(),
                instance: Some("i-another".into()),
                system_uuid: Some("i-1".into()),
            };
            drop(question.reply.send(NodeSaid::Present(vec![node])));
        }
    });
    count
}

/// A client with the token holds the body back until the invitation opens.
#[tokio::test]
async fn request_begun_before_its_invitation_opens_takes_no_node_name() {
    let kept = Span::from_s(1);
    let settings = Settings { invitation_kept: kept, ..Settings::default() };
    let (site, asked) = site_of(&["prod"], TempDir::new().unwrap(), settings, Limits::default()).await;
    let count = cluster(asked, "w-1");
    let secret = "ab".repeat(32);
    let mut hash = [0; 32];
    hash.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, secret.as_bytes()).as_ref());
    // An invitation that opens later: the test makes the same one again after it was forgotten.
    let invite = |ttl: Span| {
        let (roster, pool, roles) = ("prod".into(), "workers".into(), BTreeSet::new());
        let wish = Wish { roster, pool, roles, machine: None, reimage: None, ttl, uses: 1 };
        let (id, hash) = (InvitationId::new("0123456789ab"), TokenHash(hash));
        site.hand.ask(move |ask| Event::Invite { ask, wish, id, hash })
    };
    invite(Span::from_ms(1)).await.unwrap();
    let body = enrolment(&who(1).identity, "w-1");
    let head = format!(
        "POST /v1/enrol HTTP/1.1\r\nhost: x\r\nauthorization: Bearer rvi1.0123456789ab.{secret}\r\n\
        content-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = raw::tls13(&site.link, None).await;
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let begun = Instant::now();
    while !matches!(invite(Span::from_min(60)).await, Ok(Reply::Invited { .. })) {
        assert!(begun.elapsed() < Duration::from_secs(8), "it is forgotten in two seconds");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (_, refused) = raw::refused(&raw::say(stream, body.as_bytes()).await);
    assert_eq!((refused.reason.code(), refused.retry_after_s.is_some()), ("UNAVAILABLE", true));
    let ask = raw::post("/v1/enrol", &format!("authorization: Bearer rvi1.0123456789ab.{secret}\r\n"), &body);
    let (_, refused) = raw::refused(&raw::say(raw::tls13(&site.link, None).await, &ask).await);
    assert_eq!(refused.reason.code(), "IDENTITY_CONFLICT", "and the next time the cluster is asked");
    assert_eq!(count.load(Ordering::Relaxed), 1);
    site.end().await;
}

#[tokio::test]
async fn one_token_has_few_nodes_asked_for_however_often_it_is_shown() {
    let (site, asked) =
        site_of(&["prod", "dev"], TempDir::new().unwrap(), Settings::default(), Limits::default()).await;
    // The Node has no name of machine 1: that it has an id of machine 1 voids no invitation.
    let count = cluster(asked, "db-1");
    let cases = [
        ("an instance's id as a name", None, "i-0123456789abcdef0", "BAD_FRAME", 0),
        ("a token for another machine", Some("w-9"), "w-1", "TOKEN_FOREIGN", 0),
        ("an id of another Node", None, "w-1", "IDENTITY_CONFLICT", 2),
    ];
    for (what, machine, hostname, code, most) in cases {
        count.store(0, Ordering::Relaxed);
        let invited = site
            .invite(|wish| (wish.roster, wish.machine) = (Some("prod".into()), machine.map(Into::into)))
            .await;
        let mut identity = who(1).identity;
        identity.system_uuid = None;
        let bearer = format!("authorization: Bearer {}\r\n", invited.token.expose());
        let ask = raw::post("/v1/enrol", &bearer, &enrolment(&identity, hostname));
        let first = raw::say(raw::tls13(&site.link, None).await, &ask).await;
        assert_eq!(raw::refused(&first).1.reason.code(), code, "{what}");
        let begun = Instant::now();
        for _ in 0..60 {
            raw::say(raw::tls13(&site.link, None).await, &ask).await;
        }
        // The burst of questions, and one more for each second.
        let most = most * (21 + 1 + usize::try_from(begun.elapsed().as_secs()).unwrap());
        let questions = count.load(Ordering::Relaxed);
        println!("{what}: {questions} questions for 61 tries, {most} at most");
        assert!(questions <= most, "{what}: {questions} questions for 61 tries");
    }
    site.end().await;
}

#[tokio::test]
async fn machine_reconnecting_after_each_burst_keeps_one_pace() {
    const OF_A_CONNECTION: usize = 40;
    let site = site().await;
    let (_, credential) = site.enrolled(1).await;
    let shown = raw::shown(credential);
    let poll = raw::post("/v1/poll", "", "{\"session\":1,\"ack\":0,\"frames\":[],\"hold_s\":0}");
    let (begun, mut answered, mut part) = (Instant::now(), 0, [0; 4096]);
    while begun.elapsed() < Duration::from_secs(3) && answered < 2000 {
        let mut stream = raw::tls13(&site.link, Some(&shown)).await;
        for _ in 0..OF_A_CONNECTION {
            stream.write_all(&poll).await.unwrap();
            assert!(stream.read(&mut part).await.unwrap() > 0);
            answered += 1;
            if begun.elapsed() > Duration::from_secs(3) {
                break;
            }
        }
    }
    println!("{answered} answers in {:?}", begun.elapsed());
    assert!((60..120).contains(&answered), "{answered}");
    let (machine, credential) = site.enrolled(2).await;
    let hello = machine.hello();
    site.link.session(&credential, hello).await.unwrap();
    site.end().await;
}

/// Renewals give a machine a key more: the key before and four next ones count beside each other.
#[tokio::test]
async fn a_machine_with_several_keys_is_answered_at_the_pace_of_one() {
    let site = site().await;
    let (_, first) = site.enrolled(1).await;
    let mut all = Vec::new();
    for _ in 0..4 {
        let (next, _) = site.link.renew(&first, Time::from_ms(0)).await.unwrap();
        all.push(raw::shown(next));
    }
    all.push(raw::shown(first));
    let poll = raw::post("/v1/poll", "", "{\"session\":1,\"ack\":0,\"frames\":[],\"hold_s\":0}");
    let begun = Instant::now();
    let asks = all.iter().map(async |shown| {
        let mut stream = raw::tls13(&site.link, Some(shown)).await;
        let (mut answered, mut part) = (0, [0; 4096]);
        while begun.elapsed() < Duration::from_secs(3) {
            stream.write_all(&poll).await.unwrap();
            let count = stream.read(&mut part).await.unwrap();
            assert!(count > 0);
            answered += usize::from(!String::from_utf8_lossy(&part[..count]).contains("TOO_MANY"));
        }
        answered
    });
    let answered: Vec<usize> = futures::future::join_all(asks).await;
    let all: usize = answered.iter().sum();
    println!("{answered:?} answers in {:?}", begun.elapsed());
    assert!((60..120).contains(&all), "{all} answers for one machine in {:?}: {answered:?}", begun.elapsed());
    site.end().await;
}

#[tokio::test]
async fn a_key_that_was_replaced_takes_no_turn_of_its_machine() {
    const BURST: usize = 60;
    let site = site().await;
    let (machine, before) = site.enrolled(1).await;
    let (key, _) = site.link.renew(&before, Time::from_ms(0)).await.unwrap();
    let session = site.link.session(&key, machine.hello()).await.unwrap();
    let poll = raw::post("/v1/poll", "", "{\"session\":1,\"ack\":0,\"frames\":[],\"hold_s\":0}");
    for (shown, code) in [(raw::shown(before), "CERTIFICATE_REVOKED"), (raw::shown(key), "")] {
        let mut stream = raw::tls13(&site.link, Some(&shown)).await;
        let (begun, mut part) = (Instant::now(), [0; 4096]);
        for _ in 0..BURST {
            stream.write_all(&poll).await.unwrap();
            let count = stream.read(&mut part).await.unwrap();
            let answer = String::from_utf8_lossy(&part[..count]);
            assert!(count > 0 && answer.contains(code), "{answer}");
        }
        // The turns of one burst come in six seconds, where they have to be waited for.
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    drop(session);
    site.end().await;
}
