//! Attackers and broken clients: each way in, tried against a real server over real sockets.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/raw.rs"]
mod raw;
mod support;

use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use reveille_node::link::{Link, LinkError};
use reveille_node::target::Endpoint;
use reveille_registrar::registry::Settings;
use reveille_registrar::server::Limits;
use reveille_wire::agent::{AGENT_FRAME_BYTES_MAX, Secret};
use support::{code, site, site_with, who};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_tungstenite::tungstenite::Message;

/// Each step of a client has less time than usual, so that clients that never finish do not delay the tests.
fn hasty() -> Limits {
    Limits { step_within: Duration::from_millis(500), ..Limits::default() }
}

#[tokio::test]
async fn replayed_token_admits_no_other_machine() {
    let site = site().await;
    let invited = site.invite(|_| {}).await;
    site.enrol(&invited.token, &who(1)).await.unwrap();
    let error = site.enrol(&invited.token, &who(2)).await.unwrap_err();
    assert_eq!((code(&error), error.is_final()), ("TOKEN_USED_UP", true));
    let error = site.enrol(&invited.token, &who(1)).await.unwrap_err();
    assert_eq!(code(&error), "TOKEN_USED_UP", "and not even the same machine with another key");
    site.end().await;
}

#[tokio::test]
async fn expired_token_admits_no_machine() {
    let site = site().await;
    let invited = site.invite(|wished| wished.ttl_s = 1).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let error = site.enrol(&invited.token, &who(1)).await.unwrap_err();
    assert_eq!(code(&error), "TOKEN_EXPIRED");
    site.end().await;
}

#[tokio::test]
async fn token_for_one_machine_admits_no_other_machine() {
    let site = site().await;
    let invited = site.invite(|wished| wished.machine = Some("i-1".into())).await;
    let error = site.enrol(&invited.token, &who(2)).await.unwrap_err();
    assert_eq!(code(&error), "TOKEN_FOREIGN");
    site.enrol(&invited.token, &who(1)).await.unwrap();
    site.end().await;
}

#[tokio::test]
async fn guessed_token_and_partial_token_get_the_same_answer() {
    let site = site().await;
    let invited = site.invite(|_| {}).await;
    let token = invited.token.expose();
    let (head, _) = token.rsplit_once('.').unwrap();
    let guesses = [
        format!("{head}.{}", "0".repeat(64)),
        format!("{head}."),
        format!("rvi1.000000000000.{}", "0".repeat(64)),
        token[..token.len() - 1].to_owned(),
        token.replace("rvi1", "rvi2"),
        String::new(),
    ];
    let mut answers = std::collections::BTreeSet::new();
    for guess in guesses {
        let error = site.enrol(&Secret::new(&guess), &who(1)).await.unwrap_err();
        answers.insert(error.to_string());
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(answers.first().unwrap().starts_with("TOKEN_UNKNOWN"), "{answers:?}");
    site.end().await;
}

#[tokio::test]
async fn certificate_of_another_machine_opens_no_session_or_poll() {
    let site = site().await;
    let (one, stolen) = site.enrolled(1).await;
    let (two, own) = site.enrolled(2).await;
    let session = site.link.session(&stolen, one.hello()).await.unwrap();
    let error = site.link.session(&stolen, two.hello()).await.unwrap_err();
    assert_eq!(code(&error), "IDENTITY_CONFLICT", "the key of one on the machine of the other");
    let own = raw::shown(own);
    let number = session.welcome.session;
    let ask = raw::post("/v1/poll", "", &format!("{{\"session\":{number},\"ack\":0,\"frames\":[]}}"));
    let (status, refused) = raw::refused(&raw::say(raw::tls13(&site.link, Some(&own)).await, &ask).await);
    assert_eq!((status, refused.reason.code()), (409, "REPLACED"), "the session of another is no session");
    site.end().await;
}

#[tokio::test]
async fn unknown_certificate_is_answered_only_on_ping_and_enrol() {
    let site = site().await;
    let strange = stranger();
    for shown in [None, Some(&strange)] {
        for path in ["/v1/poll", "/v1/renew"] {
            let answer = raw::say(raw::tls13(&site.link, shown).await, &raw::post(path, "", "{}")).await;
            let (status, refused) = raw::refused(&answer);
            assert_eq!((status, refused.reason.code()), (401, "CERTIFICATE_UNKNOWN"), "{path}");
        }
        let ask = b"GET /v1/session HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        let (status, refused) = raw::refused(&raw::say(raw::tls13(&site.link, shown).await, ask).await);
        assert_eq!((status, refused.reason.code()), (401, "CERTIFICATE_UNKNOWN"));
    }
    site.end().await;
}

/// A certificate with a machine's record in it, by a foreign authority.
fn stranger() -> raw::Shown {
    let issuer = authority();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, "m-1");
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    raw::Shown {
        chain: vec![certificate.der().clone()],
        key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A man in the middle, with a certificate for the right name by an authority that other programs trust. Returns how many
/// bytes of a request it read.
async fn in_between(
    versions: &[&'static rustls::SupportedProtocolVersion],
    also: Vec<Vec<u8>>,
) -> (Endpoint, tokio::task::JoinHandle<usize>) {
    let issuer = authority();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = params.signed_by(&key, &issuer).unwrap();
    let mut chain = vec![leaf.der().clone(), issuer.der().clone()];
    chain.extend(also.into_iter().map(Into::into));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        match TlsAcceptor::from(Arc::new(config)).accept(stream).await {
            Ok(mut stream) => stream.read(&mut [0; 4096]).await.unwrap_or(0),
            Err(_) => 0,
        }
    });
    (Endpoint { host: "127.0.0.1".to_owned(), port }, task)
}

#[tokio::test]
async fn man_in_the_middle_with_public_certificate_gets_no_token_byte() {
    let site = site().await;
    let invited = site.invite(|_| {}).await;
    let (server, overheard) = in_between(&[&rustls::version::TLS13], vec![]).await;
    let link = Link { server, pins: site.link.pins.clone() };
    let enrolment = reveille_node::link::Enrolment::new(who(1).identity, who(1).facts, None).unwrap();
    let error = enrolment.ask(&link, &invited.token, Default::default()).await.unwrap_err();
    assert_eq!((code(&error), error.is_final()), ("CA_PIN_MISMATCH", true));
    assert_eq!(overheard.await.unwrap(), 0);
    site.end().await;
}

#[tokio::test]
async fn presenting_our_authority_without_its_key_is_not_enough() {
    let site = site().await;
    let pem = std::fs::read(site.directory.path().join("authority/0001.pem")).unwrap();
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;
    let ours = rustls::pki_types::CertificateDer::from_pem_slice(&pem).unwrap();
    let (server, overheard) = in_between(&[&rustls::version::TLS13], vec![ours.to_vec()]).await;
    let link = Link { server, pins: site.link.pins.clone() };
    let error = link.ping().await.unwrap_err();
    assert!(matches!(&error, LinkError::Tls { what, .. } if what.contains("UnknownIssuer")), "{error}");
    assert_eq!(overheard.await.unwrap(), 0);
    site.end().await;
}

#[tokio::test]
async fn older_tls_and_other_protocol_versions_are_refused() {
    let site = site().await;
    assert!(raw::dial(&site.link, None, &[&rustls::version::TLS12]).await.is_err(), "the server");
    let (server, overheard) = in_between(&[&rustls::version::TLS12], vec![]).await;
    let link = Link { server, pins: site.link.pins.clone() };
    assert!(matches!(link.ping().await, Err(LinkError::Tls { .. })), "the machine");
    assert_eq!(overheard.await.unwrap(), 0);
    let invited = site.invite(|_| {}).await;
    let bearer = format!("authorization: Bearer {}\r\n", invited.token.expose());
    for protocol in [0, 2] {
        let body = format!("{{\"protocol\":{protocol},\"identity\":{{\"boot_id\":\"b\"}},\"csr\":\"\"}}");
        let answer =
            raw::say(raw::tls13(&site.link, None).await, &raw::post("/v1/enrol", &bearer, &body)).await;
        let (status, refused) = raw::refused(&answer);
        assert_eq!((status, refused.reason.code()), (426, "VERSION"));
    }
    site.end().await;
}

#[tokio::test]
async fn oversized_malformed_or_slow_request_is_refused_by_the_server() {
    let site = site_with(TempDir::new().unwrap(), Settings::default(), hasty()).await;
    let invited = site.invite(|_| {}).await;
    let bearer = format!("authorization: Bearer {}\r\n", invited.token.expose());
    let large = format!("\"{}\"", "a".repeat(AGENT_FRAME_BYTES_MAX));
    for body in [large.as_str(), "{", "[]", "{\"protocol\":1}", "\u{0}"] {
        let answer =
            raw::say(raw::tls13(&site.link, None).await, &raw::post("/v1/enrol", &bearer, body)).await;
        let (status, refused) = raw::refused(&answer);
        assert_eq!((status, refused.reason.code()), (400, "BAD_FRAME"), "{}", &body[..body.len().min(20)]);
    }
    let slow_body = format!("POST /v1/enrol HTTP/1.1\r\nhost: x\r\n{bearer}content-length: 900\r\n\r\n{{");
    let answer = raw::say(raw::tls13(&site.link, None).await, slow_body.as_bytes()).await;
    assert_eq!(raw::refused(&answer).1.reason.code(), "BAD_FRAME");
    let slow_head = raw::say(raw::tls13(&site.link, None).await, b"GET /v1/ping HTTP/1.1\r\nhost:").await;
    assert!(slow_head.is_empty() || slow_head.starts_with("HTTP/1.1 408"), "{slow_head}");
    let long_head = format!("GET /v1/ping HTTP/1.1\r\nhost: x\r\na: {}\r\n\r\n", "a".repeat(64 << 10));
    let answer = raw::say(raw::tls13(&site.link, None).await, long_head.as_bytes()).await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{}", &answer[..answer.len().min(60)]);
    site.enrol(&invited.token, &who(1)).await.unwrap();
    site.end().await;
}

#[tokio::test]
async fn connection_with_endless_requests_is_closed_in_the_end() {
    let limits = Limits { connection_within: Duration::from_secs(1), ..Limits::default() };
    let site = site_with(TempDir::new().unwrap(), Settings::default(), limits).await;
    let mut stream = raw::tls13(&site.link, None).await;
    let asking = async {
        let mut part = [0; 4096];
        while stream.write_all(b"GET /v1/ping HTTP/1.1\r\nhost: x\r\n\r\n").await.is_ok()
            && matches!(stream.read(&mut part).await, Ok(1..))
        {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asking).await.unwrap();
    site.end().await;
}

#[tokio::test]
async fn oversized_malformed_or_absent_frame_ends_session_with_reason() {
    let site = site_with(TempDir::new().unwrap(), Settings::default(), hasty()).await;
    let (machine, credential) = site.enrolled(1).await;
    let shown = raw::shown(credential);
    let hello = serde_json::to_string(&reveille_wire::agent::Numbered {
        n: 1,
        frame: reveille_wire::agent::AgentFrame::Hello(machine.hello()),
    })
    .unwrap();
    let heartbeat = r#"{"n":1,"t":"heartbeat"}"#.to_owned();
    let cases = [
        (vec!["{".to_owned()], "BAD_FRAME"),
        (vec![heartbeat], "BAD_FRAME"),
        (vec![hello.clone(), hello.clone().replace("\"n\":1", "\"n\":2")], "BAD_FRAME"),
        (
            vec![hello.clone(), format!("{{\"n\":2,\"t\":\"{}\"}}", "a".repeat(AGENT_FRAME_BYTES_MAX))],
            "BAD_FRAME",
        ),
        (vec![hello.replace("\"protocol\":1", "\"protocol\":2")], "VERSION"),
        (vec![], "BAD_FRAME"),
    ];
    for (texts, wanted) in cases {
        let mut socket = raw::socket(&site.link, &shown).await;
        for text in &texts {
            // The server may close the connection before all bytes are sent.
            drop(socket.send(Message::text(text.clone())).await);
        }
        let mut found = None;
        while let Some(Ok(message)) = socket.next().await {
            match message {
                Message::Text(text) => found = found.or_else(|| raw::refusal(&text)),
                Message::Close(Some(frame)) => assert!(u16::from(frame.code) >= 4400, "{frame:?}"),
                _ => {}
            }
        }
        assert_eq!(
            found.map(|refused| refused.reason.code()),
            Some(wanted),
            "{:?}",
            texts.last().map(|text| &text[..text.len().min(40)])
        );
    }
    site.end().await;
}

/// As many connections as this process may open, when it holds both ends.
fn crowd() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(1024);
    let limit = usize::try_from(limit).unwrap_or(1024);
    limit.saturating_sub(2048).clamp(400, 10_000)
}

#[tokio::test]
async fn ten_thousand_unfinished_handshakes_block_no_machine() {
    let limits = Limits { half_open_max: 64, half_open_per_address_max: 32, ..Limits::default() };
    let site = site_with(TempDir::new().unwrap(), Settings::default(), limits).await;
    let invited = site.invite(|wished| wished.uses = 3).await;
    let mut crowd_of_them = Vec::new();
    for number in 0..crowd() {
        let mut stream = TcpStream::connect(("127.0.0.1", site.link.server.port)).await.unwrap();
        // The first bytes of a handshake, and nothing more.
        drop(stream.write_all(&[0x16, 0x03, 0x01]).await);
        crowd_of_them.push(stream);
        if number % 4000 == 100 {
            site.enrol(&invited.token, &who(u32::try_from(number).unwrap())).await.unwrap();
        }
    }
    site.link.ping().await.unwrap();
    let streams: Vec<_> = crowd_of_them.into_iter().map(|stream| stream.into_std().unwrap()).collect();
    let is_open = |mut stream: &std::net::TcpStream| {
        let read = std::io::Read::read(&mut stream, &mut [0]);
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let mut open = streams.len();
    for _ in 0..500 {
        open = streams.iter().filter(|stream| is_open(stream)).count();
        if open <= 32 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(open <= 32, "{open} of {} still stand", streams.len());
    site.end().await;
}

#[tokio::test]
async fn what_answers_in_the_servers_place_is_told_by_name() {
    let site = site().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.read(&mut [0; 4096]).await);
            let portal = "HTTP/1.1 407 Proxy Authentication Required\r\nServer: squid/6.1\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n\
                <html>sign in, password=kuckuck</html>";
            drop(stream.write_all(portal.as_bytes()).await);
        }
    });
    let link = Link { server: Endpoint { host: "127.0.0.1".to_owned(), port }, pins: site.link.pins.clone() };
    let error = link.ping().await.unwrap_err();
    assert_eq!(code(&error), "PROXY_ANSWERED");
    let text = error.to_string();
    assert!(text.contains("status 407") && text.contains("squid/6.1") && !text.contains("kuckuck"), "{text}");
    site.end().await;
}

#[tokio::test]
async fn lies_about_a_machine_between_polls_do_not_end_its_session() {
    let site = site().await;
    let (owner, credential) = site.enrolled(1).await;
    let shown = raw::shown(credential);
    let hello = reveille_wire::agent::Numbered {
        n: 1,
        frame: reveille_wire::agent::AgentFrame::Hello(owner.hello()),
    };
    let hello = serde_json::to_string(&hello).unwrap();
    let begin = raw::post("/v1/poll", "", &format!("{{\"ack\":0,\"frames\":[{hello}]}}"));
    let answer = raw::say(raw::tls13(&site.link, Some(&shown)).await, &begin).await;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let number = serde_json::from_str::<serde_json::Value>(body).unwrap()["session"].as_u64().unwrap();
    let invited = site.invite(|wished| wished.uses = 200).await;
    for lie in 0..80 {
        let mut liar = who(100 + lie);
        liar.identity.instance_id = Some("i-1".into());
        let error = site.enrol(&invited.token, &liar).await.unwrap_err();
        assert_eq!(code(&error), "IDENTITY_CONFLICT");
    }
    let ask = format!("{{\"session\":{number},\"ack\":1,\"frames\":[],\"hold_s\":1}}");
    let answer = raw::say(raw::tls13(&site.link, Some(&shown)).await, &raw::post("/v1/poll", "", &ask)).await;
    let rivals = answer.matches("\"rival\"").count();
    println!("80 lies, and the owner polls: {}, {rivals} rivals", &answer[..15]);
    assert_eq!((answer.starts_with("HTTP/1.1 200"), rivals), (true, 1));
    let ask = format!("{{\"session\":{number},\"ack\":99,\"frames\":[],\"hold_s\":0}}");
    let answer = raw::say(raw::tls13(&site.link, Some(&shown)).await, &raw::post("/v1/poll", "", &ask)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "its session stands: {answer}");
    site.end().await;
}
