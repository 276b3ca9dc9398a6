//! Which peers to ask: a limited number, machines of other failure domains first, and not always the same ones.
//!
//! Peers in the zone of this machine share its switch and its faults. The agent asks them last, and keeps one place for
//! them: their answer tells an isolated zone from an isolated machine. The zones take turns, so that one large zone does
//! not give all answers. Within a zone the order follows from the names of both machines and the round. So a thousand
//! agents that lose the API server at once do not all ask the same three peers.

use std::collections::BTreeMap;

use reveille_core::model::id::{NodeName, ZoneName};

/// The peers to ask in this round.
pub fn choose(
    own: &NodeName,
    zone: Option<&ZoneName>,
    known: &BTreeMap<NodeName, Option<ZoneName>>,
    most: usize,
    round: u32,
) -> Vec<NodeName> {
    let mut inside: Vec<&NodeName> = Vec::new();
    let mut outside: BTreeMap<Option<&ZoneName>, Vec<&NodeName>> = BTreeMap::new();
    for (peer, of) in known.iter().filter(|(peer, _)| *peer != own) {
        if is_inside(zone, of.as_ref()) {
            inside.push(peer);
        } else {
            outside.entry(of.as_ref()).or_default().push(peer);
        }
    }
    let by_turn = |peers: &mut Vec<&NodeName>| peers.sort_by_key(|peer| (turn(own, peer, round), *peer));
    by_turn(&mut inside);
    outside.values_mut().for_each(by_turn);
    let kept = usize::from(!inside.is_empty() && most > 1);
    let mut chosen: Vec<NodeName> = Vec::new();
    let deepest = outside.values().map(Vec::len).max().unwrap_or(0);
    let in_turns = (0..deepest).flat_map(|depth| outside.values().filter_map(move |peers| peers.get(depth)));
    chosen.extend(in_turns.take(most.saturating_sub(kept)).map(|peer| (*peer).clone()));
    let left = most.saturating_sub(chosen.len());
    chosen.extend(inside.into_iter().take(left).cloned());
    chosen
}

/// True when a peer shares this machine's failure domain. Where one of the two zones is not known, the answer is false,
/// and all peers count alike.
pub fn is_inside(own: Option<&ZoneName>, of: Option<&ZoneName>) -> bool {
    own.is_some() && own == of
}

/// FNV-1a over both names and the round: spread, not secret.
fn turn(own: &NodeName, peer: &NodeName, round: u32) -> u64 {
    let bytes = own.as_str().bytes().chain([0]).chain(peer.as_str().bytes()).chain(round.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(peers: &[(&str, &str)]) -> BTreeMap<NodeName, Option<ZoneName>> {
        let zone = |zone: &str| (!zone.is_empty()).then(|| ZoneName::from(zone));
        peers.iter().map(|(name, of)| (NodeName::from(*name), zone(of))).collect()
    }

    #[test]
    fn peers_of_other_zones_are_chosen_first_with_own_zone_last() {
        let peers = known(&[
            ("w-1", "a"),
            ("w-2", "a"),
            ("w-3", "a"),
            ("w-4", "b"),
            ("w-5", "b"),
            ("w-6", "b"),
            ("w-7", "c"),
        ]);
        let (own, zone) = (NodeName::from("w-1"), ZoneName::from("a"));
        let chosen = choose(&own, Some(&zone), &peers, 4, 0);
        let of = |peer: &NodeName| peers[peer].clone().unwrap().to_string();
        let zones: Vec<String> = chosen.iter().map(of).collect();
        assert_eq!(zones, ["b", "c", "b", "a"]);
        assert!(!chosen.contains(&own));
        assert_eq!(choose(&own, Some(&zone), &peers, 100, 0).len(), 6);
    }

    #[test]
    fn another_round_asks_others_and_so_does_another_machine() {
        let names: Vec<String> = (0..40).map(|number| format!("w-{number}")).collect();
        let pairs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        let peers = known(&pairs);
        let ask = |own: &str, round| choose(&NodeName::from(own), None, &peers, 5, round);
        assert_eq!(ask("w-1", 0), ask("w-1", 0));
        assert_ne!(ask("w-1", 0), ask("w-1", 1));
        assert_ne!(ask("w-1", 0), ask("w-2", 0));
        assert_eq!(ask("w-1", 0).len(), 5);
    }

    #[test]
    fn peers_of_own_zone_are_asked_when_no_other_zone_exists() {
        let peers = known(&[("w-1", "a"), ("w-2", "a"), ("w-3", "a")]);
        let chosen = choose(&"w-1".into(), Some(&"a".into()), &peers, 7, 0);
        assert_eq!(chosen.len(), 2);
        assert_eq!(choose(&"w-1".into(), None, &BTreeMap::new(), 7, 0), Vec::<NodeName>::new());
    }
}
