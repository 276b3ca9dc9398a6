//! Requests: each path with its method, its limits and its deadline; each refusal with its status and a body.
//!
//! ```text
//!  GET  /v1/ping      any client
//!  POST /v1/enrol     Authorization: Bearer TOKEN
//!  POST /v1/renew     a machine's certificate
//!  POST /v1/poll      a machine's certificate
//!  GET  /v1/session   a machine's certificate, and an upgrade to a WebSocket
//! ```

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, SERVER};
use hyper::{Method, Request, Response, StatusCode};
use reveille_core::model::time::Span;
use reveille_wire::agent::text::{List, Sentence, Word};
use reveille_wire::agent::{
    AGENT_FRAME_BYTES_MAX, Enrol, Enrolled, PRODUCT, PROTOCOL, Ping, Reason, Refused, Renew, path, read,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::authority::Authorities;
use super::gate::{Owner, Place};
use super::keeper::Hand;
use super::log_limits::LogLimits;
use super::long_poll::LongPolls;
use super::nodes::Nodes;
use super::pace::Paces;
use super::tls::{Shown, TlsAcceptor};
use super::{clock, request, socket, token};
use crate::registry::{Event, InvitationId, MachineId, NodeSaid, Peer, Reply, node_name};

/// The time limit of an answer of the registry.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// An answer.
pub(super) type Answer = Response<Full<Bytes>>;

/// What every request needs.
pub(super) struct ServerState {
    pub(super) hand: Hand,
    pub(super) authorities: Mutex<Authorities>,
    pub(super) acceptor: RwLock<TlsAcceptor>,
    pub(super) polls: LongPolls,
    /// The paces of machines.
    pub(super) paces: Paces,
    /// The questions to clusters about their Nodes.
    pub(super) nodes: Nodes,
    /// The log lines about strangers.
    pub(super) log_limits: LogLimits,
    pub(super) version: &'static str,
    /// The time limit of each step of a client.
    pub(super) step_within: Duration,
    /// The time limit of a connection.
    pub(super) connection_within: Duration,
    /// A place for each WebSocket: when all are free, every session was told that the server stops.
    pub(super) sessions: Arc<Semaphore>,
}

impl ServerState {
    /// Logs what a client did of which nothing is known.
    pub(super) fn stranger(&self, address: SocketAddr, what: &'static str) {
        if let Some(times) = self.log_limits.of_stranger(Instant::now(), address.ip(), what) {
            tracing::info!(%address, times, "{what}");
        }
    }

    /// Asks the registry whether this key belongs to its machine, and whether the machine may come.
    pub(super) async fn stands(&self, peer: &Peer) -> bool {
        let asked = peer.clone();
        within(self.hand.view(move |registry, _| registry.stands(&asked)))
            .await
            .is_ok_and(|stands| stands.is_ok())
    }

    /// The TLS configuration and certificate judge in force now.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A client: the certificate that it showed, whose key the handshake proved, and its place. The certificate is judged at
/// each request: it, or its authority, may have ended since.
pub(super) struct Visitor {
    pub(super) shown: Option<CertificateDer<'static>>,
    pub(super) address: SocketAddr,
    pub(super) place: Arc<Place>,
}

/// Answers one request.
pub(super) async fn route(state: &Arc<ServerState>, visitor: &Visitor, request: Request<Incoming>) -> Answer {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let answered = match (&method, path.as_str()) {
        (&Method::GET, path::PING) => Ok(ping(state)),
        (&Method::POST, path::ENROL) => enrol(state, visitor, request).await,
        (&Method::POST, path::RENEW) => renew(state, visitor, request).await,
        (&Method::POST, path::POLL) => poll(state, visitor, request).await,
        (&Method::GET, path::SESSION) => session(state, visitor, request).await,
        _ => Err(Reason::NoSuchPath),
    };
    let mut answer = answered.unwrap_or_else(|reason| refusal(state, reason.into()));
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(SERVER, HeaderValue::from_static(PRODUCT));
    answer
}

fn ping(state: &ServerState) -> Answer {
    let ping = Ping {
        product: PRODUCT.into(),
        version: state.version.into(),
        protocols: List::first([PROTOCOL]),
        time: Word::cut(&clock::wall().to_string()),
    };
    json(StatusCode::OK, &ping)
}

async fn enrol(state: &ServerState, visitor: &Visitor, request: Request<Incoming>) -> Result<Answer, Reason> {
    let address = visitor.address;
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = header.and_then(|header| header.strip_prefix("Bearer ")).map(str::trim);
    let Some((id, hash)) = bearer.and_then(token::split) else {
        state.stranger(address, "rejected: no token of an invitation");
        return Err(Reason::TokenUnknown);
    };
    // This comes before the body, which takes its time: a client with an invitation keeps its place against clients
    // without one.
    let (shown, secret) = (id.clone(), hash);
    let opens = state.hand.view(move |registry, now| {
        let is_known = registry.knows(&shown, &secret);
        (is_known, registry.opens(now, &shown, &secret), registry.settings().certificate_ttl)
    });
    let (is_known, is_open, ttl) = within(opens).await?;
    if !is_known {
        // The server reads no byte of the body of a client without a token.
        state.stranger(address, "rejected: unknown token");
        return Err(Reason::TokenUnknown);
    }
    if is_open {
        visitor.place.is_known_now(Owner::Invitation(id.clone()));
    }
    let wish: Enrol = body(state, request).await?;
    spoken(wish.protocol)?;
    let csr = request::read(&wish.csr)?;
    let key = request::key_hash(&spki(&csr.public_key));
    let fresh = token::draw_machine().map_err(|_| Reason::Unavailable)?;
    // The certificate is made before the token is used: enrolling uses the token up, and a request that fails must not.
    let draft =
        if is_open { Some((fresh.clone(), certificate(state, &fresh, &csr.public_key, ttl)?)) } else { None };
    let enrol = |node: Option<NodeSaid>| {
        let (id, fresh, wish) = (id.clone(), fresh.clone(), wish.clone());
        let Enrol { identity, facts, node_name, .. } = wish;
        within(state.hand.ask(move |ask| Event::Enrol {
            ask,
            id,
            hash,
            identity,
            facts,
            node_name,
            node,
            key,
            fresh,
        }))
    };
    let mut reply = enrol(state.nodes.unasked()).await?;
    let wished = wish.node_name.as_ref().unwrap_or(&wish.facts.hostname);
    // Without a draft the invitation was not open when the request came: the machine has to come again.
    if let (Reply::NodesToAsk(roster), Some(name), true) = (&reply, node_name(wished), is_open) {
        let ids: Vec<Word> = wish.identity.lasting().map(|(_, word)| Word::cut(word)).collect();
        let said = state.nodes.said(&id, roster, &name, &ids).await;
        reply = enrol(said).await?;
    }
    tell_of(state, address, &id, &reply);
    certified(state, reply, &csr.public_key, draft)
}

/// Logs which machine was enrolled, and which was refused.
fn tell_of(state: &ServerState, address: SocketAddr, invitation: &InvitationId, reply: &Reply) {
    match reply {
        Reply::Certify { machine, node_name, .. } => {
            tracing::info!(%address, %invitation, %machine, %node_name, "a machine was enrolled");
        }
        Reply::Refused(Refused { reason: Reason::IdentityConflict { part, .. }, .. }) => {
            let part = part.name();
            if let Some(times) = state.log_limits.of_invited(Instant::now(), invitation, "conflict") {
                tracing::warn!(
                    %address, %invitation, part, times,
                    "a client came as a machine, or a Node of the cluster, that it is not"
                );
            }
        }
        Reply::Refused(refused) => {
            let code = refused.reason.code();
            if let Some(times) = state.log_limits.of_invited(Instant::now(), invitation, "refused") {
                tracing::info!(%address, %invitation, code, times, "a machine was not enrolled");
            }
        }
        _ => {}
    }
}

async fn renew(state: &ServerState, visitor: &Visitor, request: Request<Incoming>) -> Result<Answer, Reason> {
    let peer = machine(state, visitor).await?;
    let wish: Renew = body(state, request).await?;
    spoken(wish.protocol)?;
    let csr = request::read(&wish.csr)?;
    let key = request::key_hash(&spki(&csr.public_key));
    let reply = within(state.hand.ask(|ask| Event::Renew { ask, peer, key })).await?;
    certified(state, reply, &csr.public_key, None)
}

async fn poll(state: &ServerState, visitor: &Visitor, request: Request<Incoming>) -> Result<Answer, Reason> {
    let peer = machine(state, visitor).await?;
    let polled = state.polls.poll(&state.hand, peer, body(state, request).await?).await?;
    Ok(json(StatusCode::OK, &polled))
}

async fn session(
    state: &ServerState,
    visitor: &Visitor,
    mut request: Request<Incoming>,
) -> Result<Answer, Reason> {
    let peer = machine(state, visitor).await?;
    let accept = socket::accept(&request).ok_or(Reason::UpgradeRequired)?;
    // This answer comes before the upgrade, where a status can still be sent.
    let asked = peer.clone();
    within(state.hand.view(move |registry, _| registry.stands(&asked))).await??;
    let (hand, upgrade, step_within) =
        (state.hand.clone(), hyper::upgrade::on(&mut request), state.step_within);
    let too_many = || Reason::TooMany { of: "sessions".into() };
    let room = state.sessions.clone().try_acquire_owned().map_err(|_| too_many())?;
    let place = visitor.place.clone();
    tokio::spawn(async move {
        let _room = room;
        match timeout(step_within, upgrade).await {
            Ok(Ok(upgraded)) => socket::run(hand, peer, upgraded, &place, step_within).await,
            Ok(Err(error)) => tracing::debug!("an upgrade did not come about: {error}"),
            Err(_) => {}
        }
    });
    Ok(socket::switching(&accept))
}

/// The machine that shows the certificate, once its next request has its turn, or why the certificate does not count.
async fn machine(state: &ServerState, visitor: &Visitor) -> Result<Peer, Reason> {
    let peer = match state.acceptor().who(visitor.shown.as_ref()) {
        Shown::Machine(peer) => peer,
        Shown::Expired => return Err(Reason::CertificateExpired),
        Shown::Early => return Err(Reason::CertificateNotYetValid),
        Shown::Nothing | Shown::Strange => return Err(Reason::CertificateUnknown),
    };
    state.paces.turn_of_key(&peer).await?;
    let asked = peer.clone();
    // A machine that renews has more than one key: they share its pace. A key that it replaced takes no turn from it.
    if within(state.hand.view(move |registry, _| registry.counts(&asked))).await? {
        state.paces.turn_of_machine(&peer).await?;
    }
    Ok(peer)
}

fn spoken(protocol: u32) -> Result<(), Reason> {
    if protocol == PROTOCOL { Ok(()) } else { Err(Reason::Version { spoken: List::first([PROTOCOL]) }) }
}

fn spki(key: &impl rcgen::PublicKeyData) -> Vec<u8> {
    key.subject_public_key_info()
}

/// The whole body, within its size limit and deadline.
async fn body<T: DeserializeOwned>(state: &ServerState, request: Request<Incoming>) -> Result<T, Reason> {
    let bad = |what: &str| Reason::BadFrame { place: "body".into(), what: what.into() };
    let bytes = timeout(state.step_within, collected(request.into_body()))
        .await
        .map_err(|_| bad("it did not come in time"))?
        .ok_or_else(|| bad("it broke off, or is longer than is taken"))?;
    read(&bytes, AGENT_FRAME_BYTES_MAX)
        .map_err(|wrong| Reason::BadFrame { place: wrong.place, what: wrong.what })
}

/// The whole body; none where it broke off or is too long. Chunks are joined as they come: each chunk has its own buffer
/// and entry, and a body with one byte in a chunk would take thirty times its length.
async fn collected(mut body: Incoming) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(part) = frame.ok()?.into_data() {
            if part.len() > AGENT_FRAME_BYTES_MAX - bytes.len() {
                return None;
            }
            bytes.extend_from_slice(&part);
        }
    }
    Some(bytes)
}

async fn within<T>(asked: impl Future<Output = Result<T, super::keeper::Over>>) -> Result<T, Reason> {
    timeout(ANSWER_WITHIN, asked).await.map_err(|_| Reason::Unavailable)?.map_err(|_| Reason::Unavailable)
}

/// A certificate of this machine for this key.
fn certificate(
    state: &ServerState,
    machine: &MachineId,
    key: &impl rcgen::PublicKeyData,
    ttl: Span,
) -> Result<String, Reason> {
    let authorities = state.authorities.lock().unwrap_or_else(PoisonError::into_inner);
    authorities.certify(machine, key, ttl).map_err(|error| {
        tracing::error!(%machine, "{error}: {error:?}");
        Reason::Unavailable
    })
}

/// The answer with a certificate: the draft, where it is of the machine that was enrolled.
fn certified(
    state: &ServerState,
    reply: Reply,
    key: &impl rcgen::PublicKeyData,
    draft: Option<(MachineId, String)>,
) -> Result<Answer, Reason> {
    let (machine, node_name, ttl) = match reply {
        Reply::Certify { machine, node_name, ttl, .. } => (machine, node_name, ttl),
        Reply::Refused(refused) => return Ok(refusal(state, refused)),
        Reply::NodesToAsk(_)
        | Reply::Invited { .. }
        | Reply::Revoked(_)
        | Reply::Done(_)
        | Reply::Denied(_) => {
            return Err(Reason::Unavailable);
        }
    };
    let certificate = match draft.filter(|(of, _)| *of == machine) {
        Some((_, made)) => made,
        None => certificate(state, &machine, key, ttl)?,
    };
    let authorities = state.authorities.lock().unwrap_or_else(PoisonError::into_inner);
    let seconds = |span: Span| u64::try_from(span.ms / 1000).unwrap_or(0);
    let enrolled = Enrolled {
        machine: Word::cut(machine.as_str()),
        certificate: certificate.as_str().into(),
        authorities: authorities.pem().as_str().into(),
        ca_pins: List::first(authorities.pins().iter().map(|pin| Word::cut(pin))),
        node_name,
        ttl_s: seconds(ttl),
        renew_after_s: seconds(ttl) * 2 / 3,
        next: Sentence::from("keep the certificate with its key, forget the token, and open a session"),
    };
    Ok(json(StatusCode::OK, &enrolled))
}

/// A refusal as an answer.
pub(super) fn refusal(state: &ServerState, refused: Refused) -> Answer {
    let status = StatusCode::from_u16(refused.reason.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let mut answer = json(status, &refused);
    if let Some(after_s) = refused.retry_after_s {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after_s));
    }
    if status == StatusCode::UPGRADE_REQUIRED {
        answer.headers_mut().insert(hyper::header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    tracing::debug!(code = refused.reason.code(), version = state.version, "refused");
    answer
}

fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let (status, bytes) = match serde_json::to_vec(value) {
        Ok(bytes) => (status, bytes),
        Err(error) => {
            tracing::error!("an answer cannot be written: {error}");
            (StatusCode::INTERNAL_SERVER_ERROR, Vec::new())
        }
    };
    let mut answer = Response::new(Full::new(Bytes::from(bytes)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
