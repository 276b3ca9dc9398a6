//! Writes a proposed roster and reads it back: the reader accepts it, and it means what was proposed.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::{collection, option};
use reveille_core::model::id::{CloudName, GroupId, PoolName, RosterName, RouterId};
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::{GroupRef, Limits, Mode, Ownership, Repair};
use reveille_core::model::time::Span;
use reveille_wire::roster::render::{
    Proposal, ProposedCloud, ProposedNetwork, ProposedPool, ProposedRouter, render,
};
use reveille_wire::roster::{CheckedRoster, CloudRef, ClusterRef, Origin, read};

fn accepted(text: &str) -> CheckedRoster {
    let origin = Origin { name: "proposed.yaml", dir: Path::new(""), home: None };
    read(text, &origin).unwrap_or_else(|refusal| panic!("{refusal}\n\n{text}")).remove(0)
}

fn router(id: &str) -> ProposedRouter {
    ProposedRouter {
        cloud: CloudName::from("os"),
        id: RouterId::from(id),
        why: "edge: holds routes to 4 of 4 nodes' pod ranges".to_owned(),
    }
}

fn sketch() -> Proposal {
    Proposal {
        name: RosterName::from("prod"),
        notes: vec!["Proposed on 2026-10-19 from context prod-admin and cloud prod.".to_owned()],
        cluster: ClusterRef { kubeconfig: None, context: Some("prod-admin".to_owned()) },
        clouds: vec![ProposedCloud {
            name: CloudName::from("os"),
            at: CloudRef::OpenStack { cloud: "prod".to_owned(), clouds_file: None },
            notes: vec![],
        }],
        network: ProposedNetwork {
            pod_ranges: vec!["198.19.0.0/16".parse().unwrap()],
            router: Some(router("3f0c1111-0000-0000-0000-000000000001")),
            candidates: vec![],
            notes: vec![
                "The nodes' pod ranges lie in this one; the router holds 12 routes into it.".to_owned(),
            ],
        },
        pools: vec![ProposedPool {
            name: PoolName::from("workers"),
            cloud: CloudName::from("os"),
            owned: Ownership {
                cluster: Mark::Tag(Arc::from("k8s-cluster=prod")),
                pool: Some(Mark::Tag(Arc::from("k8s-pool=workers"))),
            },
            groups: vec![GroupRef::Name(Arc::from("k8s-nodes"))],
            min: 3,
            join_within: Some(Span::from_min(15)),
            repair: Repair::default(),
            through_group: None,
            notes: vec!["4 instances, 4 of them nodes.\nNothing else carries these marks.".to_owned()],
        }],
        commented: vec![],
        limits: Limits::default(),
    }
}

/// Removes the `# ` from every line that holds a field.
fn taken_up(text: &str) -> String {
    let field = |line: &str| {
        line.starts_with("# ")
            || line.starts_with("- ")
            || line.split(' ').next().is_some_and(|w| w.ends_with(':'))
    };
    let lines = text.lines().map(|line| match line.split_once("# ") {
        Some((indent, rest)) if indent.trim().is_empty() && indent.len() >= 4 && field(rest) => {
            format!("{indent}{rest}\n")
        }
        _ => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn what_nothing_proves_is_a_comment_that_can_be_taken_up() {
    let sketch = sketch();
    let (pools, mut network) = (sketch.pools.clone(), sketch.network.clone());
    network.candidates = vec![router("r1")];
    network.router = None;
    let doubtful = Proposal { pools: vec![], commented: pools, network, ..sketch };
    let written = render(&doubtful);
    assert!(written.contains("    # router: {cloud: os, id: r1}  # edge: holds routes"), "{written}");
    assert!(written.contains("    # - name: workers\n      # cloud: os\n"), "{written}");
    let origin = Origin { name: "proposed.yaml", dir: Path::new(""), home: None };
    let refused = read(&written, &origin).unwrap_err().to_string();
    assert!(refused.contains("spec.pools: it has no value"), "no pool is active by mistake: {refused}");
    let checked = accepted(&taken_up(&written));
    assert_eq!(checked.roster.pools.len(), 1);
    assert_eq!(checked.roster.network.router, Some((CloudName::from("os"), RouterId::from("r1"))));
}

#[test]
fn a_proposal_reads_from_top_to_bottom() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rosters/proposed.yaml");
    let written = render(&sketch());
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    assert_eq!(written, std::fs::read_to_string(&path).unwrap());
    accepted(&written);
}

/// A tag of EC2 is a pair, and is written as one text wherever that means the same.
#[test]
fn ec2_tags_are_rendered_as_text_and_read_back_as_pairs() {
    let pair = |key: &str, value: &str| Mark::Metadata(Arc::from(key), Arc::from(value));
    let table = [
        (pair("aws:autoscaling:groupName", "workers"), "pool: \"aws:autoscaling:groupName=workers\""),
        (pair("k8s-pool", "a=b"), "pool: \"k8s-pool=a=b\""),
        (pair("k8s=pool", "gpu"), "pool: {metadata: {\"k8s=pool\": gpu}}"),
        // The name of that Auto Scaling group is a value that EC2 does not allow in a user's own tag.
        (
            pair("aws:autoscaling:groupName", "old (2)"),
            "pool: {metadata: {\"aws:autoscaling:groupName\": \"old (2)\"}}",
        ),
    ];
    for (mark, written) in table {
        let mut proposal = sketch();
        proposal.clouds[0].at = CloudRef::Ec2 {
            region: "eu-central-1".to_owned(),
            profile: None,
            endpoint: None,
            cluster: "prod".to_owned(),
        };
        proposal.pools[0].owned =
            Ownership { cluster: Mark::Tag("kubernetes.io/cluster/prod".into()), pool: Some(mark) };
        proposal.pools[0].through_group = Some(false);
        let text = render(&proposal);
        assert!(
            text.contains(&format!("owned: {{tag: \"kubernetes.io/cluster/prod\", {written}}}")),
            "{text}"
        );
        assert!(text.contains("      throughGroup: false\n"), "{text}");
        assert_eq!(accepted(&text).roster.pools[&PoolName::from("workers")].owned, proposal.pools[0].owned);
    }
}

fn text() -> impl Strategy<Value = String> {
    // Texts as in tags and names of other users: words that YAML takes for something else, quotes, colons.
    prop_oneof![
        prop::sample::select(vec![
            "off",
            "no",
            "null",
            "~",
            "1.10",
            "0x1F",
            "1e3",
            "- a",
            "a: b",
            "#x",
            "{",
            "'\"",
            "é☃",
            "&a",
            "*a",
            "!t",
            "%x",
            "@",
            "`",
            "<<",
            "=",
            "y",
            "2026-10-19"
        ])
        .prop_map(str::to_owned),
        "[!-+\\--.0-~]{1,20}",
    ]
}

fn mark(distinct: &'static str) -> impl Strategy<Value = Mark> {
    prop_oneof![
        text().prop_map(move |text| Mark::Tag(Arc::from(format!("{distinct}{text}")))),
        ("[a-zA-Z0-9:._-]{1,20}", text()).prop_map(move |(key, value)| Mark::Metadata(
            Arc::from(format!("{distinct}{key}")),
            Arc::from(value)
        )),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![Mode::Off, Mode::Propose, Mode::Act])
}

prop_compose! {
    fn repair()(network in mode(), rejoin in mode(), reboot in mode(), replace in mode(), cleanup in mode()) -> Repair {
        Repair { network, rejoin, reboot, replace, cleanup }
    }
}

fn group() -> impl Strategy<Value = GroupRef> {
    prop_oneof![
        text().prop_map(|name| GroupRef::Name(Arc::from(name))),
        text().prop_map(|id| GroupRef::Id(GroupId::from(id.as_str()))),
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
            .prop_map(|id| GroupRef::Id(GroupId::from(id.as_str()))),
        "[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}"
            .prop_map(|name| GroupRef::Name(Arc::from(name))),
        "sg-[0-9a-f]{8}".prop_map(|id| GroupRef::Id(GroupId::from(id.as_str()))),
        "sg-[0-9a-f]{8}".prop_map(|name| GroupRef::Name(Arc::from(name))),
    ]
}

prop_compose! {
    fn proposal()(
        name in "[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?",
        entry in text(),
        file in option::of(text()),
        context in option::of(text()),
        cluster in mark("c"),
        pool in option::of(mark("p")),
        groups in collection::btree_set(group(), 0..4),
        router in option::of(text()),
        has_ranges in any::<bool>(),
        within_ms in option::of(30_000..86_400_000_i64),
        min in 0..9_u32,
        repair in repair(),
        through_group in option::of(any::<bool>()),
        note in any::<String>(),
    ) -> Proposal {
        let os = CloudName::from(name.as_str());
        let range = "10.244.0.0/16".parse().unwrap();
        Proposal {
            name: RosterName::from(name.as_str()),
            notes: vec![note.clone()],
            cluster: ClusterRef { kubeconfig: None, context },
            clouds: vec![ProposedCloud {
                name: os.clone(),
                at: CloudRef::OpenStack { cloud: entry, clouds_file: file.map(|text| PathBuf::from(format!("/{text}"))) },
                notes: vec![note.clone()],
            }],
            network: ProposedNetwork {
                pod_ranges: if has_ranges { vec![range] } else { vec![] },
                router: router.map(|id| ProposedRouter {
                    cloud: os.clone(),
                    id: RouterId::from(id.as_str()),
                    why: note.clone(),
                }),
                candidates: vec![],
                notes: vec![note.clone()],
            },
            commented: vec![],
            pools: vec![ProposedPool {
                name: PoolName::from(name.as_str()),
                cloud: os,
                owned: Ownership { cluster, pool },
                groups: groups.into_iter().collect(),
                min,
                join_within: within_ms.map(Span::from_ms),
                repair,
                through_group,
                notes: vec![note],
            }],
            limits: Limits::default(),
        }
    }
}

proptest! {
    #[test]
    fn whatever_is_proposed_is_what_is_read(proposal in proposal()) {
        let checked = accepted(&render(&proposal));
        let (cloud, pool) = (&proposal.clouds[0], &proposal.pools[0]);
        prop_assert_eq!(&checked.roster.name, &proposal.name);
        prop_assert_eq!(&checked.cluster, &proposal.cluster);
        prop_assert_eq!(&checked.clouds[&cloud.name], &cloud.at);
        prop_assert_eq!(&checked.roster.network.pod_ranges, &proposal.network.pod_ranges);
        let router = proposal.network.router.as_ref().map(|router| (router.cloud.clone(), router.id.clone()));
        prop_assert_eq!(&checked.roster.network.router, &router);
        prop_assert_eq!(&checked.roster.limits, &proposal.limits);
        let read = &checked.roster.pools[&pool.name];
        prop_assert_eq!(&read.owned, &pool.owned);
        prop_assert_eq!(&read.groups, &pool.groups);
        prop_assert_eq!((read.min, read.repair, read.deadlines.join_within), (pool.min, pool.repair, pool.join_within));
        prop_assert_eq!(read.through_group, pool.through_group.unwrap_or(false));
    }
}
