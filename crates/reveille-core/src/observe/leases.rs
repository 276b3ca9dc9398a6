//! When the controller last saw each lease change, on its own clock, and how many leases are silent.
//!
//! ```text
//!  list ─▶ same names as before? ── yes ─▶ compare two rows of numbers
//!                                └─ no ──▶ walk both in order of name; a new lease counts as just changed
//! ```
//!
//! Every list brings a renewal of every Node, so a list of a quiet fleet must cost little: three rows side by side in order
//! of name, and no lookup in any map. The names are those of the list itself, shared with the adapter that sent it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::id::NodeName;
use crate::model::lease::{Leases, Renewal};
use crate::model::time::{Span, Time};

/// The leases. Row `n` of each vector belongs to name `n`; names are in order, each once.
#[derive(Clone, Debug)]
pub(super) struct LeaseBook {
    names: Arc<[NodeName]>,
    renewals: Vec<Renewal>,
    changed_at: Vec<Time>,
    /// When the last list came.
    listed_at: Time,
    /// Whose node is there; empty when nodes or names have changed since it was worked out.
    has_node: Vec<bool>,
    /// Nodes whose lease was silent at the last list, and nodes that had one.
    silence: (u32, u32),
}

impl Default for LeaseBook {
    fn default() -> Self {
        let none: [NodeName; 0] = [];
        Self {
            names: Arc::from(none),
            renewals: Vec::new(),
            changed_at: Vec::new(),
            listed_at: Time::default(),
            has_node: Vec::new(),
            silence: (0, 0),
        }
    }
}

impl LeaseBook {
    /// Takes in a complete list. `has_nodes` says of names in order whether there is such a node.
    pub(super) fn take(
        &mut self,
        now: Time,
        silent_after: Span,
        list: Leases,
        has_nodes: impl FnOnce(&[NodeName]) -> Vec<bool>,
    ) {
        self.listed_at = now;
        let list = if Arc::ptr_eq(&self.names, list.names()) { list } else { in_order(list) };
        if self.names == *list.names() {
            self.names = list.names().clone();
            for ((known, changed_at), renewal) in
                self.renewals.iter_mut().zip(&mut self.changed_at).zip(list.renewals())
            {
                if known != renewal {
                    (*known, *changed_at) = (*renewal, now);
                }
            }
        } else {
            self.merge(now, &list);
        }
        if self.has_node.len() != self.names.len() {
            self.has_node = has_nodes(&self.names);
        }
        let silent = |at: &Time| now.since(*at) > silent_after;
        let leases = self.changed_at.iter().zip(&self.has_node).filter(|(_, has_node)| **has_node);
        self.silence = leases.fold((0, 0), |(all, count), (at, _)| (all + u32::from(silent(at)), count + 1));
    }

    /// Others have a lease now. Who had the same one keeps its time.
    fn merge(&mut self, now: Time, list: &Leases) {
        let mut known = self.names.iter().zip(&self.renewals).zip(&self.changed_at).peekable();
        let changed_at = list.iter().map(|(name, renewal)| {
            while known.next_if(|((known, _), _)| *known < name).is_some() {}
            match known.next_if(|((known, _), _)| *known == name) {
                Some(((_, same), at)) if *same == renewal => *at,
                _ => now,
            }
        });
        self.changed_at = changed_at.collect();
        self.names = list.names().clone();
        self.renewals = list.renewals().to_vec();
        self.has_node = Vec::new();
    }

    /// Nodes came or went.
    pub(super) fn nodes_changed(&mut self) {
        self.has_node.clear();
    }

    /// When the lease of this node was seen to change.
    fn changed_at(&self, name: &NodeName) -> Option<Time> {
        let at = self.names.binary_search(name).ok()?;
        self.changed_at.get(at).copied()
    }

    /// The lease of this node, as it was listed last.
    pub(super) fn renewal(&self, name: &NodeName) -> Option<Renewal> {
        let at = self.names.binary_search(name).ok()?;
        self.renewals.get(at).copied()
    }

    /// The leases whose name is this one, or has it as its first label, or is the first label of it.
    pub(super) fn called<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a NodeName> {
        let prefix = format!("{name}.");
        let from = self.names.partition_point(|known| known.as_str() < prefix.as_str());
        let longer = self.names[from..].iter().take_while(move |known| known.as_str().starts_with(&prefix));
        let label = name.split_once('.').map(|(label, _)| NodeName::from(label));
        let short = [Some(NodeName::from(name)), label].into_iter().flatten();
        let exact = short.filter_map(|name| self.names.binary_search(&name).ok().map(|at| &self.names[at]));
        exact.collect::<Vec<_>>().into_iter().chain(longer)
    }

    /// For how long the lists have shown this lease unchanged. While no list comes, the controller cannot tell that any
    /// Node is silent.
    pub(super) fn age(&self, name: &NodeName) -> Option<Span> {
        self.changed_at(name).map(|at| self.listed_at.since(at))
    }

    /// How long ago the last list was read.
    pub(super) fn listed(&self, now: Time) -> Span {
        now.since(self.listed_at)
    }

    /// The clock went back: nothing was seen later than now.
    pub(super) fn go_back_to(&mut self, now: Time) {
        for at in &mut self.changed_at {
            *at = (*at).min(now);
        }
        self.listed_at = self.listed_at.min(now);
    }

    /// Whether this list lacks more leases of nodes that are there than `may_lack` allows of so many: as an empty list of
    /// machines, an empty one of leases says nothing.
    pub(super) fn lacks_too_many(
        &self,
        list: &Leases,
        has_nodes: impl FnOnce(&[NodeName]) -> Vec<bool>,
        may_lack: impl FnOnce(usize) -> usize,
    ) -> bool {
        if self.names == *list.names() {
            return false;
        }
        let listed: BTreeSet<&NodeName> = list.names().iter().collect();
        let has_nodes = has_nodes(&self.names);
        let known = self.names.iter().zip(has_nodes).filter(|(_, has_node)| *has_node);
        let (known, lacking) = known.fold((0, 0), |(all, lacking), (name, _)| {
            (all + 1, lacking + usize::from(!listed.contains(name)))
        });
        lacking > may_lack(known)
    }

    /// How many nodes had a silent lease at the last list, of how many that had one.
    pub(super) const fn silence(&self) -> (u32, u32) {
        self.silence
    }
}

/// As servers list them, by name, each once. Any other list is put in order; of a name that is there twice the first counts.
fn in_order(list: Leases) -> Leases {
    if list.names().is_sorted_by(|a, b| a < b) {
        return list;
    }
    let mut leases: Vec<(NodeName, Renewal)> = list.iter().map(|(name, at)| (name.clone(), at)).collect();
    leases.sort_by(|(a, _), (b, _)| a.cmp(b));
    leases.dedup_by(|(later, _), (first, _)| later == first);
    leases.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENT_AFTER: Span = Span::from_s(40);

    fn list(text: &str) -> Leases {
        text.split_whitespace().map(|word| (NodeName::from(&word[..1]), Renewal::of(&word[1..]))).collect()
    }

    /// Lists of `name renewal`, ten seconds apart; nodes a, b and c are there.
    fn book(lists: &[&str]) -> LeaseBook {
        let mut book = LeaseBook::default();
        for (at, text) in (0..).zip(lists) {
            book.take(Time::from_ms(at * 10_000), SILENT_AFTER, list(text), |names| {
                names.iter().map(|name| "abc".contains(name.as_str())).collect()
            });
        }
        book
    }

    fn seconds(book: &LeaseBook, name: &str) -> Option<i64> {
        book.changed_at(&NodeName::from(name)).map(|at| at.ms / 1000)
    }

    #[test]
    fn a_lease_changes_when_its_mark_does_or_when_it_is_seen_for_the_first_time() {
        let table: [(&[&str], &str, Option<i64>); 8] = [
            (&["a1 b1"], "a", Some(0)),
            (&["a1 b1", "a1 b2"], "a", Some(0)),
            (&["a1 b1", "a1 b2"], "b", Some(10)),
            (&["a1 b1", "b1"], "a", None),
            (&["b1", "a1 b1"], "b", Some(0)),
            (&["b1", "a1 b1 c1"], "c", Some(10)),
            (&["a1 b1", "b1", "a1 b1"], "a", Some(20)),
            (&["b1 a1 b2", "b1 a1"], "b", Some(0)),
        ];
        for (lists, name, expected) in table {
            assert_eq!(seconds(&book(lists), name), expected, "{lists:?} {name}");
        }
    }

    #[test]
    fn silence_is_what_lists_have_shown_and_no_time_without_a_list() {
        let shown = book(&["a1 b1", "a1 b2", "a1 b3"]);
        let age = |name: &str| shown.age(&NodeName::from(name)).map(|age| age.ms / 1000);
        assert_eq!((age("a"), age("b"), age("c")), (Some(20), Some(0), None));
    }

    #[test]
    fn only_leases_of_nodes_that_are_there_count_as_silent() {
        let all_but_a: Vec<String> = (0..6).map(|round| format!("a1 b{round} c1 z1")).collect();
        let lists: Vec<&str> = all_but_a.iter().map(String::as_str).collect();
        assert_eq!(book(&lists[..5]).silence(), (0, 3));
        assert_eq!(book(&lists).silence(), (2, 3));
    }
}
