//! Connections: accept, TLS handshake, requests, each step within its deadline.
//!
//! ```text
//!  accept ─▶ gate: a place ─▶ a ClientHello, TLS within 10 s ─▶ the place of a machine, or of a client without a certificate
//!         ─▶ HTTP/1.1, headers within 10 s, 2 min ─▶ the place goes along to a WebSocket, or is given back
//! ```
//!
//! Each request of a connection carries the certificate that the client showed, and the key that it proved. The registry
//! checks whether the key still belongs to its machine before the place counts as the machine's. If a newer connection
//! needs the place, this connection ends, whatever it is doing.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::Acceptor;

use super::accept::Accepting;
use super::gate::{Gate, Owner, Place};
use super::limits::{Limits, SLACK};
use super::pace::Pace;
use super::routes::{ServerState, Visitor, route};
use super::tls::Shown;

/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Accepts until the server stops.
pub(super) async fn serve(
    listener: TcpListener,
    state: Arc<ServerState>,
    gate: Gate,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    let all = limits.connections_max.saturating_add(SLACK);
    let room = Arc::new(Semaphore::new(all));
    let mut accepting = Accepting::at("machines");
    loop {
        let accepted = tokio::select! {
            accepted = accepting.next(listener.accept()) => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Some((stream, address)) = accepted else { continue };
        // The server does not queue clients for room: a client that is refused at once comes again at its own pace.
        let Ok(permit) = room.clone().try_acquire_owned() else { continue };
        let (state, gate, stop) = (state.clone(), gate.clone(), stop.clone());
        tokio::spawn(async move {
            connection(stream, address, state, &gate, stop).await;
            drop(permit);
        });
    }
    drop(listener);
    // The wait lasts until all requests are answered and all sessions are told. The caller that stops the server sets the
    // time limit.
    for (places, all) in [(&room, all), (&state.sessions, limits.connections_max)] {
        drop(places.acquire_many(u32::try_from(all).unwrap_or(u32::MAX)).await);
    }
}

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    state: Arc<ServerState>,
    gate: &Gate,
    mut stop: watch::Receiver<bool>,
) {
    // Frames are small and answer each other: with Nagle's algorithm each of them would wait 40 ms.
    drop(stream.set_nodelay(true));
    let place = Arc::new(gate.enter(address.ip()));
    let acceptor = state.acceptor();
    let handshake = async {
        let begun = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        place.is_half_open_now();
        begun.into_stream(acceptor.config.clone()).await
    };
    let stream = tokio::select! {
        shaken = timeout(state.step_within, handshake) => match shaken {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%address, "the handshake failed: {error}");
                return;
            }
            Err(_) => return,
        },
        () = place.pushed() => return,
        () = told(&mut stop) => return,
    };
    let (step_within, connection_within) = (state.step_within, state.connection_within);
    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first).cloned();
    let who = acceptor.who(shown.as_ref());
    tokio::select! {
        () = count(&state, address, who, &place) => {}
        () = place.pushed() => return,
    }
    let visitor = Arc::new(Visitor { shown, address, place: place.clone() });
    let pace = Arc::new(Pace::new());
    let service = service_fn(move |request| {
        let (state, visitor, pace) = (state.clone(), visitor.clone(), pace.clone());
        async move {
            pace.turn().await;
            Ok::<_, std::convert::Infallible>(route(&state, &visitor, request).await)
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        // This also limits how long a connection may idle between two requests.
        .header_read_timeout(step_within)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = place.pushed() => return,
        () = sleep(connection_within) => {
            tracing::debug!(%address, "a connection ended: it took too long");
            return;
        }
        () = told(&mut stop) => {
            // The connection finishes its current request and takes no other one.
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%address, "a connection ended: {error}");
    }
}

/// Counts the place for a machine whose key is still valid; otherwise the connection counts as one without a certificate.
/// Else a replaced key would push the machine's own connections out.
async fn count(state: &ServerState, address: SocketAddr, who: Shown, place: &Place) {
    if who == Shown::Strange {
        state.stranger(address, "a certificate of another authority was shown");
    }
    let is_known = match who {
        Shown::Machine(peer) => state.stands(&peer).await && place.is_known_now(Owner::Machine(peer.machine)),
        _ => false,
    };
    if !is_known {
        place.is_anonymous_now();
    }
}

/// Also resolves when the sender of the stop signal is gone.
async fn told(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}
