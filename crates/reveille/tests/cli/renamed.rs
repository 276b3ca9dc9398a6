//! Tests a cloud whose name in the roster differs from the ledger: `run` does not begin before the operator has decided
//! which one it is.

use reveille_record::{Config, Holder, Ledger};
use serde_json::{Value, json};

use crate::bench::Bench;

/// The ledger of a process whose roster called the cloud `old`.
fn ledger(bench: &Bench) {
    let folder = bench.path(".local/state/reveille/lost");
    std::fs::create_dir_all(&folder).unwrap();
    let holder = Holder::this_process("test", 0);
    let mut ledger = Ledger::<Value>::open(&folder, &holder, Config::STANDARD).unwrap().ledger;
    let machines: Vec<Value> = ["i-1", "i-2"]
        .map(|id| json!({"machine": {"instance": ["old", id]}, "node": id, "pool": "workers"}))
        .into();
    for line in [
        json!({"v": 3, "t": "started", "at": "2026-10-19T09:12:13.042Z", "fence": 1}),
        json!({"v": 3, "t": "joined", "at": "2026-10-19T09:12:13.042Z", "machines": machines}),
    ] {
        ledger.append(&line).unwrap();
    }
    ledger.sync().unwrap();
}

#[test]
fn renamed_cloud_stops_the_start_until_it_is_forgotten() {
    let bench = Bench::new();
    ledger(&bench);
    let once = ["run", "--once", "--within", "1"];
    let ran = bench.run(&once);
    assert_eq!(ran.code, 64, "{}", ran.err);
    for words in
        ["knows 2 machines of the cloud old", "give the cloud its old name back", "--forget-cloud old"]
    {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
    let another = [&once[..], &["--forget-cloud", "other"]].concat();
    assert_eq!(bench.run(&another).code, 64, "that one is not meant");
    let forgotten = [&once[..], &["--forget-cloud", "old"]].concat();
    assert_ne!(bench.run(&forgotten).code, 64);
    let ran = bench.run(&once);
    assert!(ran.code != 64 && !ran.err.contains("the cloud old"), "the ledger keeps it: {}", ran.err);
}
