//! The names of machines: one index over every kind of id and over the names of Nodes.
//!
//! ```text
//!  instance id, machine id, system UUID, node name ─▶ normal form ─▶ (machine, which of its names)
//! ```
//!
//! The index finds a name without its kind, because its readers do not tell kinds apart. OpenStack's instance id is the
//! system UUID of the guest; the engine links a report by any id that fits; an operator types what the screen shows.
//! Spelling does not count either ([`normal`]). A ledger of an earlier version may hold two machines with one name: that
//! name then finds neither. Names of Nodes conflict only within their roster; the index knows the roster of a machine. A
//! name that is another machine's id belongs to that machine in every roster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_wire::agent::Identity;
use reveille_wire::agent::identity::{Part, normal};
use reveille_wire::agent::text::Word;

use super::ids::MachineId;
use super::machine::Machine;

/// The longest name of a Node, and of one label in it (RFC 1123).
const NODE_NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// The index from names to machines.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Claims(BTreeMap<Arc<str>, BTreeSet<(MachineId, Part)>>);

impl Claims {
    /// The machines that have this name, and which of their names it is.
    pub(super) fn of(&self, word: &str) -> impl Iterator<Item = &(MachineId, Part)> {
        self.0.get(normal(word).as_str()).into_iter().flatten()
    }

    pub(super) fn add(&mut self, machine: &Machine) {
        for (part, word) in names(&machine.identity, &machine.node_name) {
            self.0.entry(normal(word).into()).or_default().insert((machine.id.clone(), part));
        }
    }

    pub(super) fn take_out(&mut self, machine: &Machine) {
        for (part, word) in names(&machine.identity, &machine.node_name) {
            let key = normal(word);
            let Some(owners) = self.0.get_mut(key.as_str()) else { continue };
            owners.remove(&(machine.id.clone(), part));
            if owners.is_empty() {
                self.0.remove(key.as_str());
            }
        }
    }
}

/// All names of a machine.
pub(super) fn names<'n>(
    identity: &'n Identity,
    node_name: &'n Word,
) -> impl Iterator<Item = (Part, &'n str)> {
    identity.lasting().chain([(Part::NodeName, node_name.as_str())])
}

/// The name that the kubelet gives the Node: in lower case, without surrounding spaces. None where no Node can have the
/// name: Node names are RFC 1123 subdomains.
pub fn node_name(wished: &Word) -> Option<Word> {
    let name = wished.trim().to_ascii_lowercase();
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let fits = bytes.len() <= LABEL_BYTES_MAX && is_end(bytes.first()) && is_end(bytes.last());
        fits && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    let is_name = name.len() <= NODE_NAME_BYTES_MAX && name.split('.').all(is_label);
    is_name.then(|| Word::cut(&name))
}

/// True when the two names can be of one Node: they are equal, or one is the first label of the other, as a host name is
/// of an FQDN.
pub fn is_one_name(one: &str, other: &str) -> bool {
    let (one, other) = (normal(one), normal(other));
    let is_label_of = |label: &str, name: &str| name.split_once('.').is_some_and(|(first, _)| first == label);
    one == other || is_label_of(&one, &other) || is_label_of(&other, &one)
}

/// A machine with these names is the one that the invitation names.
pub(super) fn is_called(identity: &Identity, node_name: &Word, bound: &str) -> bool {
    names(identity, node_name).any(|(part, word)| is_meant_as(bound, part) && normal(word) == normal(bound))
}

/// The word in an invitation can be this kind of name. The invitation does not say the kind, and a machine chooses what
/// its ids say. So an id counts only where the word has the form of an id. Otherwise an invitation for the Node `w-1`
/// would admit any machine that has `w-1` in its `/etc/machine-id`.
fn is_meant_as(bound: &str, part: Part) -> bool {
    match part {
        Part::MachineId | Part::SystemUuid => is_uuid(bound),
        Part::InstanceId => is_uuid(bound) || is_of_cloud(bound) || node_name(&Word::cut(bound)).is_none(),
        Part::BootId | Part::Key | Part::NodeName => true,
    }
}

/// The form of an instance id that is not a UUID: `i-` and a word, or only digits.
fn is_of_cloud(word: &str) -> bool {
    let word = normal(word);
    let number = word.strip_prefix("i-").unwrap_or(&word);
    let is_word = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_word && (word.len() > number.len() || number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The instance id at the beginning of a Node's name, if there is one: a UUID, or an id in the form of EC2. Readers of
/// such a name take the Node for that instance, so no other machine may have the name.
pub(super) fn instance_in(node_name: &str) -> Option<&str> {
    let label = node_name.split('.').next()?;
    (is_uuid(label) || is_of_ec2(label)).then_some(label)
}

/// The invitation names an instance, and this is another one. A UUID without dashes is a machine id.
pub(super) fn is_for_another(bound: &str, instance: &str) -> bool {
    let is_one_kind =
        bound.contains('-') && is_uuid(bound) && is_uuid(instance) || is_of_ec2(bound) && is_of_ec2(instance);
    is_one_kind && normal(bound) != normal(instance)
}

fn is_uuid(word: &str) -> bool {
    normal(word).len() == 32 && is_hex(&normal(word))
}

fn is_hex(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_of_ec2(word: &str) -> bool {
    let word = normal(word);
    word.strip_prefix("i-").is_some_and(|id| [8, 17].contains(&id.len()) && is_hex(id))
}

/// Machine id and system UUID have the form that systemd (machine-id(5)) and firmware give them: 128 bits in hex digits.
/// So no machine can claim another machine's name as such an id, not even the name of a machine that comes later. The
/// form of an instance id depends on the cloud.
pub(super) fn have_forms(identity: &Identity) -> bool {
    identity.lasting().all(|(part, word)| part == Part::InstanceId || is_uuid(word))
}

/// Each word of the identity consists of printable ASCII. An operator cannot compare a name with characters that are
/// invisible or look like others.
pub(super) fn shows(identity: &Identity) -> bool {
    let words = [&identity.instance_id, &identity.machine_id, &identity.system_uuid];
    let shows = |word: &Word| word.trim().bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    words.into_iter().flatten().all(shows) && shows(&identity.boot_id)
}
