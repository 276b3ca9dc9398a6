//! Answering peers: one small listener, only for machines of the same registration server.
//!
//! ```text
//!  accept ─▶ places: of all, of one address ─▶ handshake ─▶ the one request ─▶ does this machine reach it? ─▶ answer, closed
//!              └─ none left: closed at once      3 s           2 s                  12 s                          2 s
//! ```
//!
//! The listener reads only the fixed request, byte for byte, and writes nothing before it has accepted a certificate. A
//! peer that asks often gets the result of a moment ago; the listener does not ask the API server more often for it.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reveille_core::model::id::NodeName;
use reveille_wire::agent::peer::REQUEST;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{PeerSet, Question, lock, trust};

/// The number of connections at once.
const PLACES: usize = 64;
/// The number of connections from one address.
const PLACES_OF_ONE: usize = 4;
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(3);
const REQUEST_WITHIN: Duration = Duration::from_secs(2);
/// A little longer than this machine's own check of the API server takes.
const LOOK_WITHIN: Duration = Duration::from_secs(12);
/// The pause after a failed accept: without free descriptors the next one would fail at once.
const AFTER_FAILURE: Duration = Duration::from_millis(250);

/// The listener.
#[derive(Debug)]
pub struct Listener(TcpListener);

/// The address from which this machine reaches another; sends nothing.
///
/// # Errors
///
/// There is no route to the other machine.
pub fn own_address(other: SocketAddr) -> io::Result<IpAddr> {
    let any: SocketAddr = if other.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(other)?;
    Ok(socket.local_addr()?.ip())
}

/// The open connections, by address.
type Places = Mutex<BTreeMap<IpAddr, usize>>;

/// One place, which is freed when dropped.
struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Place {
    fn take(places: &Arc<Places>, address: IpAddr) -> Option<Self> {
        let mut taken = lock(places);
        let (all, own) = (taken.values().sum::<usize>(), taken.get(&address).copied().unwrap_or(0));
        if all >= PLACES || own >= PLACES_OF_ONE {
            return None;
        }
        taken.insert(address, own + 1);
        Some(Self { places: Arc::clone(places), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.places);
        match taken.get_mut(&self.address) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(taken.remove(&self.address)),
        }
    }
}

impl Listener {
    /// Opens the listener.
    ///
    /// # Errors
    ///
    /// The address is not this machine's, or is in use.
    pub async fn bind(at: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(at).await.map(Self)
    }

    /// The listener's address.
    ///
    /// # Errors
    ///
    /// The operating system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Answers until the listener is dropped.
    pub async fn run(self, peer_set: Arc<PeerSet>) {
        let places = Arc::new(Places::default());
        let mut inside = JoinSet::new();
        loop {
            match self.0.accept().await {
                Ok((tcp, from)) => {
                    while inside.try_join_next().is_some() {}
                    if let Some(place) = Place::take(&places, from.ip().to_canonical()) {
                        let peer_set = Arc::clone(&peer_set);
                        inside.spawn(async move {
                            if let Err(why) = attend(&peer_set, tcp).await {
                                tracing::debug!("{from} is not answered: {why}");
                            }
                            drop(place);
                        });
                    }
                }
                Err(error) => {
                    tracing::warn!("peers cannot be accepted: {error}");
                    sleep(AFTER_FAILURE).await;
                }
            }
        }
    }
}

/// One connection, from its handshake to its end.
async fn attend(peer_set: &PeerSet, tcp: TcpStream) -> Result<(), String> {
    let config = lock(&peer_set.shown).as_ref().map(|shown| Arc::clone(&shown.server));
    let config = config.ok_or("this machine has nothing to show")?;
    let shaken = timeout(HANDSHAKE_WITHIN, TlsAcceptor::from(config).accept(tcp)).await;
    let mut tls = shaken.map_err(|_| "the handshake took too long")?.map_err(|error| error.to_string())?;
    let machine = trust::machine(tls.get_ref().1.peer_certificates()).ok_or("it names no machine")?;
    let mut asked = [0; REQUEST.len()];
    let whole = timeout(REQUEST_WITHIN, tls.read_exact(&mut asked)).await;
    whole.map_err(|_| "its question took too long")?.map_err(|error| error.to_string())?;
    if asked != REQUEST {
        return say(&mut tls, "400 Bad Request", "").await;
    }
    let (reply, looked) = oneshot::channel();
    let question = Question { from: NodeName::from(machine.as_str()), reply };
    // If no driver runs a join, or too many peers ask, the answer is the last result with its age.
    if peer_set.is_driven() && peer_set.questions.try_send(question).is_ok() {
        drop(timeout(LOOK_WITHIN, looked).await);
    }
    let body = serde_json::to_string(&peer_set.says()).map_err(|error| error.to_string())?;
    say(&mut tls, "200 OK", &body).await
}

async fn say(tls: &mut TlsStream<TcpStream>, status: &str, body: &str) -> Result<(), String> {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    let said = timeout(REQUEST_WITHIN, async {
        tls.write_all(text.as_bytes()).await?;
        tls.shutdown().await
    });
    said.await.map_err(|_| "it does not take its answer")?.map_err(|error| error.to_string())
}
