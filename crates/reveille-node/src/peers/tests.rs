//! Addresses at which no peer can answer.

use super::*;

const UNUSABLE_ADDRESSES: [&str; 33] = [
    "169.254.169.254:80",
    "169.254.170.2:80",
    "100.100.100.200:80",
    "168.63.129.16:80",
    "192.0.0.192:80",
    "0.0.0.0:9465",
    "0.1.2.3:9465",
    "224.0.0.1:9465",
    "255.255.255.255:9465",
    "240.0.0.1:9465",
    "[::]:9465",
    "[ff02::1]:9465",
    "[fe80::1]:9465",
    "[fe80::1%3]:9465",
    "[fd00:ec2::254]:80",
    "[fd20:ce::254]:80",
    "[::ffff:169.254.169.254]:80",
    "[::169.254.169.254]:80",
    "[64:ff9b::a9fe:a9fe]:80",
    "[64:ff9b:1::a9fe:a9fe]:80",
    "[64:ff9b::7f00:1]:80",
    "[2002:a9fe:a9fe::1]:80",
    "10.0.0.1:0",
    "10.0.0.1",
    "metadata.google.internal:80",
    "0xa9fea9fe:80",
    "2852039166:80",
    "169.254.43518:80",
    "",
    "127.0.0.1:9465",
    "127.8.0.1:9465",
    "[::1]:9465",
    "[::ffff:127.0.0.1]:9465",
];

fn peer(number: usize, at: &str) -> Peer {
    Peer {
        machine: Word::cut(&format!("m-{number}")),
        node_name: Word::cut(&format!("w-{number}")),
        zone: None,
        addresses: List::default(),
        answers_at: Some(at.into()),
    }
}

#[tokio::test]
async fn an_address_at_which_no_machine_is_is_neither_kept_nor_asked() {
    let folder = tempfile::tempdir().unwrap();
    let peer_set = PeerSet::remembering(folder.path(), None);
    let mut peers: Vec<Peer> =
        UNUSABLE_ADDRESSES.iter().enumerate().map(|(number, at)| peer(number, at)).collect();
    peers.push(peer(100, "10.0.0.2:9465"));
    peers.push(peer(101, "[fd12:3456::2]:9465"));
    peer_set.know(&peers);
    let known: Vec<String> = peer_set.peers().keys().map(ToString::to_string).collect();
    assert_eq!(known, ["w-100", "w-101"]);
    let kept = std::fs::read_to_string(folder.path().join("peers.json")).unwrap();
    assert!(kept.contains("10.0.0.2:9465") && !kept.contains("169.254"), "{kept}");
    // A file of an older agent is checked by the same rules.
    std::fs::write(folder.path().join("peers.json"), serde_json::to_vec(&peers).unwrap()).unwrap();
    let known: Vec<String> =
        PeerSet::remembering(folder.path(), None).peers().keys().map(ToString::to_string).collect();
    assert_eq!(known, ["w-100", "w-101"]);
}

/// A registration server that was taken over sends lists as fast as the link takes them.
#[tokio::test]
async fn changing_peer_lists_are_known_but_writes_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    let peer_set = PeerSet::remembering(folder.path(), None);
    let kept = || std::fs::read_to_string(folder.path().join("peers.json")).unwrap_or_default();
    let (mut writes, mut last) = (0, kept());
    for number in 0..1000 {
        peer_set.know(&[peer(number, "10.0.0.2:9465"), peer(2000, "169.254.169.254:80")]);
        let now = kept();
        writes += usize::from(now != last);
        last = now;
    }
    assert!((1..=17).contains(&writes), "{writes} writes");
    assert!(peer_set.peers().contains_key(&NodeName::from("w-999")), "the newest counts");
    let told = |peer_set: &PeerSet| lock(&peer_set.told).may(Instant::now());
    assert!(!told(&peer_set), "what is wrong with them was told once");
    // The same list is written once.
    let (peer_set, peers) = (PeerSet::remembering(folder.path(), None), [peer(1, "10.0.0.2:9465")]);
    (0..100).for_each(|_| peer_set.know(&peers));
    assert!(lock(&peer_set.kept).1.may(Instant::now()), "one write, and fifteen are left");
}
