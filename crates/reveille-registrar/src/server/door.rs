//! Connections: accepted, shaken hands with, served, each step within its deadline.
//!
//! ```text
//!  accept ─▶ gate: a place ─▶ a ClientHello, TLS within 10 s ─▶ the place of a machine, or of whoever shows nothing
//!         ─▶ HTTP/1.1, headers within 10 s, 2 min ─▶ the place goes along to a WebSocket, or is given back
//! ```
//!
//! What a connection showed, and whose key it proved, goes with every request of it. Whether a key still is its machine's the
//! registry says before the place counts as a machine's. A place that somebody newer needs ends its connection at whatever
//! point it is.

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
use super::routes::{Hall, Visitor, route};
use super::tls::Shown;

/// Longest head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Accepts until it is told to stop.
pub(super) async fn serve(
    listener: TcpListener,
    hall: Arc<Hall>,
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
        // Nobody is kept waiting for room: a client that is refused at once comes again at its own pace.
        let Ok(permit) = room.clone().try_acquire_owned() else { continue };
        let (hall, gate, stop) = (hall.clone(), gate.clone(), stop.clone());
        tokio::spawn(async move {
            connection(stream, address, hall, &gate, stop).await;
            drop(permit);
        });
    }
    drop(listener);
    // Until what was asked is answered and every session was told; whoever stops this knows for how long.
    for (places, all) in [(&room, all), (&hall.sessions, limits.connections_max)] {
        drop(places.acquire_many(u32::try_from(all).unwrap_or(u32::MAX)).await);
    }
}

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    hall: Arc<Hall>,
    gate: &Gate,
    mut stop: watch::Receiver<bool>,
) {
    // Small frames that answer each other: waiting for more to send would cost each of them 40 ms.
    drop(stream.set_nodelay(true));
    let place = Arc::new(gate.enter(address.ip()));
    let doorman = hall.doorman();
    let handshake = async {
        let begun = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        place.is_half_open_now();
        begun.into_stream(doorman.config.clone()).await
    };
    let stream = tokio::select! {
        shaken = timeout(hall.step_within, handshake) => match shaken {
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
    let (step_within, connection_within) = (hall.step_within, hall.connection_within);
    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first).cloned();
    let who = doorman.who(shown.as_ref());
    tokio::select! {
        () = count(&hall, address, who, &place) => {}
        () = place.pushed() => return,
    }
    let visitor = Arc::new(Visitor { shown, address, place: place.clone() });
    let pace = Arc::new(Pace::new());
    let service = service_fn(move |request| {
        let (hall, visitor, pace) = (hall.clone(), visitor.clone(), pace.clone());
        async move {
            pace.turn().await;
            Ok::<_, std::convert::Infallible>(route(&hall, &visitor, request).await)
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        // Also how long a connection may idle between two requests.
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
            // What is asked is answered, and nothing more is.
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%address, "a connection ended: {error}");
    }
}

/// Counts the place for a machine whose key still is one; else it is one of those without a certificate. A key that was replaced
/// would push its machine's own connections out.
async fn count(hall: &Hall, address: SocketAddr, who: Shown, place: &Place) {
    if who == Shown::Strange {
        hall.stranger(address, "a certificate of another authority was shown");
    }
    let is_known = match who {
        Shown::Machine(peer) => hall.stands(&peer).await && place.is_known_now(Owner::Machine(peer.machine)),
        _ => false,
    };
    if !is_known {
        place.is_anonymous_now();
    }
}

/// Nobody left to tell is as good as being told.
async fn told(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}
