//! The listener for other machines' agents, and the address of it that they are told.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reveille_wire::agent::peer::address;
use reveille_wire::agent::text::Word;

use super::{AbortOnDrop, Setup};
use crate::link::Keyring;
use crate::peers::{self, Listener, PeerSet};
use crate::private;

/// The time limit for looking up the server's name, whose address decides which of our addresses is used.
const LOOKUP_WITHIN: Duration = Duration::from_secs(5);

/// Opens the listener for peers, where one is wanted, and puts its address into the facts. A port that is not available
/// does not stop an agent: peers cannot ask its machine, but it can still ask them.
pub(super) async fn open(setup: &mut Setup, peer_set: &Arc<PeerSet>) -> Option<AbortOnDrop> {
    let at = setup.peer_listen?;
    let listener = match Listener::bind(at).await {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!("peers are not answered: {at} cannot be listened on: {error}");
            return None;
        }
    };
    let mut told = listener.address().ok()?;
    if told.ip().is_unspecified() {
        let own = own_way_out(setup).await;
        match own {
            Some(own) => told.set_ip(own),
            None => tracing::warn!("which address this machine has is not known"),
        }
    }
    let told = told.to_string();
    let is_machines = address(&told, true).is_some();
    if !is_machines {
        tracing::warn!(
            "no peer is told of this machine: {told} is no address at which others find a machine"
        );
    }
    setup.facts.answers_at = is_machines.then(|| Word::cut(&told));
    Some(AbortOnDrop(tokio::spawn(listener.run(Arc::clone(peer_set)))))
}

/// The address from which this machine reaches its server; none when it cannot be determined.
async fn own_way_out(setup: &Setup) -> Option<IpAddr> {
    let link = match &setup.link {
        Some(link) => link.clone(),
        None => Keyring::open(&setup.folder.join(private::KEYS)).ok()??.link()?,
    };
    let looked = tokio::net::lookup_host((link.server.host, link.server.port));
    let found = tokio::time::timeout(LOOKUP_WITHIN, looked).await.ok()?.ok()?;
    found.into_iter().find_map(|address| peers::own_address(address).ok())
}
