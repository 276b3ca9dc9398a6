//! When the controller last saw each lease change, on its own clock, how many leases are silent, and which list can be true.
//!
//! ```text
//!  list ─▶ same names as before? ── yes ─▶ compare two rows of numbers
//!                                └─ no ──▶ walk both in order of name; a new lease counts as just changed
//!                                             └─ known, and lacked ─▶ as old as when it was listed last, until LEASES_LAST
//! ```
//!
//! Every list brings a renewal of every Node, so a list of a quiet fleet must cost little: three rows side by side in order
//! of name, and no lookup in any map. The names are those of the list itself, shared with the adapter that sent it.
//!
//! That a list lacks a lease is no renewal, no silence and no sign of life. Lists from a cache that is not filled lacked one, or
//! lacked it every second time: the machine of a lease that had just been renewed counted as dead, and that of a silent one as
//! back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::host_name;
use crate::model::id::NodeName;
use crate::model::jump::Jump;
use crate::model::lease::{Leases, Renewal, Shown};
use crate::model::time::{Span, Time};

/// What lists of leases said so long ago says nothing of now. As long as a machine that its cloud denies counts as away.
pub(super) const LEASES_LAST: Span = Span::from_min(30);

/// Kubernetes collects the lease of a Node that was deleted within seconds to minutes, although its kubelet renews it until then:
/// that says nothing against a repair. One that is renewed for longer outlives its Node.
const RESUMES_LAST: Span = Span::from_min(30);
const COLLECTED_WITHIN: Span = Span::from_min(10);

/// Lists come each ten seconds. A doubt goes on while they come: one list before the API server went away for half an hour,
/// and one when it was back, counted as half an hour of lists without leases.
const DOUBT_GOES_ON: Span = Span::from_min(2);

/// The leases. Row `n` of each vector belongs to name `n`; names are in order, each once.
#[derive(Clone, Debug)]
pub(super) struct LeaseBook {
    names: Arc<[NodeName]>,
    shown: Vec<Shown>,
    changed_at: Vec<Time>,
    /// When the last list came.
    listed_at: Time,
    /// Whose node is there; empty when nodes or names have changed since it was worked out.
    has_node: Vec<bool>,
    /// Nodes whose lease was silent at the last list, and nodes that had one.
    silence: (u32, u32),
    /// Leases that the last list lacks, of Nodes and machines that are known.
    lacked: BTreeMap<NodeName, Lacked>,
    /// Nodes that went, and the last list before that, where their leases have not outlived them by now.
    bereft: BTreeMap<NodeName, Time>,
    /// A list of this process was held against Nodes that are Ready.
    is_proved: bool,
    /// When the first and the last of the lists came that are not believed.
    doubted: Option<(Time, Time)>,
    /// When lists came again, until they have come for as long as a silence takes to show.
    resumed: Option<Time>,
    /// When they first did so of several times without a time of sight between them.
    resumed_first: Option<Time>,
}

/// A lease that the last list lacks, as it was listed last.
#[derive(Clone, Copy, Debug)]
struct Lacked {
    renewal: Renewal,
    changed_at: Time,
    listed_at: Time,
}

impl Default for LeaseBook {
    fn default() -> Self {
        let none: [NodeName; 0] = [];
        Self {
            names: Arc::from(none),
            shown: Vec::new(),
            changed_at: Vec::new(),
            listed_at: Time::default(),
            has_node: Vec::new(),
            silence: (0, 0),
            lacked: BTreeMap::new(),
            bereft: BTreeMap::new(),
            is_proved: false,
            doubted: None,
            resumed: None,
            resumed_first: None,
        }
    }
}

impl LeaseBook {
    /// Takes in a complete list. `has_nodes` says of names in order whether there is such a node, and `is_known` of one that the
    /// list lacks whether there is such a Node or machine at all.
    pub(super) fn take(
        &mut self,
        now: Time,
        silent_after: Span,
        list: Leases,
        has_nodes: impl Fn(&[NodeName]) -> Vec<bool>,
        is_known: impl Fn(&NodeName) -> bool,
    ) {
        let before = std::mem::replace(&mut self.listed_at, now);
        self.doubted = None;
        self.note_resumed(before, now, silent_after);
        let list = if Arc::ptr_eq(&self.names, list.names()) { list } else { in_order(list) };
        if self.names == *list.names() {
            self.names = list.names().clone();
            let rows = self.shown.iter_mut().zip(&mut self.changed_at);
            for ((shown, changed_at), renewal) in rows.zip(list.renewals()) {
                if shown.take(*renewal) {
                    *changed_at = now;
                }
            }
        } else {
            self.merge(now, before, &list);
        }
        self.lacked.retain(|name, lease| now.since(lease.listed_at) <= LEASES_LAST && is_known(name));
        let mut bereft = std::mem::take(&mut self.bereft);
        let outlives = |row: usize, went: Time| self.changed_at[row].since(went) > COLLECTED_WITHIN;
        bereft.retain(|name, went| self.row(name.as_str()).is_some_and(|row| !outlives(row, *went)));
        self.bereft = bereft;
        if self.has_node.len() != self.names.len() {
            self.has_node = has_nodes(&self.names);
        }
        let silent = |at: &Time| now.since(*at) > silent_after;
        let leases = self.changed_at.iter().zip(&self.has_node).filter(|(_, has_node)| **has_node);
        self.silence = leases.fold((0, 0), |(all, count), (at, _)| (all + u32::from(silent(at)), count + 1));
        let lacked: Vec<NodeName> = self.lacked.keys().cloned().collect();
        let lacked = self.lacked.values().zip(has_nodes(&lacked)).filter(|(_, has_node)| *has_node);
        for (lease, _) in lacked {
            self.silence.0 += u32::from(lease.age() > silent_after);
            self.silence.1 += 1;
        }
    }

    /// After a pause each lease counts as just renewed that was renewed once in it, although its kubelet, or every one, may
    /// have died since: a later list tells. Where pauses follow one another for [`RESUMES_LAST`], the next one counts for
    /// nothing: with one of three API servers hanging no repair went on for hours.
    fn note_resumed(&mut self, before: Time, now: Time, silent_after: Span) {
        let is_late = |since: Time| now.since(since) > silent_after;
        let goes_on_too_long = self.resumed_first.is_some_and(|first| now.since(first) > RESUMES_LAST);
        self.resumed = match self.resumed {
            Some(at) if at == before || !is_late(before) => Some(at).filter(|at| !is_late(*at)),
            _ => is_late(before).then_some(now).filter(|_| !goes_on_too_long),
        };
        self.resumed_first = self.resumed.map(|at| self.resumed_first.unwrap_or(at));
    }

    /// Others have a lease now. Who had the same one keeps its time; for one that lists lacked until `before`, that time stood
    /// still.
    fn merge(&mut self, now: Time, before: Time, list: &Leases) {
        let mut known = self.names.iter().zip(&self.shown).zip(&self.changed_at).peekable();
        let mut lacked = Vec::new();
        let mut lacks = |((name, shown), at): ((&NodeName, &Shown), &Time)| {
            lacked.push((name.clone(), Lacked { renewal: shown.last, changed_at: *at, listed_at: before }));
        };
        let mut rows = (Vec::with_capacity(list.len()), Vec::with_capacity(list.len()));
        for (name, renewal) in list.iter() {
            while let Some(row) = known.next_if(|((known, _), _)| *known < name) {
                lacks(row);
            }
            rows.extend([match known.next_if(|((known, _), _)| *known == name) {
                Some(((_, shown), at)) => {
                    let mut shown = *shown;
                    let is_renewed = shown.take(renewal);
                    (shown, if is_renewed { now } else { *at })
                }
                None => {
                    let same = self.lacked.remove(name).filter(|lease| lease.renewal == renewal);
                    (Shown::first(renewal), same.map_or(now, |lease| before - lease.age()))
                }
            }]);
        }
        known.for_each(lacks);
        (self.shown, self.changed_at) = rows;
        self.lacked.extend(lacked.into_iter().filter(|(name, _)| !self.bereft.contains_key(name)));
        self.names = list.names().clone();
        self.has_node = Vec::new();
    }

    /// Nodes came or went, or stand for others.
    pub(super) fn nodes_changed(&mut self) {
        self.has_node.clear();
    }

    /// This Node came.
    pub(super) fn node_came(&mut self, name: &NodeName) {
        self.bereft.remove(name);
        self.nodes_changed();
    }

    /// This Node went.
    pub(super) fn node_went(&mut self, name: &NodeName) {
        self.lacked.remove(name);
        if self.row(name.as_str()).is_some() {
            self.bereft.insert(name.clone(), self.listed_at);
        }
        self.nodes_changed();
    }

    fn row(&self, name: &str) -> Option<usize> {
        self.names.binary_search_by(|known| known.as_str().cmp(name)).ok()
    }

    /// The lease of this node, as it was listed last.
    pub(super) fn renewal(&self, name: &NodeName) -> Option<Renewal> {
        let listed = self.row(name.as_str()).map(|row| self.shown[row].last);
        listed.or_else(|| self.lacked.get(name).map(|lease| lease.renewal))
    }

    /// The leases whose name is this one, or has it as its first label, or is the first label of it.
    pub(super) fn called<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a NodeName> {
        let exact = self.row(name);
        let label = host_name::first_label(name).and_then(|label| self.row(label));
        let known = exact.into_iter().chain(label).map(|row| &self.names[row]);
        // Whatever begins with the name and a dot stands together: `node-1` is asked for, and `node-10` to `node-19` are not.
        let prefix = format!("{name}.");
        let from = self.names.partition_point(|known| known.as_str() < prefix.as_str());
        let longer = self.names[from..].iter().take_while(move |known| known.as_str().starts_with(&prefix));
        let longer = longer.filter(|known| host_name::is_one_host(known.as_str(), name));
        let lacked = host_name::of_host(&self.lacked, name).map(|(name, _)| name);
        known.chain(longer).chain(lacked)
    }

    /// For how long the lists have shown this lease unchanged. While no list comes, or none that has it, the controller cannot
    /// tell that its Node is silent.
    pub(super) fn age(&self, name: &NodeName) -> Option<Span> {
        let listed = self.row(name.as_str()).map(|row| self.listed_at.since(self.changed_at[row]));
        listed.or_else(|| self.lacked.get(name).map(Lacked::age))
    }

    /// There are some, as far as is known.
    pub(super) fn has_any(&self) -> bool {
        !self.names.is_empty() || !self.lacked.is_empty()
    }

    /// How long ago the last list was read.
    pub(super) fn listed(&self, now: Time) -> Span {
        now.since(self.listed_at)
    }

    /// Where no list came for [`LEASES_LAST`], there are no leases any more, as for the next process. Each age would stand still
    /// for good: the fleet of silent leases stayed dark, and a machine that died a day after the right to list leases was taken
    /// away was held by its fresh lease. True where some were forgotten.
    pub(super) fn forget_old(&mut self, now: Time) -> bool {
        let is_empty = self.names.is_empty() && self.lacked.is_empty() && self.resumed.is_none();
        let is_old = !is_empty && self.listed(now) > LEASES_LAST;
        if is_old {
            let (listed_at, doubted) = (self.listed_at, self.doubted);
            *self = Self { listed_at, doubted, ..Self::default() };
        }
        is_old
    }

    /// The clock went back: nothing was seen later than now.
    pub(super) fn go_back_to(&mut self, now: Time) {
        // One that lists lack is as old as before: no list will tell.
        for lease in self.lacked.values_mut() {
            let age = lease.age();
            lease.listed_at = lease.listed_at.min(now);
            lease.changed_at = lease.listed_at - age;
        }
        let times = self.changed_at.iter_mut().chain(self.bereft.values_mut()).chain(&mut self.resumed);
        let times = times.chain(&mut self.resumed_first);
        let doubted = self.doubted.iter_mut().flat_map(|(since, last)| [since, last]);
        for at in times.chain(doubted) {
            *at = (*at).min(now);
        }
        self.listed_at = self.listed_at.min(now);
    }

    /// Its times go over a jump: a doubt lasts as long as it is watched. A lease that was renewed ahead of now has its whole
    /// time again ([`Self::go_back_to`]).
    pub(super) fn over(&mut self, jump: Jump) {
        jump.counts(self.doubted.iter_mut().flat_map(|(since, last)| [since, last]));
        jump.counts(&mut self.resumed);
        jump.counts(&mut self.resumed_first);
    }

    /// Whether this list lacks more leases than `may_lack` allows of so many: of nodes that are there and had one, or, for the
    /// first list of a process, of those that are `ready`, which none is for long without a lease. As an empty list of machines,
    /// an empty one of leases says nothing, nor does one that lacks all of those: one lease may be lacking of one Node. What
    /// the lists before lack as well counts with it: list after list lost a tolerable part.
    pub(super) fn lacks_too_many(
        &self,
        list: &Leases,
        has_nodes: impl Fn(&[NodeName]) -> Vec<bool>,
        ready: &[&NodeName],
        may_lack: impl Fn(usize) -> usize,
    ) -> bool {
        if self.names == *list.names() && ready.is_empty() {
            return false;
        }
        let listed: BTreeSet<&NodeName> = list.names().iter().collect();
        let are_too_many = |known: &[&NodeName]| {
            let lacked = known.iter().filter(|name| !listed.contains(*name)).count();
            lacked > may_lack(known.len()) || lacked > 0 && lacked == known.len()
        };
        let lacked: Vec<NodeName> = self.lacked.keys().cloned().collect();
        let with_nodes = |names| has_nodes(names).into_iter().zip(names).filter(|(has_node, _)| *has_node);
        let known = with_nodes(&self.names).chain(with_nodes(&lacked)).map(|(_, name)| name);
        are_too_many(&known.collect::<Vec<_>>()) || are_too_many(ready)
    }

    /// No list was held against Ready Nodes yet.
    pub(super) const fn is_unproved(&self) -> bool {
        !self.is_proved
    }

    /// The next list was held against Ready Nodes.
    pub(super) const fn prove(&mut self) {
        self.is_proved = true;
    }

    /// A list is not believed. False where such lists have come for so long that this one is believed all the same: there are
    /// kubelets that keep no leases.
    pub(super) fn doubt(&mut self, now: Time) -> bool {
        let goes_on = self.doubted.filter(|(_, last)| now.since(*last) <= DOUBT_GOES_ON);
        let since = goes_on.map_or(now, |(since, _)| since);
        self.doubted = Some((since, now));
        now.since(since) <= LEASES_LAST
    }

    /// The lists that come are not believed: a machine may have renewed its lease since the last one that was.
    pub(super) fn hides_leases(&self, now: Time) -> bool {
        self.doubted.is_some_and(|(_, last)| now.since(last) <= LEASES_LAST)
    }

    /// Lists came again after a pause: for how long they have to come yet until a lease can be told to be silent.
    pub(super) fn resuming(&self, silent_after: Span) -> Option<Span> {
        self.resumed.map(|at| Span::from_ms(silent_after.ms - self.listed_at.since(at).ms))
    }

    /// How many nodes had a silent lease at the last list, of how many that had one.
    pub(super) const fn silence(&self) -> (u32, u32) {
        self.silence
    }
}

impl Lacked {
    /// How old it was when it was listed last.
    fn age(&self) -> Span {
        self.listed_at.since(self.changed_at)
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
            let is_node = |name: &NodeName| "abc".contains(name.as_str());
            let has_nodes = |names: &[NodeName]| names.iter().map(is_node).collect();
            book.take(Time::from_ms(at * 10_000), SILENT_AFTER, list(text), has_nodes, is_node);
        }
        book
    }

    fn age(book: &LeaseBook, name: &str) -> Option<i64> {
        book.age(&NodeName::from(name)).map(|age| age.ms / 1000)
    }

    #[test]
    fn lease_age_restarts_on_changed_mark_or_first_sight() {
        let table: [(&[&str], &str, Option<i64>); 6] = [
            (&["a1 b1"], "a", Some(0)),
            (&["a1 b1", "a1 b2"], "a", Some(10)),
            (&["a1 b1", "a1 b2"], "b", Some(0)),
            (&["b1", "a1 b1"], "b", Some(10)),
            (&["b1", "a1 b1 c1"], "c", Some(0)),
            (&["b1 a1 b2", "b1 a1"], "b", Some(10)),
        ];
        for (lists, name, expected) in table {
            assert_eq!(age(&book(lists), name), expected, "{lists:?} {name}");
        }
    }

    /// Each list shows the lease renewed; the numbers are seconds.
    #[test]
    fn lists_that_come_again_tell_of_silence_only_after_a_while() {
        let table: [(&[i64], Option<i64>); 7] = [
            (&[1000], Some(40)),
            (&[1000, 1010, 1040], Some(0)),
            (&[1000, 1010, 1041], None),
            (&[1000, 1050, 1090], None),
            (&[1000, 1050, 1091], Some(40)),
            (&[1000, 1050, 1091, 1101, 1900], Some(40)),
            (&[1000, 1100, 1200, 1300], None),
        ];
        for (lists_s, expected_s) in table {
            let mut book = LeaseBook::default();
            for (round, at_s) in lists_s.iter().enumerate() {
                let (at, text) = (Time::from_ms(at_s * 1000), format!("a{round}"));
                book.take(at, SILENT_AFTER, list(&text), |names| vec![true; names.len()], |_| true);
            }
            let left_s = book.resuming(SILENT_AFTER).map(|left| left.ms / 1000);
            assert_eq!(left_s, expected_s, "{lists_s:?}");
        }
    }

    #[test]
    fn unlisted_lease_keeps_its_age_and_resumes_when_listed() {
        let table: [(&[&str], &str, Option<i64>); 7] = [
            (&["a1 b1", "b1"], "a", Some(0)),
            (&["a1 b1", "a1", "b1", ""], "a", Some(10)),
            (&["a1 b1", "a1 b1", "b1", "b1", "a1 b1"], "a", Some(20)),
            (&["a1 b1", "a1 b1", "b1", "b1", "a2 b1"], "a", Some(0)),
            (&["a1", "", "a1", "", "a1"], "a", Some(20)),
            (&["z1 b1", "b1"], "z", None),
            (&["z1 b1", "b1", "z1 b1"], "z", Some(0)),
        ];
        for (lists, name, expected) in table {
            assert_eq!(age(&book(lists), name), expected, "{lists:?} {name}");
        }
        let lists: Vec<&str> = std::iter::once("a1 b1").chain([""; 181]).collect();
        assert_eq!([181, 182].map(|count| age(&book(&lists[..count]), "a")), [Some(0), None]);
    }

    #[test]
    fn lease_is_dropped_with_its_node_unless_renewed_long_after() {
        for (last_s, expected) in [(10, None), (600, None), (610, Some(0))] {
            let mut book = book(&["a1 b1"]);
            book.node_went(&NodeName::from("a"));
            for (at, text) in [(last_s, "a2 b1"), (last_s + 10, "b1")] {
                let has_nodes = |names: &[NodeName]| vec![true; names.len()];
                book.take(Time::from_ms(at * 1000), SILENT_AFTER, list(text), has_nodes, |_| true);
            }
            assert_eq!(age(&book, "a"), expected, "{last_s}");
        }
    }

    #[test]
    fn silence_is_what_lists_have_shown_and_no_time_without_a_list() {
        let shown = book(&["a1 b1", "a1 b2", "a1 b3"]);
        assert_eq!((age(&shown, "a"), age(&shown, "b"), age(&shown, "c")), (Some(20), Some(0), None));
    }

    #[test]
    fn only_leases_of_nodes_that_are_there_count_as_silent() {
        let all_but_a: Vec<String> = (0..6).map(|round| format!("a1 b{round} c1 z1")).collect();
        let lists: Vec<&str> = all_but_a.iter().map(String::as_str).collect();
        assert_eq!(book(&lists[..5]).silence(), (0, 3));
        assert_eq!(book(&lists).silence(), (2, 3));
        let lacked: Vec<&str> = lists.iter().copied().chain(["b7"]).collect();
        assert_eq!(book(&lacked).silence(), (2, 3));
    }
}
