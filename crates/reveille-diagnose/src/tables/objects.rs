//! Objects of the API as `kubectl get -o yaml`, `-o json` and `kubectl describe node` print them: what each Node, machine record
//! or claim says of itself.
//!
//! ```text
//!  line ─▶ indent, key, value ─▶ kind and metadata of one indent: an object begins
//!                             ─▶ its conditions, phase, provider ID, Node ─▶ it ends: Told
//! ```
//!
//! Keys of an object are sorted in both forms, so that a condition's `status` stands before its `type`. Line by line, in bounded
//! memory: no object is kept, and nothing is parsed as a whole.

use super::Fact;
use super::identity::bare;
use super::records::Record;

/// What an object says, and the line that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// A Node of that name is Ready, or is not.
    Node { name: String, ready: bool, line: u64, text: String },
    /// A machine record or claim.
    Machine { fact: Fact, line: u64, text: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Node,
    Machine,
}

/// The object that is being read.
#[derive(Clone, Debug)]
struct Object {
    kind: Kind,
    /// How far its own keys stand to the right.
    root: usize,
    section: String,
    /// How far the keys of that section stand to the right.
    child: Option<usize>,
    name: Option<(u64, String, String)>,
    phase: Option<(u64, String, String)>,
    ready: Option<(u64, String, String)>,
    launched: bool,
    has_node: bool,
}

/// Reads the objects of one source.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    kind: Option<(usize, String)>,
    object: Option<Object>,
    /// `status` of the condition that is being read.
    status: Option<(u64, String, String)>,
    /// The Node that a description is about, and whether its conditions follow.
    described: Option<String>,
}

impl Objects {
    /// An object is being read: every line of it counts.
    pub(super) const fn is_open(&self) -> bool {
        self.object.is_some() || self.described.is_some()
    }

    /// Reads a line. What an object said that is over by then.
    pub(super) fn read(&mut self, number: u64, line: &str) -> Option<Told> {
        if line.trim() == "---" {
            return self.end();
        }
        let described = self.describe(number, line);
        if described.is_some() {
            return described;
        }
        let (indent, key, value, begins) = entry(line)?;
        if begins {
            self.status = None;
        }
        if key == "kind" {
            self.kind = Some((indent, value.to_owned()));
        }
        if key == "metadata" {
            let kind = self.kind.as_ref().filter(|(at, _)| *at == indent).map(|(_, kind)| kind.as_str());
            let kind = match kind {
                Some("Node") => Some(Kind::Node),
                Some("Machine" | "NodeClaim") => Some(Kind::Machine),
                // A list, or the end of an object of another kind.
                Some(_) => None,
                None => return self.field(number, line, indent, key, value),
            };
            let told = self.end();
            self.object = kind.map(|kind| Object {
                kind,
                root: indent,
                section: key.to_owned(),
                child: None,
                name: None,
                phase: None,
                ready: None,
                launched: false,
                has_node: false,
            });
            return told;
        }
        self.field(number, line, indent, key, value)
    }

    fn field(&mut self, number: u64, line: &str, indent: usize, key: &str, value: &str) -> Option<Told> {
        let object = self.object.as_mut()?;
        if indent < object.root {
            return self.end();
        }
        if indent == object.root {
            (object.section, object.child) = (key.to_owned(), None);
            return None;
        }
        let child = *object.child.get_or_insert(indent);
        let shown = || Some((number, value.to_owned(), line.trim().to_owned()));
        match (object.section.as_str(), key) {
            ("metadata", "name") if indent == child && object.name.is_none() => object.name = shown(),
            ("spec" | "status", "providerID") if !value.is_empty() => object.launched = true,
            ("status", "nodeName" | "nodeRef") => object.has_node = true,
            ("status", "phase") if object.phase.is_none() => object.phase = shown(),
            ("status", "status") if indent > child => self.status = shown(),
            ("status", "type") if indent > child && value == "Ready" => object.ready = self.status.take(),
            _ => {}
        }
        None
    }

    /// `Name:` of a description, and the row of its condition Ready.
    fn describe(&mut self, number: u64, line: &str) -> Option<Told> {
        let words: Vec<&str> = line.split_whitespace().take(3).collect();
        match words.as_slice() {
            ["Name:", name] if line.starts_with("Name:") => self.described = Some((*name).to_owned()),
            ["Events:", ..] => self.described = None,
            ["Ready", status @ ("True" | "False" | "Unknown"), ..] => {
                let name = self.described.take()?;
                let text = line.trim().to_owned();
                return Some(Told::Node { name, ready: *status == "True", line: number, text });
            }
            _ => {}
        }
        None
    }

    /// The source, or the object, is over.
    pub(super) fn end(&mut self) -> Option<Told> {
        self.status = None;
        let Object { kind, name, phase, ready, launched, has_node, .. } = self.object.take()?;
        let (named_at, name, name_text) = name?;
        match kind {
            Kind::Node => {
                let (line, status, text) = ready?;
                Some(Told::Node { name, ready: status == "True", line, text })
            }
            Kind::Machine => {
                let is_ready = ready.as_ref().map(|(_, status, _)| status == "True");
                let record = Record {
                    phase: phase.as_ref().map(|(_, phase, _)| phase.as_str()),
                    // A record with a phase of its own says more by that.
                    ready: is_ready.filter(|_| phase.is_none()),
                    launched,
                    has_node,
                    age_s: None,
                };
                let fact = record.fact()?;
                let (line, text) =
                    phase.or(ready).map_or((named_at, name_text), |(line, _, text)| (line, text));
                Some(Told::Machine { fact, line, text: format!("{name}: {text}") })
            }
        }
    }
}

/// Indent, key and value of a line of YAML or of indented JSON, and whether an item begins with it.
fn entry(line: &str) -> Option<(usize, &str, &str, bool)> {
    let mut text = line.trim_start();
    let mut indent = line.len() - text.len();
    let mut begins = text.starts_with('{');
    while let Some(rest) = text.strip_prefix("- ") {
        (text, indent, begins) = (rest.trim_start(), indent + 2, true);
    }
    if begins && text.starts_with('{') {
        return Some((indent, "", "", true));
    }
    let (key, value) = text.split_once(':')?;
    let key = bare(key.trim());
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric());
    is_key.then(|| (indent, key, bare(value.trim()), begins))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<Told> {
        let mut objects = Objects::default();
        let mut told: Vec<Told> =
            (1..).zip(text.lines()).filter_map(|(number, line)| objects.read(number, line)).collect();
        told.extend(objects.end());
        told
    }

    fn node(name: &str, ready: bool, line: u64, text: &str) -> Told {
        Told::Node { name: name.to_owned(), ready, line, text: text.to_owned() }
    }

    #[test]
    fn nodes_of_yaml_json_and_description_tell_if_they_are_ready() {
        let yaml = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: w-1\n    ownerReferences:\n    - kind: NodeClaim\n      name: c-1\n  status:\n    conditions:\n    - status: \"False\"\n      type: MemoryPressure\n    - reason: KubeletReady\n      status: \"True\"\n      type: Ready\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: w-2\n  status:\n    conditions:\n    - status: Unknown\n      type: Ready\nkind: List\nmetadata:\n  resourceVersion: \"\"\n";
        assert_eq!(
            told(yaml),
            [node("w-1", true, 15, "status: \"True\""), node("w-2", false, 23, "- status: Unknown")]
        );
        let json = "{\n    \"kind\": \"Node\",\n    \"metadata\": {\n        \"labels\": {\n            \"name\": \"x\"\n        },\n        \"name\": \"w-3\"\n    },\n    \"status\": {\n        \"conditions\": [\n            {\n                \"status\": \"Unknown\",\n                \"type\": \"Ready\"\n            }\n        ]\n    }\n}\n";
        assert_eq!(told(json), [node("w-3", false, 12, "\"status\": \"Unknown\",")]);
        let described = "Name:               w-4\nConditions:\n  Type   Status   LastHeartbeatTime\n  Ready  Unknown  Mon, 30 Nov 2026\n";
        assert_eq!(told(described), [node("w-4", false, 4, "Ready  Unknown  Mon, 30 Nov 2026")]);
        assert_eq!(told("Ready  Unknown  a log\nkind of: Node\nmetadata: x\n"), []);
    }

    #[test]
    fn records_tell_where_their_machines_stopped() {
        let machine = |phase: &str, rest: &str| {
            format!(
                "kind: Machine\nmetadata:\n  name: m-1\nspec:\n  clusterName: prod\n{rest}status:\n  phase: {phase}\n"
            )
        };
        let fact = |text: &str| match told(text).as_slice() {
            [Told::Machine { fact, .. }] => Some(*fact),
            _ => None,
        };
        assert_eq!(fact(&machine("Running", "")), Some(Fact::AllMachinesWell));
        assert_eq!(fact(&machine("Provisioning", "")), Some(Fact::MachineNotMade));
        assert_eq!(fact(&machine("Provisioned", "  providerID: aws:///i-1\n")), Some(Fact::MachineNotJoined));
        assert_eq!(fact(&machine("Deleting", "")), None);
        let claim = "kind: NodeClaim\nmetadata:\n  name: c-1\nstatus:\n  conditions:\n  - status: \"True\"\n    type: Launched\n  - status: Unknown\n    type: Ready\n  providerID: aws:///i-2\n";
        assert_eq!(fact(claim), Some(Fact::MachineNotJoined));
    }
}
