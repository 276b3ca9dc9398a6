//! P1 to P8 on real objects, and a cluster without any problem.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use reveille_tests::lab::Lab;
use reveille_tests::process;
use reveille_tests::rancher::kinds;
use reveille_tests::rancher::objects::{FINALIZER, mirror, registered};
use reveille_tests::wait::s;
use serde_json::{Value, json};

use super::Ground;

/// What rests on an age needs objects that are older than any scenario: the API server's answers are dated so much later.
const LATER_S: u64 = 20 * 60;

/// Each of the eight is found at the machine that has it, and nothing beside it; a machine in the same cluster and a whole
/// cluster without any problem are not mentioned.
pub(crate) fn faulty_records_are_found_and_sound_ones_are_not(lab: &mut Lab) -> Result<()> {
    kinds::install(&lab.kube)?;
    let mut sound = Ground::lay(lab, "c-sound", 1, 2, LATER_S)?;
    let mut faulty = Ground::lay(lab, "c-faulty", 2, 8, LATER_S)?;
    let ended = [1, 2]
        .into_iter()
        .try_for_each(|number| sound.join(number).and_then(|()| sound.register(number)))
        .and_then(|()| spoil(&mut faulty))
        .and_then(|()| looked(lab, &sound, &faulty));
    faulty.api.delete("/api/v1/namespaces/cattle-system")?;
    faulty.clear()?;
    sound.clear()?;
    ended
}

/// Machine 9 is sound; of the others, each has what its number says.
fn spoil(ground: &mut Ground) -> Result<()> {
    for number in [1, 2, 3, 4, 5, 6, 8, 9] {
        ground.join(number)?;
    }
    let (id, list) = (ground.id.clone(), ground.records_at());
    let of = |number: u8| (ground.name(number), ground.ip(number));
    let whole = |number: u8| registered(&id, &ground.record(number), &of(number).0, &of(number).1);
    ground.api.make(&list, &mirror(&id, &of(1).0, &of(1).1))?;
    let mut unowned = whole(2);
    take_out(&mut unowned, "spec", "customConfig");
    let mut unplanned = whole(3);
    take_out(&mut unplanned, "status", "rkeNode");
    let mut second = whole(4);
    second["metadata"]["name"] = json!("m-0123456789ab");
    second["status"]["rkeNode"]["nodeName"] = json!(format!("{id}:m-0123456789ab"));
    let mut by_hand = whole(8);
    by_hand["status"]["rkeNode"]["address"] = json!("192.0.2.8");
    for record in [unowned, unplanned, whole(4), second, whole(6), whole(7), by_hand, whole(9)] {
        ground.api.make(&list, &record)?;
    }
    // Its finalizer waits for a client that never comes.
    ground.api.delete(&format!("{list}/{}", ground.record(6)))?;
    agent(ground, &of(7).0)
}

fn take_out(record: &mut Value, part: &str, field: &str) {
    if let Some(fields) = record[part].as_object_mut() {
        fields.remove(field);
    }
}

/// The agent of a machine runs, whose kubelet never made a Node.
fn agent(ground: &Ground, node: &str) -> Result<()> {
    let api = &ground.api;
    api.make("/api/v1/namespaces", &json!({"metadata": {"name": "cattle-system"}}))?;
    let mut pod = ground.run_pod(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "cattle-node-agent-x7k2p", "namespace": "cattle-system"},
        "spec": {"nodeName": node, "automountServiceAccountToken": false,
            "containers": [{"name": "agent", "image": "none.example/none"}]},
    }))?;
    pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    ensure!(api.replace("/api/v1/namespaces/cattle-system/pods/cattle-node-agent-x7k2p/status", &pod)?);
    Ok(())
}

fn looked(lab: &Lab, sound: &Ground, faulty: &Ground) -> Result<()> {
    let told = inspect(lab, sound, 0)?;
    ensure!(told["clusters"][0]["troubles"] == json!([]), "{told}");
    ensure!(told["clusters"][0]["records"] == 2 && told["clusters"][0]["unread"] == json!([]), "{told}");
    let told = inspect(lab, faulty, 1)?;
    ensure!(!told.to_string().contains("k3y-canary"), "a key is told");
    let troubles = told["clusters"][0]["troubles"].as_array().context("no troubles")?;
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for trouble in troubles {
        let codes = trouble["findings"].as_array().into_iter().flatten();
        let codes =
            codes.map(|finding| format!("{} {}", words(finding, "predicate"), words(finding, "certainty")));
        found.entry(words(trouble, "node").to_owned()).or_default().extend(codes);
    }
    let wanted: [(u8, &[&str]); 8] = [
        (1, &["P1 high", "P2 high", "P3 high"]),
        (2, &["P2 high"]),
        (3, &["P3 high"]),
        (4, &["P4 high"]),
        (5, &["P5 medium"]),
        (6, &["P6 high"]),
        (7, &["P7 high"]),
        (8, &["P8 medium"]),
    ];
    let wanted = wanted.map(|(number, codes)| {
        (faulty.name(number), codes.iter().map(|code| (*code).to_owned()).collect::<BTreeSet<_>>())
    });
    ensure!(found == BTreeMap::from(wanted), "{found:?}");
    let one = troubles.iter().find(|trouble| trouble["node"] == faulty.name(1)).context("no trouble of 1")?;
    let fields: Vec<&str> =
        one["differs"].as_array().into_iter().flatten().map(|one| words(one, "field")).collect();
    ensure!(one["sibling"].is_string(), "{one}");
    for field in ["metadata.name", "spec.customConfig", "status.rkeNode"] {
        ensure!(fields.contains(&field), "{field} is not in {fields:?}");
    }
    let says_finalizer = told.to_string().contains(FINALIZER);
    ensure!(says_finalizer, "what the deletion waits for is not told");
    Ok(())
}

fn words<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn inspect(lab: &Lab, ground: &Ground, code: i32) -> Result<Value> {
    let mut command = std::process::Command::new(lab.reveille.program());
    command.args(["rancher", "inspect", &ground.id, "--output", "json", "--kubeconfig"]);
    command.arg(&ground.kubeconfig).arg("--downstream").arg(&ground.kubeconfig);
    let ended = process::run(command, None, s(60))?;
    ensure!(ended.code == Some(code), "inspect: {:?}: {}{}", ended.code, ended.stdout, ended.stderr);
    ensure!(ground.door.writes().is_empty(), "looking wrote {:?}", ground.door.writes());
    serde_json::from_str(&ended.stdout).context("inspect says no JSON")
}
