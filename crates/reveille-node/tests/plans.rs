//! What a plan leaves on a machine, and what later plans find there.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

use std::fs;

use reveille_core::model::id::NodeName;
use reveille_node::distribution::{Deed, Distribution as _, Order, Supervised};
use reveille_node::root::Root;
use reveille_node::target::{Arguments, Kind, Target, Token};
use reveille_wire::agent::allowed;
use secrecy::ExposeSecret as _;

/// The agent reads its own file back at each plan. A file that it cannot read would refuse them all, because the folder
/// of the distribution is unknown: what is taken of a plan is at most what is read again, with the plan's own labels
/// beside it.
#[test]
fn a_plan_that_was_taken_stands_in_the_way_of_no_later_plan() {
    let deep = format!("node-label: {}{}\n", "[".repeat(30), "]".repeat(30));
    let many = format!("node-label: [a{}]\n", ",a".repeat(60_000));
    let long = format!("node-label: [&a {}{}]\n", "x".repeat(500 << 10), ", *a".repeat(9));
    let key = format!("node-label: [{{? {}\n: a}}]\n", "x".repeat(2_000));
    let largest = format!("node-label: [a{}]\n", ",a".repeat(31_990));
    let numbers = format!("node-label: [1e15{}]\n", ",1e15".repeat(31_990));
    assert!(allowed::config(0, Kind::K3s, &largest).is_ok());
    let all = [
        ("deep", deep),
        ("many", many),
        ("long", long),
        ("key", key),
        ("largest", largest),
        ("numbers", numbers),
    ];
    let mut wedged = Vec::new();
    for (what, text) in all {
        let Ok(own) = allowed::config(0, Kind::K3s, &text) else { continue };
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let way = Supervised::of_machine(Kind::K3s, &root).unwrap();
        let arguments = Arguments {
            distribution: Some(Kind::K3s),
            words: vec!["10.0.0.1:6443".to_owned()],
            token: Some(format!("K10{}::abcdef.0123456789abcdef", "ab".repeat(32)).into()),
            ..Arguments::default()
        };
        let target = Target::find(&arguments, &root).unwrap().unwrap();
        let token =
            Token::parse_for(Kind::K3s, "test", &"abcdef.0123456789abcdef".to_owned().into()).unwrap();
        let mut config = own;
        // The plan's labels, as many as a frame has values.
        config["node-label+"] = (0..16 << 10).map(|number| format!("a{number}=b")).collect();
        let config = config.to_string();
        let order = Order {
            target: &target,
            node_name: &NodeName::from("w-1"),
            token: &token,
            authorities_pem: "",
            bundle: None,
            config: Some(&config),
            ignored_checks: &[],
        };
        for deed in way.join(&order) {
            if let Deed::Write { path, content } = deed {
                fs::create_dir_all(root.at(&path).parent().unwrap()).unwrap();
                fs::write(root.at(&path), content.expose_secret()).unwrap();
            }
        }
        if let Err(why) = Supervised::of_machine(Kind::K3s, &root) {
            wedged.push(format!("{what}: {why}"));
        }
    }
    assert!(wedged.is_empty(), "{wedged:#?}");
}
