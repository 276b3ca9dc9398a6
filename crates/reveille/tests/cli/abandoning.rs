//! Abandons a repair of a Rancher record while no cluster answers.

use reveille_record::{Config, Holder, Ledger};
use serde_json::{Value, json};

use crate::bench::Bench;

/// A repair ledger in which the eviction of w-3 got as far as its cordon, whose end was not recorded.
fn journal(bench: &Bench) {
    let order = json!({"cluster": "c-abcde", "node": "w-3", "path": "evict", "localData": false});
    let lines = [
        json!({"line": "begun", "atMs": 1_000, "order": order, "nodeUid": "u", "ips": ["10.0.0.3"], "roles": ["worker"]}),
        json!({"line": "intent", "number": 1, "atMs": 2_000, "what": {"act": "save", "records": ["machine-h46dc"]}}),
        json!({"line": "ended", "number": 1, "outcome": {"ended": "accepted"}}),
        json!({"line": "intent", "number": 2, "atMs": 3_000, "what": {"act": "cordon", "uid": "u"}}),
    ];
    let folder = bench.path(".local/state/reveille/lost/rancher");
    std::fs::create_dir_all(&folder).unwrap();
    let holder = Holder::this_process("test", 0);
    let mut ledger = Ledger::<Value>::open(&folder, &holder, Config::STANDARD).unwrap().ledger;
    for what in lines {
        ledger.append(&json!({"node": "w-3", "path": "evict", "what": what})).unwrap();
    }
    ledger.sync().unwrap();
}

#[test]
fn a_repair_is_given_up_once_and_only_when_it_is_said_twice() {
    let bench = Bench::new();
    let roster = std::fs::read_to_string(bench.path("reveille.yaml")).unwrap();
    bench.write("reveille.yaml", &format!("{roster}  rancher: {{kubeconfig: kubeconfig, cluster: shop}}\n"));
    journal(&bench);
    for _ in 0..2 {
        let shown = bench.run(&["rancher", "abandon", "w-3"]);
        assert_eq!(shown.code, 1, "{}{}", shown.out, shown.err);
        for part in [
            "evict w-3 of shop: open",
            "keep copies of 1 record(s): done",
            "cordon the Node: may have been done",
            "nothing could be looked at",
            "Nothing was changed",
        ] {
            assert!(shown.out.contains(part), "{part}\n{}", shown.out);
        }
    }
    let other = bench.run(&["rancher", "abandon", "w-4"]);
    assert_eq!(other.code, 64);
    assert!(
        other.err.contains("no repair of w-4 is open") && other.err.contains("abandon w-3"),
        "{}",
        other.err
    );
    let ended = bench.run(&["rancher", "abandon", "w-3", "--yes", "-o", "json"]);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    let told: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (&told["kind"], &told["ended"], &told["way"]),
        (&json!("RancherAbandonReport"), &json!(true), &json!("evict"))
    );
    assert_eq!(told["steps"][1]["at"], "1970-01-01T00:00:03.000Z");
    let again = bench.run(&["rancher", "abandon", "w-3", "--yes"]);
    assert_eq!(again.code, 64, "{}{}", again.out, again.err);
    assert!(again.err.contains("the next may begin"), "{}", again.err);
}
