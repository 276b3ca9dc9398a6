//! Who is who: machine ids, UUIDs and host names in a text, and the machine that the text names at that place.
//!
//! ```text
//!  head of a section, `Name:`, first word of the row ─▶ owner ┐
//!  32 digits or a UUID in a short line ──────────────▶ id ────┴▶ (naming, id) ─▶ owners
//!  one word right below the machine that was asked ──▶ host name ─▶ owners
//! ```
//!
//! Two owners of one id are two machines only where both are named in one way, and where the text speaks of machine ids at all.

use std::collections::{BTreeMap, BTreeSet};

use super::KEPT_MAX;

/// How a text names the machine that an id belongs to. One machine has a Node's name, an alias in an inventory and a host
/// name: only names of one kind tell two machines apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Naming {
    /// `Name: w-1` above it.
    Field,
    /// The head of a section or the prompt of a shell above it.
    Section,
    /// The first word of its row.
    Row,
}

/// An id in lower case, and how its owners are named.
pub(crate) type MachineId = (Naming, String);

/// A line of the source: its number and what it says.
type Line = (u64, String);

/// What a source says of machines and their ids.
#[derive(Debug, Default)]
pub(super) struct Identity {
    name: Option<(Naming, String)>,
    speaks_of_ids: bool,
    ids: BTreeMap<MachineId, BTreeSet<String>>,
    /// Where each id was first read.
    lines: BTreeMap<MachineId, Line>,
    same: Option<Line>,
    speaks_of_hosts: bool,
    /// The line before named a machine: an answer may follow.
    asked: bool,
    /// Machines by the host name that each answered.
    hosts: BTreeMap<String, BTreeSet<String>>,
    same_host: Option<Line>,
}

impl Identity {
    /// Reads a table's header.
    pub(super) fn head(&mut self, words: &[&str]) {
        self.speaks_of_ids |= words.iter().any(|word| {
            let word = word.to_ascii_lowercase();
            word.contains("uuid") || word.contains("machine-id") || word.contains("machineid")
        });
    }

    /// Reads a line.
    pub(super) fn read(&mut self, number: u64, line: &str, words: &[&str]) {
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return };
        self.host(number, line, words);
        if let Some(host) = section(words) {
            self.name = Some((Naming::Section, host.to_owned()));
            self.asked = true;
        }
        let key = line.trim_start().trim_start_matches('"');
        let names = |name: &str| key.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if first.eq_ignore_ascii_case("name:") || names("name\":") || names("hostname:") {
            self.name = Some((Naming::Field, bare(last).to_owned()));
        }
        let of_id = ["machine id", "machineid", "machine-id", "system uuid", "systemuuid", "product_uuid"];
        let named = of_id.iter().any(|name| names(name));
        let speaks = ["machine-id", "product_uuid", "system-uuid"];
        self.speaks_of_ids |= named || speaks.iter().any(|name| line.contains(name));
        self.id(number, line, words, named);
    }

    fn id(&mut self, number: u64, line: &str, words: &[&str], named: bool) {
        const WORDS_MAX: usize = 5;
        if words.len() > WORDS_MAX || self.ids.len() >= KEPT_MAX {
            return;
        }
        let Some(id) = words.iter().map(|word| bare(word)).find(|word| is_id(word)) else { return };
        let who = match words.first() {
            Some(first) if !named && !is_id(first) => {
                Some((Naming::Row, first.trim_end_matches(':').to_owned()))
            }
            _ => self.name.clone(),
        };
        let Some((naming, who)) = who.filter(|(_, who)| !who.is_empty()) else { return };
        let id = (naming, id.to_ascii_lowercase());
        self.lines.entry(id.clone()).or_insert_with(|| (number, line.to_owned()));
        let owners = self.ids.entry(id).or_default();
        owners.insert(who);
        if owners.len() == 2 && self.same.is_none() {
            self.same = Some((number, line.to_owned()));
        }
    }

    /// The answer to `hostname`, right below the machine that was asked.
    fn host(&mut self, number: u64, line: &str, words: &[&str]) {
        self.speaks_of_hosts |= words.contains(&"hostname");
        let asked = std::mem::take(&mut self.asked);
        let (Some((Naming::Section, who)), [answer]) = (&self.name, words) else { return };
        let is_name = answer.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
        if !asked || !is_name || is_id(answer) || self.hosts.len() >= KEPT_MAX {
            return;
        }
        let owners = self.hosts.entry(answer.to_ascii_lowercase()).or_default();
        owners.insert(who.clone());
        if owners.len() == 2 && self.same_host.is_none() {
            self.same_host = Some((number, line.to_owned()));
        }
    }

    /// The line with which a second machine answered with a host name.
    pub(super) fn same_host(&mut self) -> Option<Line> {
        self.same_host.take().filter(|_| self.speaks_of_hosts)
    }

    /// The line with which an id got its second owner.
    pub(super) fn same(&mut self) -> Option<Line> {
        self.same.take().filter(|_| self.speaks_of_ids)
    }

    /// All ids, their owners, and where each was first read.
    pub(super) fn take(&mut self) -> Vec<(MachineId, BTreeSet<String>, Line)> {
        let (ids, mut lines) = (std::mem::take(&mut self.ids), std::mem::take(&mut self.lines));
        let with_line = |(id, owners)| {
            let line = lines.remove(&id)?;
            Some((id, owners, line))
        };
        if self.speaks_of_ids { ids.into_iter().filter_map(with_line).collect() } else { Vec::new() }
    }
}

/// A value without quotes and commas.
pub(super) fn bare(word: &str) -> &str {
    word.trim_matches(['"', ',', '\''])
}

/// The machine that the lines below are about: Ansible's head of an answer, `tail`'s of a file, a shell's prompt, a call of
/// `ssh`.
fn section<'w>(words: &[&'w str]) -> Option<&'w str> {
    let host = |word: &'w str| {
        let after_user = word.rsplit('@').next().unwrap_or(word);
        let end = after_user.find([':', '#', '$', '~', ']']).unwrap_or(after_user.len());
        Some(&after_user[..end]).filter(|host| !host.is_empty())
    };
    match words {
        [name, "|", "SUCCESS" | "CHANGED" | "FAILED" | "FAILED!", ..] | ["==>", name, "<==", ..] => {
            Some(name)
        }
        [prompt, ..] if prompt.contains('@') && prompt.ends_with(['$', '#']) => host(prompt),
        [prompt, path, ..] if prompt.contains('@') && (path.ends_with("]$") || path.ends_with("]#")) => {
            host(prompt)
        }
        _ => {
            let at = words.iter().position(|word| *word == "ssh")?;
            let named = words[at + 1..].iter().find(|word| !word.starts_with('-'))?;
            host(named)
        }
    }
}

pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_id(text: &str) -> bool {
    is_uuid(text) || (text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
