//! A listing is whole or void.

use crate::fake::{Reply, Way, nova_fault, reply, way};
use crate::healthy::{OURS, cloud, ids, neutron, server, servers};
use reveille_core::effect::ReadErrorKind;
use reveille_core::model::time::Span;

#[tokio::test]
async fn pages_are_followed_and_an_object_on_two_of_them_counts_once() {
    let (fake, mut lister) = cloud(|seen| match seen.query("marker").first() {
        None => servers(&[server("a", OURS), server("b", OURS)], Some("b")),
        Some(&"b") => servers(&[server("b", OURS), server("c", OURS)], Some("c")),
        Some(_) => servers(&[], None),
    })
    .await;
    assert_eq!(ids(&lister.list(true).await.unwrap()), ["a", "b", "c"]);
    let markers: Vec<Vec<String>> = fake
        .take_seen()
        .iter()
        .filter(|seen| seen.path.ends_with("/servers/detail"))
        .map(|seen| seen.query("marker").iter().map(|m| (*m).to_owned()).collect())
        .collect();
    assert_eq!(markers, [vec![], vec!["b".to_owned()], vec!["c".to_owned()]]);
}

/// What Nova answers to the first page and to the second.
type Fault = (&'static str, fn() -> Reply, fn() -> Reply, ReadErrorKind, &'static str);

#[tokio::test]
async fn a_listing_with_a_hole_is_void() {
    use ReadErrorKind::{Forbidden, Incomplete, Malformed, Throttled, TimedOut, Unavailable};
    let first = || servers(&[server("a", OURS)], Some("a"));
    let none = || reply(500, "");
    let cases: [Fault; 17] = [
        ("second page fails", first, || reply(500, ""), Incomplete, "(page 2): 500 Internal Server Error"),
        (
            "second page throttled",
            first,
            || reply(429, "").with("Retry-After", "20"),
            Incomplete,
            "(page 2): 429",
        ),
        (
            "marker refused",
            first,
            || nova_fault(400, "badRequest", "marker [a] not found"),
            Incomplete,
            "marker [a] not found",
        ),
        ("page repeats", first, || servers(&[server("a", OURS)], None), Incomplete, "brings nothing"),
        ("marker loops", first, || servers(&[server("b", OURS)], Some("a")), Incomplete, "read already"),
        ("second page never comes", first, || way(Way::Never), Incomplete, "no answer within 1 s"),
        (
            "second page is cut",
            first,
            || Reply { way: Way::Cut, ..servers(&[server("b", OURS)], None) },
            Incomplete,
            "(page 2)",
        ),
        ("first page is cut", || way(Way::Cut), none, Unavailable, "the connection broke"),
        ("first page dropped", || way(Way::Dropped), none, Unavailable, "the connection broke"),
        ("first page never comes", || way(Way::Never), none, TimedOut, "no answer within 1 s"),
        ("json ends early", || reply(200, r#"{"servers": [{"id": "a""#), none, Incomplete, "line 1"),
        ("no list in it", || reply(200, "{}"), none, Malformed, "cannot be read"),
        ("a login page", || reply(200, "<html>please log in</html>"), none, Malformed, "cannot be read"),
        (
            "a server without an id",
            || reply(200, r#"{"servers": [{"name": "x"}]}"#),
            none,
            Malformed,
            "cannot be read",
        ),
        (
            "forbidden",
            || nova_fault(403, "forbidden", "Policy doesn't allow it."),
            none,
            Forbidden,
            "403 Forbidden: Policy",
        ),
        ("throttled", || reply(498, "").with("X-RateLimit-Retry-After", "20"), none, Throttled, "498"),
        ("down", || reply(503, "<html>"), none, Unavailable, "503 Service Unavailable"),
    ];
    for (name, first, second, kind, says) in cases {
        let (_fake, mut lister) =
            cloud(move |seen| if seen.query("marker").is_empty() { first() } else { second() }).await;
        let error = lister.list(true).await.expect_err(name);
        assert_eq!(error.kind, kind, "{name}: {error}");
        assert!(error.text.starts_with("openstack: cannot list servers of project prod"), "{name}: {error}");
        assert!(error.text.contains(says), "{name}: {error}");
        assert!(error.text.ends_with("Nothing is judged from this listing."), "{name}: {error}");
        if name.contains("throttled") {
            assert_eq!(error.retry_after, Some(Span::from_s(20)), "{name}");
        }
    }
}

#[tokio::test]
async fn any_of_the_four_lists_voids_the_reading() {
    for (path, what) in [
        ("/network/v2.0/ports", "list ports"),
        ("/network/v2.0/security-groups", "list security groups"),
        ("/network/v2.0/routers", "list routers"),
    ] {
        let (fake, mut lister) = cloud(|_| servers(&[server("a", OURS)], None)).await;
        fake.answer(move |seen| match seen.line() {
            line if line.ends_with(path) => Some(reply(503, "")),
            line if line.ends_with("/servers/detail") => Some(servers(&[], None)),
            _ => neutron(seen),
        });
        let error = lister.list(true).await.unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Unavailable);
        assert!(error.text.contains(what), "{error}");
    }
}
