//! The places for connections: each connection has a place from its first byte to its end, counted for its owner.
//!
//! ```text
//!  enter ─▶ silent ─ a ClientHello ─▶ half-open ─┬ a key that counts ─▶ known, of a machine ─ a welcome ─▶ of its session
//!           of an address             of an address └ none ─▶ anonymous, of an address ─ a token that opens ─▶ of an invitation
//! ```
//!
//! Where one kind has too many connections, one of them is closed, never the newest one. It comes from the address that
//! has the most, so an address with thousands of connections pushes its own out. Of the silent and of the anonymous it is
//! the oldest. A ClientHello comes with the connection and an honest request within milliseconds, so the oldest place is
//! the one that will never be used. Of the half-open it is any one. A distant client needs the time of a round trip, and
//! a crowd behind its address may come a thousand times a second. Were it always the oldest, the crowd would push out
//! every distant client (0 of 10 machines got in at 100 ms). Known machines have places of their own that no number of
//! other clients can take. A machine has a few places, of which the oldest is closed, and a few sessions, which stay: a
//! copy of its key cannot end its sessions. When all places are taken, the next machine is refused with the reason. Not
//! in this module: how fast handshakes may come.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use super::limits::Limits;
use crate::registry::{InvitationId, MachineId};

/// The owner for whom a place is counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// An address; for IPv6 its /64 network, in which one host has as many addresses as it likes.
    Address(IpAddr),
    /// A machine, by a certificate with a valid key.
    Machine(MachineId),
    /// A machine's welcomed WebSockets.
    Session(MachineId),
    /// The clients that showed the token of an open invitation.
    Invitation(InvitationId),
}

/// Places of one kind.
#[derive(Debug, Default)]
struct Row {
    /// In the order in which they came.
    all: BTreeMap<u64, (Owner, Arc<Semaphore>)>,
    by_owner: BTreeMap<Owner, BTreeSet<u64>>,
}

impl Row {
    fn count(&self, owner: &Owner) -> usize {
        self.by_owner.get(owner).map_or(0, BTreeSet::len)
    }

    fn put(&mut self, number: u64, owner: Owner, pushed: Arc<Semaphore>) {
        self.by_owner.entry(owner.clone()).or_default().insert(number);
        self.all.insert(number, (owner, pushed));
    }

    fn take_out(&mut self, number: u64) -> Option<Arc<Semaphore>> {
        let (owner, pushed) = self.all.remove(&number)?;
        if let Some(numbers) = self.by_owner.get_mut(&owner) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        Some(pushed)
    }

    fn push_oldest(&mut self, owner: &Owner) {
        self.push(owner, Which::Oldest);
    }

    fn push(&mut self, owner: &Owner, which: Which) {
        let Some(numbers) = self.by_owner.get(owner) else { return };
        let position = match which {
            Which::Oldest => 0,
            // The choice must not be predictable for an attacker: `RandomState` draws new keys each time.
            Which::Any => (RandomState::new().hash_one(numbers.len()) % numbers.len().max(1) as u64) as usize,
        };
        if let Some(pushed) = numbers.iter().nth(position).copied().and_then(|number| self.take_out(number)) {
            pushed.close();
        }
    }

    /// Makes room for one more: closes a place of the same owner where it has its share, else of the owner that has the
    /// most.
    fn make_room(&mut self, owner: &Owner, (all_max, each_max): (usize, usize), which: Which) {
        if self.count(owner) >= each_max {
            self.push(owner, which);
        } else if self.all.len() >= all_max {
            // Of owners with equally many places, the one whose oldest place is the oldest.
            let weight =
                |numbers: &BTreeSet<u64>| (numbers.len(), std::cmp::Reverse(numbers.first().copied()));
            let most = self.by_owner.iter().max_by_key(|(_, numbers)| weight(numbers));
            if let Some(most) = most.map(|(owner, _)| owner.clone()) {
                self.push(&most, which);
            }
        }
    }
}

/// Which place is closed.
#[derive(Clone, Copy, Debug)]
enum Which {
    Oldest,
    Any,
}

#[derive(Debug, Default)]
struct Rows {
    silent: Row,
    half_open: Row,
    anonymous: Row,
    known: Row,
    next: u64,
}

/// The gate.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    limits: Limits,
    rows: Arc<Mutex<Rows>>,
}

/// A place at the gate, which is freed when dropped.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    address: Owner,
    gate: Gate,
    pushed: Arc<Semaphore>,
}

impl Gate {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, rows: Arc::default() }
    }

    /// Takes a place for a new connection.
    pub(super) fn enter(&self, address: IpAddr) -> Place {
        let (address, pushed) = (Owner::Address(network(address)), Arc::new(Semaphore::new(0)));
        let mut rows = self.lock();
        let number = rows.next;
        rows.next += 1;
        let most = (self.limits.silent_max, self.limits.silent_per_address_max);
        rows.silent.make_room(&address, most, Which::Oldest);
        rows.silent.put(number, address.clone(), pushed.clone());
        Place { number, address, gate: self.clone(), pushed }
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// The connection begins a handshake.
    pub(super) fn is_half_open_now(&self) {
        let (mut rows, limits) = (self.gate.lock(), &self.gate.limits);
        let Some(pushed) = rows.silent.take_out(self.number) else { return };
        let most = (limits.half_open_max, limits.half_open_per_address_max);
        rows.half_open.make_room(&self.address, most, Which::Any);
        rows.half_open.put(self.number, self.address.clone(), pushed);
    }

    /// The handshake has ended, and the client showed no certificate of ours.
    pub(super) fn is_anonymous_now(&self) {
        let (mut rows, limits) = (self.gate.lock(), &self.gate.limits);
        // A place that was closed meanwhile cannot change its kind.
        let Some(pushed) = rows.half_open.take_out(self.number) else { return };
        let most = (limits.anonymous_max, limits.anonymous_per_address_max);
        rows.anonymous.make_room(&self.address, most, Which::Oldest);
        rows.anonymous.put(self.number, self.address.clone(), pushed);
    }

    /// The owner of the place is known; the place moves there if there is room. False: it stays what it was.
    pub(super) fn is_known_now(&self, owner: Owner) -> bool {
        let (mut rows, limits) = (self.gate.lock(), &self.gate.limits);
        if let Owner::Machine(_) = &owner
            && rows.known.count(&owner) >= limits.per_machine_max
        {
            rows.known.push_oldest(&owner);
        }
        let of_one = match &owner {
            Owner::Invitation(_) => limits.per_invitation_max,
            Owner::Machine(_) | Owner::Session(_) | Owner::Address(_) => limits.per_machine_max,
        };
        if rows.known.all.len() >= limits.known_max || rows.known.count(&owner) >= of_one {
            return false;
        }
        let before = rows.half_open.take_out(self.number).or_else(|| rows.anonymous.take_out(self.number));
        let Some(pushed) = before else { return false };
        rows.known.put(self.number, owner, pushed);
        true
    }

    /// The place now belongs to a session, and is not closed for others any more. False: the machine has too many
    /// sessions, or this place is not known.
    pub(super) fn is_session_now(&self, machine: MachineId) -> bool {
        let (mut rows, owner) = (self.gate.lock(), Owner::Session(machine));
        if rows.known.count(&owner) >= self.gate.limits.sessions_per_machine_max {
            return false;
        }
        let Some(pushed) = rows.known.take_out(self.number) else { return false };
        rows.known.put(self.number, owner, pushed);
        true
    }

    /// Resolves when a newer connection needs the place.
    pub(super) async fn pushed(&self) {
        // The semaphore has no permits: waiting ends when it is closed, for all waiting tasks and for later ones.
        drop(self.pushed.acquire().await);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut rows = self.gate.lock();
        let Rows { silent, half_open, anonymous, known, .. } = &mut *rows;
        for row in [silent, half_open, anonymous, known] {
            drop(row.take_out(self.number));
        }
    }
}

/// The network in which one host has as many addresses as it likes.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() & (u128::MAX << 64)).into(),
        four => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        silent_max: 4,
        silent_per_address_max: 2,
        half_open_max: 4,
        half_open_per_address_max: 2,
        anonymous_max: 4,
        anonymous_per_address_max: 3,
        known_max: 3,
        per_machine_max: 2,
        sessions_per_machine_max: 1,
        per_invitation_max: 1,
        ..Limits::STANDARD
    };

    /// A client that has sent a ClientHello.
    fn shaking(gate: &Gate, last: u8) -> Place {
        let place = gate.enter(address(last));
        place.is_half_open_now();
        place
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    /// The indexes of the places that were closed.
    fn pushed(places: &[Place]) -> Vec<usize> {
        let pushed = places.iter().enumerate().filter(|(_, place)| place.pushed.is_closed());
        pushed.map(|(number, _)| number).collect()
    }

    #[test]
    fn silent_connection_evicts_no_connection_that_has_sent() {
        let gate = Gate::new(LIMITS);
        let honest = shaking(&gate, 1);
        let crowd: Vec<Place> = (0..50).map(|_| gate.enter(address(1))).collect();
        assert!(!honest.pushed.is_closed());
        assert_eq!(crowd.iter().filter(|place| !place.pushed.is_closed()).count(), 2);
    }

    #[test]
    fn handshake_crowd_evicts_random_peer_of_its_address() {
        let stands = |_: &i32| {
            let gate = Gate::new(LIMITS);
            let (first, _second, _third) = (shaking(&gate, 1), shaking(&gate, 1), shaking(&gate, 1));
            !first.pushed.is_closed()
        };
        let standing = (0..200).filter(stands).count();
        assert!((1..200).contains(&standing), "{standing} of 200");
    }

    #[test]
    fn oldest_silent_connection_of_crowded_address_is_evicted() {
        let gate = Gate::new(LIMITS);
        let mut places: Vec<Place> = [1, 1, 2].into_iter().map(|last| gate.enter(address(last))).collect();
        places.push(gate.enter(address(1)));
        assert_eq!(pushed(&places), [0]);
        places.push(gate.enter(address(2)));
        places.push(gate.enter(address(3)));
        assert_eq!(pushed(&places), [0, 1], "in all, the oldest of those who have the most");
        drop(places);
        assert_eq!(gate.lock().silent.all.len(), 0);
    }

    #[test]
    fn finished_handshake_keeps_place_against_unfinished_ones() {
        let gate = Gate::new(LIMITS);
        let first = shaking(&gate, 1);
        first.is_anonymous_now();
        let others: Vec<Place> = (0..20).map(|_| shaking(&gate, 1)).collect();
        assert!(!first.pushed.is_closed());
        others.iter().for_each(Place::is_anonymous_now);
        assert!(!first.pushed.is_closed());
        assert_eq!(gate.lock().anonymous.all.len(), 3, "those that were pushed out before are nowhere");
        let last = shaking(&gate, 1);
        last.is_anonymous_now();
        assert!(first.pushed.is_closed(), "and not against those who did");
    }

    #[test]
    fn known_machines_keep_places_and_have_few_each() {
        let gate = Gate::new(LIMITS);
        let of = |name: &str| Owner::Machine(MachineId::new(name));
        let places: Vec<Place> = (0..4)
            .map(|number| {
                let place = shaking(&gate, 1);
                assert!(place.is_known_now(of("m-1")), "{number}");
                place
            })
            .collect();
        assert_eq!(pushed(&places), [0, 1], "its own oldest go");
        let crowd: Vec<Place> = (0..50).map(|last| shaking(&gate, last)).collect();
        crowd.iter().for_each(Place::is_anonymous_now);
        assert_eq!(pushed(&places), [0, 1], "and no other client's");
        let (second, third) = (shaking(&gate, 1), shaking(&gate, 1));
        assert!(second.is_known_now(of("m-2")) && !third.is_known_now(of("m-3")), "all three are taken");
        drop(second);
        assert!(third.is_known_now(of("m-3")));
    }

    #[test]
    fn a_session_is_ended_by_no_other_connection_of_its_machine() {
        let gate = Gate::new(Limits { known_max: 100, ..LIMITS });
        let of_machine = |place: &Place| place.is_known_now(Owner::Machine(MachineId::new("m-1")));
        let session = shaking(&gate, 1);
        assert!(of_machine(&session) && session.is_session_now(MachineId::new("m-1")));
        let others: Vec<Place> = (0..20).map(|_| shaking(&gate, 1)).filter(of_machine).collect();
        assert_eq!((others.len(), session.pushed.is_closed()), (20, false));
        assert!(!others[19].is_session_now(MachineId::new("m-1")), "one is all that it has");
        drop(session);
        assert!(others[19].is_session_now(MachineId::new("m-1")));
        let stranger = shaking(&gate, 1);
        assert!(!stranger.is_session_now(MachineId::new("m-2")), "only what is known becomes one");
    }

    #[test]
    fn a_token_takes_no_more_places_than_an_invitation_has() {
        let gate = Gate::new(LIMITS);
        let token = || Owner::Invitation(InvitationId::new("i"));
        let (first, second) = (shaking(&gate, 1), shaking(&gate, 1));
        first.is_anonymous_now();
        second.is_anonymous_now();
        assert!(first.is_known_now(token()) && !second.is_known_now(token()));
        assert_eq!(gate.lock().anonymous.all.len(), 1, "it stays among the others");
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let one: IpAddr = "2001:db8:1:2:3::4".parse().unwrap();
        assert_eq!(network(one), "2001:db8:1:2::".parse::<IpAddr>().unwrap());
        assert_eq!(network("::ffff:10.0.0.1".parse().unwrap()), IpAddr::from([10, 0, 0, 1]));
    }
}
