//! Nova's server as the model's instance.
//!
//! A page is decoded into structs that borrow its bytes and hold only what is needed, and turned into [`Instance`]s
//! with shared texts on the way. The state mapping is the one place where Nova's three overlapping words (status,
//! vm_state, task_state) become one: only what plainly leaves is leaving, and everything unfamiliar is alive.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use reveille_cloud::text::bounded;
use reveille_core::model::id::{ImageId, InstanceId, InstanceName, RequestId, ZoneName};
use reveille_core::model::instance::{Fault, Instance, InstanceAction, InstanceState};
use serde::Deserialize;

use reveille_core::model::intern::{MarkSets, Texts};

/// The longest text of a server that is kept. Nova's columns for names, tags, metadata, zones, tasks and the messages of faults
/// take 255 characters, of up to four bytes each. The ledger refuses a record that is too long, and what it cannot keep of a
/// machine is forgotten at the next start.
const TEXT_MAX_BYTES: usize = 255 * 4;

/// A text that borrows from the page where it can.
#[derive(Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

impl Text<'_> {
    /// As much of it as any real one has.
    fn kept(&self) -> &str {
        bounded(&self.0, TEXT_MAX_BYTES)
    }
}

/// One server of a `servers/detail` page or of `GET /servers/{id}`.
#[derive(Deserialize)]
pub(crate) struct Server<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    status: Option<Text<'a>>,
    #[serde(borrow, default, rename = "OS-EXT-STS:vm_state")]
    vm_state: Option<Text<'a>>,
    #[serde(borrow, default, rename = "OS-EXT-STS:task_state")]
    task_state: Option<Text<'a>>,
    #[serde(borrow, default, rename = "OS-EXT-AZ:availability_zone")]
    zone: Option<Text<'a>>,
    #[serde(borrow, default)]
    image: Option<Image<'a>>,
    #[serde(borrow, default)]
    tags: Vec<Text<'a>>,
    #[serde(borrow, default)]
    metadata: BTreeMap<Text<'a>, Text<'a>>,
    #[serde(borrow, default)]
    addresses: BTreeMap<Text<'a>, Vec<Address<'a>>>,
    #[serde(borrow, default)]
    config_drive: Option<Flag<'a>>,
    #[serde(default)]
    locked: Option<bool>,
    #[serde(borrow, default)]
    created: Option<Text<'a>>,
    #[serde(borrow, default)]
    fault: Option<ServerFault<'a>>,
}

/// An object, or `""` where the server boots from a volume.
#[derive(Deserialize)]
#[serde(untagged)]
enum Image<'a> {
    Of {
        #[serde(borrow)]
        id: Text<'a>,
    },
    None(serde::de::IgnoredAny),
}

/// `"True"`, `""`, or a real boolean in some releases.
#[derive(Deserialize)]
#[serde(untagged)]
enum Flag<'a> {
    Bool(bool),
    Text(#[serde(borrow)] Text<'a>),
}

#[derive(Deserialize)]
struct Address<'a> {
    #[serde(borrow)]
    addr: Text<'a>,
}

#[derive(Deserialize)]
struct ServerFault<'a> {
    #[serde(default)]
    code: Option<u32>,
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
}

/// What the decoding of servers shares between them.
#[derive(Debug, Default)]
pub(crate) struct ServerTables {
    texts: Texts,
    marks: MarkSets,
}

impl ServerTables {
    pub(crate) fn sweep(&mut self) {
        self.texts.sweep();
        self.marks.sweep();
    }
}

impl Server<'_> {
    /// Turns it into the model's words.
    pub(crate) fn into_instance(self, tables: &mut ServerTables) -> Instance {
        let said =
            |text: &Option<Text<'_>>| text.as_ref().map_or(String::new(), |text| text.0.to_ascii_lowercase());
        let state = state(&said(&self.status), &said(&self.vm_state), &said(&self.task_state));
        let marks: BTreeSet<_> = self
            .tags
            .iter()
            .map(|tag| tables.marks.tag(tag.kept()))
            .collect::<Vec<_>>()
            .into_iter()
            .chain(self.metadata.iter().map(|(key, value)| tables.marks.metadata(key.kept(), value.kept())))
            .collect();
        let addresses: BTreeSet<IpAddr> =
            self.addresses.values().flatten().filter_map(|address| address.addr.0.parse().ok()).collect();
        let texts = &mut tables.texts;
        let fault = self.fault.filter(|_| state == InstanceState::Errored);
        Instance {
            id: instance_id(&self.id.0),
            name: InstanceName::from(self.name.as_ref().map_or("", Text::kept)),
            state,
            task: filled(self.task_state).map(|task| texts.get(task.kept())),
            fault: fault.map(|fault| Fault {
                code: fault.code.unwrap_or(0),
                message: texts.get(fault.message.as_ref().map_or("", Text::kept)),
            }),
            zone: filled(self.zone).map(|zone| ZoneName::new(texts.get(zone.kept()))),
            image: match self.image {
                Some(Image::Of { id }) => Some(ImageId::new(texts.get(id.kept()))),
                _ => None,
            },
            marks: tables.marks.set(marks),
            addresses: addresses.into_iter().collect(),
            config_drive: match self.config_drive {
                Some(Flag::Bool(flag)) => flag,
                Some(Flag::Text(text)) => text.0.eq_ignore_ascii_case("true"),
                None => false,
            },
            locked: self.locked.unwrap_or(false),
            created: filled(self.created).map(|created| Arc::from(created.kept())),
            hostname: self.name.as_ref().and_then(|name| host_name(name.kept())),
            hosting: None,
        }
    }
}

/// Bytes of the longest host name that Nova gives.
const HOST_NAME_MAX: usize = 63;

/// What Nova calls the guest, where that is not the server's name (nova/utils.py, `sanitize_hostname`): cut, in lower case, with
/// a dash for a blank or `_`, and without what no host name has. Later releases write a dash for a dot, too; earlier ones leave
/// it, and then the server's own name is the one to find. A kubelet registers under it: a Ready Node of bare metal that shares
/// nothing else with its server was not known to be its Node, and the machine was rebooted.
fn host_name(name: &str) -> Option<Arc<str>> {
    let latin: String = name.chars().filter(|c| u32::from(*c) < 0x100).take(HOST_NAME_MAX).collect();
    let dashed = latin.chars().map(|c| if matches!(c, ' ' | '_' | '.') { '-' } else { c });
    let kept: String =
        dashed.filter(|c| c.is_alphanumeric() || *c == '-').flat_map(char::to_lowercase).collect();
    let host = kept.trim_matches('-');
    (!host.is_empty() && host != name).then(|| Arc::from(host))
}

/// An instance of which only the id could be read: it is there, and nothing else is known of it.
pub(crate) fn unreadable(id: &str, tables: &mut ServerTables) -> Instance {
    let instance = Instance::unknown(instance_id(id), InstanceName::from(""));
    Instance { marks: tables.marks.set(BTreeSet::new()), ..instance }
}

/// Nova writes "nothing" as null here and as an empty text there.
fn filled(text: Option<Text<'_>>) -> Option<Text<'_>> {
    text.filter(|text| !text.0.is_empty())
}

/// The id in the one spelling that ports and nodes are matched by.
pub(crate) fn instance_id(text: &str) -> InstanceId {
    let text = bounded(text, TEXT_MAX_BYTES);
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        InstanceId::from(text.to_ascii_lowercase().as_str())
    } else {
        InstanceId::from(text)
    }
}

/// Reads Nova's three words, lower case. What is under way goes before what was: a machine that is being rebooted out
/// of an error is rebooting.
fn state(status: &str, vm_state: &str, task_state: &str) -> InstanceState {
    if vm_state == "deleted" || status == "deleted" {
        return InstanceState::Gone;
    }
    if matches!(task_state, "deleting" | "soft-deleting") {
        return InstanceState::Deleting;
    }
    if task_state.starts_with("reboot") || matches!(status, "reboot" | "hard_reboot") {
        return InstanceState::Rebooting;
    }
    if vm_state == "error" || status == "error" {
        return InstanceState::Errored;
    }
    match status {
        "active" => InstanceState::Active,
        "build" => InstanceState::Building,
        // What a person paused, suspended or shelved is no machine that stopped: `os-start` is refused there (nova:
        // api-guide, server_concepts, "os-start: STOPPED"), and only who did it can undo it.
        "shutoff" => InstanceState::Stopped,
        "soft_deleted" if task_state.is_empty() => InstanceState::Gone,
        _ => InstanceState::Other,
    }
}

/// One entry of `os-instance-actions`.
#[derive(Deserialize)]
pub(crate) struct Action<'a> {
    #[serde(borrow)]
    action: Text<'a>,
    #[serde(borrow)]
    request_id: Text<'a>,
    #[serde(borrow, default)]
    start_time: Option<Text<'a>>,
    #[serde(borrow, default)]
    user_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
}

impl From<Action<'_>> for InstanceAction {
    fn from(action: Action<'_>) -> Self {
        let text = |text: Option<Text<'_>>| filled(text).map(|text| Arc::from(text.kept()));
        Self {
            request: RequestId::from(action.request_id.kept()),
            action: Arc::from(action.action.kept()),
            started: text(action.start_time).map_or_else(|| Arc::from(""), in_utc),
            user: text(action.user_id),
            message: text(action.message),
        }
    }
}

/// Nova writes the time of an action in UTC and does not say so: `2026-11-21T10:00:00.000000`.
fn in_utc(text: Arc<str>) -> Arc<str> {
    if text.ends_with('Z') { text } else { Arc::from(format!("{text}Z")) }
}

#[cfg(test)]
mod tests {
    use reveille_core::model::instance::Mark;

    use super::*;

    #[test]
    fn only_what_plainly_leaves_is_leaving() {
        use InstanceState::{Active, Building, Deleting, Errored, Gone, Other, Rebooting, Stopped};
        let cases = [
            ("ACTIVE", "active", "", Active),
            ("ACTIVE", "active", "image_uploading", Active),
            ("ACTIVE", "active", "image_pending_upload", Active),
            ("ACTIVE", "active", "a_task_of_next_year", Active),
            ("BUILD", "building", "spawning", Building),
            ("BUILD", "building", "", Building),
            ("REBOOT", "active", "rebooting", Rebooting),
            ("REBOOT", "active", "reboot_started", Rebooting),
            ("HARD_REBOOT", "active", "rebooting_hard", Rebooting),
            ("HARD_REBOOT", "error", "reboot_pending_hard", Rebooting),
            ("ERROR", "error", "", Errored),
            ("REBUILD", "error", "rebuilding", Errored),
            ("REBUILD", "active", "rebuilding", Other),
            ("SHUTOFF", "stopped", "", Stopped),
            ("SHUTOFF", "stopped", "powering-on", Stopped),
            ("PAUSED", "paused", "", Other),
            ("SUSPENDED", "suspended", "", Other),
            ("SHELVED", "shelved", "", Other),
            ("SHELVED_OFFLOADED", "shelved_offloaded", "", Other),
            ("VERIFY_RESIZE", "resized", "", Other),
            ("MIGRATING", "active", "migrating", Other),
            ("RESCUE", "rescued", "", Other),
            ("PASSWORD", "active", "updating_password", Other),
            ("UNKNOWN", "", "", Other),
            ("SOMETHING_NEW", "novel", "novel", Other),
            ("ACTIVE", "active", "deleting", Deleting),
            ("ERROR", "error", "deleting", Deleting),
            ("ACTIVE", "active", "soft-deleting", Deleting),
            ("SOFT_DELETED", "soft-delete", "deleting", Deleting),
            ("SOFT_DELETED", "soft-delete", "", Gone),
            ("SOFT_DELETED", "soft-delete", "restoring", Other),
            ("DELETED", "deleted", "", Gone),
            ("DELETED", "deleted", "deleting", Gone),
        ];
        for (status, vm, task, expected) in cases {
            let got = state(&status.to_ascii_lowercase(), vm, task);
            assert_eq!(got, expected, "{status} {vm} {task}");
        }
    }

    #[test]
    fn guest_is_called_as_nova_sanitizes_the_server_name() {
        for (name, host) in [
            ("node-1", None),
            ("", None),
            ("Node-New-1", Some("node-new-1")),
            ("node_new 1", Some("node-new-1")),
            ("web.1.prod", Some("web-1-prod")),
            ("-knoten (süd)-", Some("knoten-süd")),
            ("北京", None),
        ] {
            assert_eq!(host_name(name).as_deref(), host, "{name}");
        }
        let long = "a".repeat(70);
        assert_eq!(host_name(&long).map(|host| host.len()), Some(HOST_NAME_MAX));
    }

    #[test]
    fn a_server_keeps_what_matters_and_shares_what_repeats() {
        let json = r#"{"id": "0A1B", "name": "w-1", "status": "ERROR", "OS-EXT-STS:vm_state": "error",
            "OS-EXT-STS:task_state": null, "OS-EXT-AZ:availability_zone": "nova-a", "image": {"id": "img", "links": []},
            "tags": ["k8s-cluster=prod"], "metadata": {"k8s-pool": "w\u00f6rkers"}, "config_drive": "True",
            "locked": true, "created": "2026-11-21T10:00:00Z", "flavor": {"vcpus": 2},
            "addresses": {"net": [{"addr": "10.0.0.5", "version": 4}, {"addr": "fd00::5", "version": 6}]},
            "fault": {"code": 500, "message": "No valid host was found.", "created": "x"}}"#;
        let mut tables = ServerTables::default();
        let decode = |tables: &mut ServerTables| {
            serde_json::from_str::<Server<'_>>(json).unwrap().into_instance(tables)
        };
        let (one, two) = (decode(&mut tables), decode(&mut tables));
        assert_eq!(one.id, InstanceId::from("0a1b"));
        assert_eq!(one.state, InstanceState::Errored);
        assert_eq!(one.fault.as_ref().unwrap().message.as_ref(), "No valid host was found.");
        assert!(one.marks.contains(&Mark::Tag("k8s-cluster=prod".into())));
        assert!(one.marks.contains(&Mark::Metadata("k8s-pool".into(), "wörkers".into())));
        assert_eq!(one.addresses.len(), 2);
        assert!(one.config_drive && one.locked);
        assert!(Arc::ptr_eq(&one.marks, &two.marks));
        assert!(Arc::ptr_eq(&one.zone.unwrap().shared(), &two.zone.unwrap().shared()));
    }

    #[test]
    fn a_down_cells_partial_record_is_alive_and_unknown() {
        let json = r#"{"id": "a", "status": "UNKNOWN", "tenant_id": "p", "created": "2026-11-21T10:00:00Z", "links": []}"#;
        let mut tables = ServerTables::default();
        let instance = serde_json::from_str::<Server<'_>>(json).unwrap().into_instance(&mut tables);
        assert_eq!(instance.state, InstanceState::Other);
        assert!(instance.marks.is_empty());
    }

    #[test]
    fn volume_boot_and_other_spellings_decode() {
        let json = r#"{"id": "a", "image": "", "config_drive": "", "OS-EXT-AZ:availability_zone": "",
            "addresses": {"n": [{"addr": "not an address"}]}, "fault": {"message": "old fault"}, "status": "ACTIVE"}"#;
        let mut tables = ServerTables::default();
        let instance = serde_json::from_str::<Server<'_>>(json).unwrap().into_instance(&mut tables);
        assert_eq!((instance.image, instance.zone, instance.config_drive), (None, None, false));
        assert_eq!(instance.fault, None);
    }
}
