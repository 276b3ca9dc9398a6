//! Objects that no real system writes: each field replaced by values of every type, and lists without end.
//!
//! ```text
//!  each fixture × each place in it × each wrong value ─▶ read ─▶ no panic; bounded; only needed fields refuse the object
//! ```

use reveille_machines::record::{
    EVIDENCE_LINE_BYTES_MAX, LABELS_MAX, MEMBERS_MAX, MachineRecord, Sort, UNREAD_MAX,
};
use reveille_machines::{Kind, Unreadable, read};
use serde_json::{Map, Value, json};

use crate::expected::{FOLDERS, fixture, folder, kind_of};

/// Fields without which an object cannot be named, or is of another kind.
const NEEDED: [&str; 6] =
    ["/kind", "/apiVersion", "/metadata", "/metadata/name", "/metadata/uid", "/metadata/namespace"];

fn wrong_values() -> Vec<Value> {
    let long = "x\u{1b}[31m\n".repeat(300);
    vec![
        Value::Null,
        json!(true),
        json!(-7.5e300),
        json!(""),
        json!("x\u{202e}y\n"),
        json!(long),
        json!([]),
        json!([null, 1, "a", {"type": 1}, {"type": "Launched", "status": {}}]),
        json!({}),
        json!({"name": [], "state": 3, "phase": {}, "type": "Ready"}),
        Value::Array((0..=MEMBERS_MAX).map(|n| json!({"type": format!("T{n}"), "status": "True"})).collect()),
        Value::Object(
            (0..=LABELS_MAX).map(|n| (format!("k{n}"), json!(format!("v{n}")))).collect::<Map<_, _>>(),
        ),
    ]
}

/// All places in an object, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(list) => {
            for (place, value) in list.iter().enumerate() {
                places(value, &format!("{at}/{place}"), found);
            }
        }
        _ => {}
    }
}

fn fixtures() -> Vec<(&'static Kind, String, Value)> {
    let mut all = Vec::new();
    for (name, ..) in FOLDERS {
        for entry in std::fs::read_dir(folder(name)).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let object = fixture(name, file.strip_suffix(".json").unwrap());
            let version = object["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap().1.to_owned();
            all.push((kind_of(name), version, object));
        }
    }
    assert!(all.len() >= 40, "{} fixtures", all.len());
    all
}

fn assert_bounded(record: &MachineRecord) {
    let texts = |step: &reveille_machines::record::Step| {
        [step.value.clone(), step.reason.clone(), step.message.clone(), step.since.clone()]
    };
    let texts = record.steps.iter().flat_map(texts).flatten();
    let failure = record.failure.iter().flat_map(|it| [it.reason.clone(), it.message.clone()]).flatten();
    let holds = record.holds.iter().map(|hold| hold.by.clone());
    let identities = [record.provider_id.clone(), record.pool.clone(), record.created.clone()];
    for text in texts.chain(failure).chain(holds).chain(identities.into_iter().flatten()) {
        assert!(text.len() <= 512, "{} bytes", text.len());
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    assert!(record.labels.len() <= LABELS_MAX && record.unread.len() <= UNREAD_MAX);
    assert!(record.members.provider_ids.len() <= MEMBERS_MAX && record.members.nodes.len() <= MEMBERS_MAX);
    assert!(record.unread.iter().all(|unread| unread.to_string().len() <= 1024));
    let lines = record.evidence_lines();
    assert!(lines.len() <= record.steps.len() + 1);
    for line in lines {
        assert!(line.len() <= EVIDENCE_LINE_BYTES_MAX && !line.chars().any(char::is_control), "{line:?}");
    }
}

#[test]
fn mutilated_object_is_read_as_far_as_it_goes() {
    // Moved in and out rather than copied: there are forty thousand of them.
    let mut wrong_values = wrong_values();
    for (kind, version, mut object) in fixtures() {
        let mut all = Vec::new();
        places(&object, "", &mut all);
        for place in all.iter().skip(1) {
            for wrong in &mut wrong_values {
                std::mem::swap(object.pointer_mut(place).unwrap(), wrong);
                match read(kind, &version, &object) {
                    Ok(record) => assert_bounded(&record),
                    Err(_) => assert!(NEEDED.contains(&place.as_str()), "{} {place}", kind.name),
                }
                std::mem::swap(object.pointer_mut(place).unwrap(), wrong);
            }
        }
    }
}

#[test]
fn wrong_type_loses_that_field_alone_and_is_told() {
    let mut object = fixture("karpenter-nodeclaim", "ready");
    object["status"]["providerID"] = json!(7);
    object["status"]["conditions"][0]["message"] = json!({});
    let record = read(kind_of("karpenter-nodeclaim"), "v1", &object).unwrap();
    assert_eq!(record.provider_id, None);
    assert!(record.node.is_some() && record.stopped_at().is_none());
    let told: Vec<_> = record.unread.iter().map(|unread| (&*unread.field, unread.is)).collect();
    assert_eq!(told, [("status.conditions[0].message", Sort::Mapping), ("status.providerID", Sort::Number)]);
    let words = record.unread[1].to_string();
    assert_eq!(words, "status.providerID is a number, where a text that names it belongs");
}

#[test]
fn identity_that_is_too_long_is_not_cut() {
    let mut object = fixture("karpenter-nodeclaim", "ready");
    object["status"]["providerID"] = json!("x".repeat(513));
    let record = read(kind_of("karpenter-nodeclaim"), "v1", &object).unwrap();
    assert_eq!(record.provider_id, None);
    assert_eq!(record.unread[0].is, Sort::LongText);
}

#[test]
fn hold_of_a_wrong_type_still_holds() {
    let mut object = fixture("cluster-api-machine", "v1beta2-ready");
    object["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ["x"]});
    let record = read(kind_of("cluster-api-machine"), "v1beta2", &object).unwrap();
    assert_eq!(&*record.holds[0].by, "annotation cluster.x-k8s.io/paused=set");
}

#[test]
fn what_is_no_object_of_the_kind_is_refused_with_words() {
    let claims = kind_of("karpenter-nodeclaim");
    let machines = kind_of("cluster-api-machine");
    let good = fixture("karpenter-nodeclaim", "ready");
    let mut nameless = good.clone();
    nameless["metadata"]["name"] = json!("");
    let mut homeless = fixture("cluster-api-machine", "v1beta2-ready");
    homeless["metadata"]["namespace"] = Value::Null;
    for (kind, version, object, words) in [
        (claims, "v1beta1", &good, "NodeClaim in version v1beta1: this program reads v1"),
        (claims, "v1", &json!([]), "NodeClaim: the object is a list, where a mapping belongs"),
        (machines, "v1beta2", &good, "kind is \"NodeClaim\", where \"Machine\" belongs"),
        (
            claims,
            "v1",
            &nameless,
            "NodeClaim: metadata.name is an empty text, where a text that names it belongs",
        ),
        (
            machines,
            "v1beta2",
            &homeless,
            "Machine prod-md-0-7k2xd-4m7cz: metadata.namespace is nothing, where a text that names it belongs",
        ),
        (
            machines,
            "v1beta1",
            &fixture("cluster-api-machine", "v1beta2-ready"),
            "apiVersion is \"cluster.x-k8s.io/v1beta2\", where \"cluster.x-k8s.io/v1beta1\" belongs",
        ),
    ] {
        let error: Unreadable = read(kind, version, object).unwrap_err();
        assert_eq!(error.to_string(), words);
    }
}

#[test]
fn item_of_a_list_has_no_kind_and_is_read() {
    let mut object = fixture("karpenter-nodeclaim", "ready");
    let fields = object.as_object_mut().unwrap();
    fields.remove("kind");
    fields.remove("apiVersion");
    assert!(read(kind_of("karpenter-nodeclaim"), "v1", &object).is_ok());
}

#[test]
fn members_beyond_the_bound_are_left_out_and_told() {
    let mut object = fixture("cluster-api-machinepool", "v1beta1-one-missing");
    let count = MEMBERS_MAX + 5;
    object["spec"]["providerIDList"] = (0..count).map(|n| json!(format!("aws:///a/i-{n}"))).collect();
    object["status"]["nodeRefs"] = (0..count).map(|n| json!({"name": format!("node-{n}")})).collect();
    let record = read(kind_of("cluster-api-machinepool"), "v1beta1", &object).unwrap();
    assert_eq!((record.members.provider_ids.len(), record.members.nodes.len()), (MEMBERS_MAX, MEMBERS_MAX));
    let told: Vec<_> = record.unread.iter().map(|unread| (&*unread.field, unread.is)).collect();
    assert_eq!(told, [("spec.providerIDList", Sort::LongList), ("status.nodeRefs", Sort::LongList)]);
}
