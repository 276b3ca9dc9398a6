//! Reads roster files: an accepted file means what it says, and the message for a refused file is compared word by word.
//!
//! Each `bad/*.yaml` has its message beside it in a `.txt`, compared as a whole. After an intended change of a message,
//! run the tests once with `REVEILLE_BLESS=1` and read the difference.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use reveille_core::model::access::{RoleRef, UserRef};
use reveille_core::model::id::{CloudName, GroupId, PoolName, RosterName, RouterId};
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::{Access, ServiceUser};
use reveille_core::model::roster::{
    Deadlines, GroupRef, Keep, Limits, Mode, Network, Ownership, Pool, Repair, Roster, Timing,
};
use reveille_core::model::time::Span;
use reveille_wire::roster::{
    CheckedRoster, CloudRef, ClusterRef, EtcdRef, Origin, Place, ReadRosterError, UNREACHABLE_CONDITIONS,
    Written, cluster_mark, read, read_file,
};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rosters").join(name)
}

fn good(name: &str, home: Option<&Path>) -> Vec<CheckedRoster> {
    let text = std::fs::read_to_string(folder("good").join(name)).unwrap();
    let origin = Origin { name, dir: Path::new("conf"), home };
    read(&text, &origin).unwrap_or_else(|refusal| panic!("{refusal}"))
}

#[test]
fn every_mistake_is_told_in_these_words() {
    let bless = std::env::var_os("REVEILLE_BLESS").is_some();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder("bad")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(files.len() >= 15, "the bad rosters are gone");
    let mut differing = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let said = match read(&text, &Origin { name: &name, dir: Path::new(""), home: None }) {
            Ok(rosters) => panic!("{name} was accepted: {rosters:#?}"),
            Err(refusal) => format!("{refusal}\n"),
        };
        let beside = file.with_extension("txt");
        if bless {
            std::fs::write(&beside, &said).unwrap();
        }
        let expected = std::fs::read_to_string(&beside).unwrap_or_default();
        if said != expected {
            differing.push(format!("--- {name}: expected\n{expected}--- said\n{said}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn roster_without_clouds_is_about_the_nodes_of_its_cluster() {
    let checked = good("alone.yaml", None).remove(0);
    assert!(!checked.has_cloud());
    let cluster =
        ClusterRef { kubeconfig: Some(PathBuf::from("conf/admin.conf")), context: Some("edge".to_owned()) };
    assert_eq!(checked.clouds, BTreeMap::from([("machines".into(), CloudRef::Cluster(cluster))]));
    let label = |key: &str, value: &str| Some(Mark::Metadata(key.into(), value.into()));
    let [leads, works] =
        ["control-plane", "workers"].map(|name| &checked.roster.pools[&PoolName::from(name)]);
    assert_eq!(
        (&leads.owned.cluster, leads.owned.pool.clone()),
        (&cluster_mark(), label("node-role.kubernetes.io/control-plane", ""))
    );
    assert_eq!(works.owned.pool, label("reveille.dev/role", "worker"));
    assert_eq!((leads.repair.rejoin, leads.repair.reboot), (Mode::Act, Mode::Off));
    assert_eq!(
        (works.repair.rejoin, works.repair.reboot, works.repair.network),
        (Mode::Propose, Mode::Off, Mode::Off)
    );
}

#[test]
fn the_sketch_of_the_design_means_what_it_says() {
    let pool = Pool {
        name: PoolName::from("workers"),
        cloud: CloudName::from("os"),
        owned: Ownership {
            cluster: Mark::Tag(Arc::from("k8s-cluster=prod")),
            pool: Some(Mark::Tag(Arc::from("k8s-pool=workers"))),
        },
        groups: vec![GroupRef::Name(Arc::from("k8s-nodes"))],
        min: 3,
        deadlines: Deadlines::default(),
        repair: Repair {
            network: Mode::Act,
            rejoin: Mode::Act,
            reboot: Mode::Propose,
            replace: Mode::Off,
            cleanup: Mode::Off,
        },
        paused: false,
        startup_taints: Vec::new(),
        keep: None,
        through_group: false,
    };
    let router = RouterId::from("3f0c1111-0000-0000-0000-000000000001");
    let expected = CheckedRoster {
        roster: Roster {
            name: RosterName::from("prod"),
            clouds: vec![CloudName::from("os")],
            settles: BTreeMap::new(),
            network: Network {
                pod_ranges: vec!["198.19.0.0/16".parse().unwrap()],
                router: Some((CloudName::from("os"), router)),
                address_pairs: true,
                unreachable_conditions: UNREACHABLE_CONDITIONS.into_iter().map(Arc::from).collect(),
            },
            pools: [(pool.name.clone(), pool)].into(),
            access: Access::default(),
            limits: Limits::default(),
            timing: Timing::default(),
        },
        rancher: None,
        hot: None,
        cluster: ClusterRef { kubeconfig: None, context: Some("prod-admin".to_owned()) },
        clouds: [(
            CloudName::from("os"),
            CloudRef::OpenStack { cloud: "prod".to_owned(), clouds_file: None },
        )]
        .into(),
        written: BTreeMap::from([(
            PoolName::from("workers"),
            Written {
                file: "sketch.yaml".to_owned(),
                at: Place { line: 15, column: 14 },
                field: "spec.pools[0].owned".to_owned(),
            },
        )]),
    };
    assert_eq!(good("sketch.yaml", None), vec![expected]);
}

#[test]
fn every_field_reaches_its_place() {
    let checked = good("everything.yaml", Some(Path::new("/home/ada"))).remove(0);
    assert_eq!(checked.cluster.kubeconfig, Some(PathBuf::from("conf/secrets/kubeconfig")));
    let files: Vec<&Path> = (checked.clouds.values())
        .filter_map(|at| match at {
            CloudRef::OpenStack { clouds_file, .. } => clouds_file.as_deref(),
            CloudRef::Ec2 { .. } | CloudRef::Cluster(_) => None,
        })
        .collect();
    assert_eq!(files, [Path::new("/etc/openstack/clouds.yaml"), Path::new("/home/ada/clouds.yaml")]);
    let roster = checked.roster;
    assert_eq!(
        roster.network,
        Network {
            pod_ranges: vec!["10.244.0.0/16".parse().unwrap(), "fd00:10::/56".parse().unwrap()],
            router: Some((CloudName::from("south"), RouterId::from("r-1"))),
            address_pairs: false,
            unreachable_conditions: vec![Arc::from("RouteBroken")],
        }
    );
    assert_eq!(roster.pools[&PoolName::from("workers")], the_workers_of_everything());
    let edge = &roster.pools[&PoolName::from("edge")];
    assert_eq!(edge.owned.cluster, Mark::Tag(Arc::from("1.10")), "the author's spelling, not a number");
    assert_eq!(edge.deadlines.join_within, Some(Span::from_min(90)));
    assert_eq!(
        roster.limits,
        Limits {
            at_once: 2,
            per_hour: 10,
            freeze_above_pct: 100,
            network_at_once: 3,
            same_fault_stops_at: 1
        }
    );
    assert_eq!(
        roster.timing,
        Timing {
            cloud_period: Span::from_s(10),
            cloud_full_period: Span::from_s(10),
            cloud_stale_after: Span::from_min(1),
            cluster_stale_after: Span::from_s(15),
            lease_silent_after: Span::from_s(50),
            agent_silent_after: Span::from_min(2),
            pause_jump: Span::from_min(2),
            shrink_pct: 50,
            backoff_min: Span::from_s(30),
            backoff_max: Span::from_s(30),
            tries: 2,
            verify_within: Span::from_min(2),
            settle: Span::from_min(3),
            rollout_quiet: Span::from_min(60),
        }
    );
    let named =
        |name: &str, domain: Option<&str>| UserRef::Name { name: name.into(), domain: domain.map(Arc::from) };
    let ids = ["9fe2ff9ee4384b1894a90878d3e92bab", "5f0c1111000000000000000000000000"];
    let users = vec![
        ServiceUser {
            cloud: CloudName::from("north"),
            user: Arc::new(named("ccm", Some("default"))),
            roles: vec![RoleRef::Name("network_admin".into()), RoleRef::Id(ids[0].into())],
        },
        ServiceUser {
            cloud: CloudName::from("south"),
            user: Arc::new(UserRef::Id(ids[1].into())),
            roles: vec![RoleRef::Name(ids[0].into()), RoleRef::Id("r-1".into())],
        },
    ];
    assert_eq!(roster.access, Access { users, repair: Mode::Act, check_every: Span::from_min(20) });
}

#[test]
fn two_kinds_of_clouds_stand_in_one_roster() {
    let checked = good("ec2.yaml", None).remove(0);
    let (aws, os) = (CloudName::from("aws"), CloudName::from("os"));
    let ec2 = CloudRef::Ec2 {
        region: "eu-central-1".to_owned(),
        profile: Some("ops".to_owned()),
        endpoint: Some("http://127.0.0.1:5000".to_owned()),
        cluster: "prod".to_owned(),
    };
    assert_eq!(checked.clouds[&aws], ec2);
    assert!(matches!(checked.clouds[&os], CloudRef::OpenStack { .. }));
    let roster = checked.roster;
    assert_eq!(roster.settles, BTreeMap::from([(aws, Span::from_min(5))]), "only EC2 takes a while to agree");
    let pool = |name: &str| &roster.pools[&PoolName::from(name)];
    let pair = |key: &str, value: &str| Mark::Metadata(Arc::from(key), Arc::from(value));
    assert_eq!(pool("spot").owned.cluster, Mark::Tag(Arc::from("kubernetes.io/cluster/prod")), "any value");
    assert_eq!(pool("spot").owned.pool, Some(pair("team/pool", "spot")), "a tag of EC2 is a pair");
    assert_eq!(pool("plain").owned.cluster, pair("kubernetes.io/cluster/prod", "owned"));
    let groups =
        vec![GroupRef::Id(GroupId::from("sg-0123456789abcdef0")), GroupRef::Name(Arc::from("sg-nodes"))];
    assert_eq!(pool("spot").groups, groups);
    let through: Vec<bool> = ["spot", "plain", "workers"].map(|name| pool(name).through_group).into();
    assert_eq!(
        through,
        [true, false, false],
        "a group's machines are left to it unless the roster says otherwise"
    );
}

#[test]
fn rancher_repairs_are_only_proposed_unless_the_roster_says_act() {
    let rosters = good("rancher.yaml", Some(Path::new("/home/ada")));
    let etcd = EtcdRef {
        endpoints: vec!["https://10.0.0.1:2379".to_owned(), "https://10.0.0.2:2379".to_owned()],
        ca: PathBuf::from("conf/pki/ca.pem"),
        cert: PathBuf::from("/etc/etcd/client.pem"),
        key: PathBuf::from("/home/ada/client.key"),
    };
    let shop = rosters[0].rancher.as_ref().unwrap();
    assert_eq!(shop.kubeconfig, Some(PathBuf::from("conf/rancher.kubeconfig")));
    assert_eq!((shop.context.as_deref(), &*shop.cluster), (Some("rancher"), "shop"));
    assert_eq!((&shop.etcd, shop.evict, shop.mend), (&Some(etcd), Mode::Act, Mode::Propose));
    assert_eq!((shop.looks_apart, shop.plan_within), (Some(Span::from_s(5)), Some(Span::from_min(3))));
    let plain = rosters[1].rancher.as_ref().unwrap();
    assert_eq!((plain.looks_apart, plain.plan_within), (None, None));
    assert_eq!((&plain.kubeconfig, &plain.context, &plain.etcd), (&None, &None, &None));
    assert_eq!((&*plain.cluster, plain.evict, plain.mend), ("c-abcde", Mode::Propose, Mode::Propose));
}

fn the_workers_of_everything() -> Pool {
    Pool {
        name: PoolName::from("workers"),
        cloud: CloudName::from("north"),
        owned: Ownership {
            cluster: Mark::Metadata(Arc::from("KubernetesCluster"), Arc::from("prod")),
            pool: Some(Mark::Metadata(Arc::from("pool"), Arc::from("7"))),
        },
        groups: vec![
            GroupRef::Name(Arc::from("k8s-nodes")),
            GroupRef::Id(GroupId::from("5f0c1111-0000-0000-0000-00000000000a")),
            GroupRef::Name(Arc::from("5f0c1111-0000-0000-0000-00000000000b")),
            GroupRef::Id(GroupId::from("sg-1")),
        ],
        min: 0,
        deadlines: Deadlines {
            join_within: None,
            build_within: Span::from_min(20),
            delete_within: Span::from_min(60),
            not_ready_within: Span::from_s(90),
            vanished_within: Span::from_min(3),
            dwell: Span::from_min(5),
            in_service_within: Span::from_min(6),
            confirm: true,
        },
        repair: Repair {
            network: Mode::Act,
            rejoin: Mode::Propose,
            reboot: Mode::Off,
            replace: Mode::Off,
            cleanup: Mode::Off,
        },
        paused: true,
        startup_taints: vec![
            Arc::from("node.cilium.io/agent-not-ready"),
            Arc::from("node.cloudprovider.kubernetes.io/uninitialized"),
        ],
        keep: Some(Keep { within: Span::from_min(24 * 60), at_most: 2, failed: true }),
        through_group: true,
    }
}

#[test]
fn one_file_may_hold_several_rosters() {
    let rosters = good("several.yaml", None);
    let names: Vec<&str> = rosters.iter().map(|checked| checked.roster.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    let merged = &rosters[0].roster.pools[&PoolName::from("b")];
    assert_eq!((merged.repair.network, merged.deadlines.join_within), (Mode::Act, None));
    assert_eq!(rosters[1].roster.pools[&PoolName::from("a")].min, 1);
}

#[test]
fn editors_of_other_systems_change_nothing() {
    let text = std::fs::read_to_string(folder("good").join("everything.yaml")).unwrap();
    let foreign = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    let home = Some(Path::new("/home/ada"));
    let origin = Origin { name: "everything.yaml", dir: Path::new("conf"), home };
    assert_eq!(read(&foreign, &origin), Ok(good("everything.yaml", home)));
}

#[test]
fn a_file_is_read_from_where_it_lies() {
    let path = folder("good").join("everything.yaml");
    let checked = read_file(&path).unwrap().remove(0);
    assert_eq!(checked.cluster.kubeconfig, Some(folder("good").join("secrets/kubeconfig")));
    let missing = read_file(&folder("good").join("none.yaml")).unwrap_err();
    assert!(matches!(missing, ReadRosterError::Open { .. }));
    assert!(missing.to_string().contains("reveille init"), "{missing}");
}

proptest! {
    /// A file may be broken in any way: the reader never fails to answer, and every complaint has a position within the file.
    #[test]
    fn a_broken_file_is_answered(
        cut in 0..4000_usize,
        taken in 0..40_usize,
        put in prop_oneof![any::<String>(), "[\\[\\]{}:,&*!|>'\"%@`#\n\t -]{0,8}"],
    ) {
        let text = std::fs::read_to_string(folder("good").join("everything.yaml")).unwrap();
        let from = text.floor_char_boundary(cut % text.len());
        let to = text.floor_char_boundary((from + taken).min(text.len()));
        let broken = format!("{}{put}{}", &text[..from], &text[to..]);
        let origin = Origin { name: "broken.yaml", dir: Path::new(""), home: Some(Path::new("/home/ada")) };
        if let Err(refusal) = read(&broken, &origin) {
            let lines = u32::try_from(broken.lines().count()).unwrap() + 1;
            prop_assert!(refusal.complaints.iter().all(|complaint| complaint.at.line <= lines), "{refusal}");
            prop_assert!(!refusal.complaints.is_empty());
        }
    }
}
