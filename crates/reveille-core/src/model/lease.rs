//! Node leases as a list shows them: which Nodes have one, and a mark that changes whenever the kubelet renews it.
//!
//! ```text
//!  last list ─▶ Leases::next ─ one lease after the other ─▶ NextLeases::end ─▶ Leases, which shares the names of the last
//! ```
//!
//! The adapter lists every lease of a fleet every few seconds, and nearly always the same Nodes have one. So the names
//! stand in one block that list after list shares, and a renewal is a number. A comparison of two lists that share their
//! names compares numbers and nothing else.

use std::sync::Arc;

use super::id::NodeName;

/// What a kubelet wrote for the time of its last renewal (`spec.renewTime`), as a number that stands for the text. Only
/// ever compared for "it changed": the kubelet's clock is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Renewal(u64);

impl Renewal {
    /// The mark of this text. Two texts have the same mark once in 2⁶⁴ pairs (FNV-1a).
    pub const fn of(text: &str) -> Self {
        let (bytes, mut hash, mut at) = (text.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            at += 1;
        }
        Self(hash)
    }

    /// The mark of the `count`-th renewal, for a caller that counts renewals instead of reading a clock.
    pub const fn nth(count: u64) -> Self {
        Self(count)
    }
}

/// What the lists showed of one lease: the last one, and what was shown before that changed. Of two API servers one may have an
/// older cache: a lease that is shown in turn as two old ones is renewed by no kubelet.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// In the last list.
    pub last: Renewal,
    earlier: Renewal,
}

impl Shown {
    /// The first list that has it.
    pub const fn first(last: Renewal) -> Self {
        Self { last, earlier: last }
    }

    /// Takes in the next list. True where the lease was renewed.
    pub fn take(&mut self, now: Renewal) -> bool {
        if self.last == now {
            return false;
        }
        let is_renewed = self.earlier != now;
        self.earlier = std::mem::replace(&mut self.last, now);
        is_renewed
    }
}

/// A complete list of node leases, in the order in which it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leases {
    names: Arc<[NodeName]>,
    renewals: Vec<Renewal>,
}

impl Default for Leases {
    fn default() -> Self {
        Self { names: Arc::from([]), renewals: Vec::new() }
    }
}

impl Leases {
    /// How many there are.
    pub const fn len(&self) -> usize {
        self.renewals.len()
    }

    /// True when there is none.
    pub const fn is_empty(&self) -> bool {
        self.renewals.is_empty()
    }

    /// Who has a lease, in the list's order.
    pub const fn names(&self) -> &Arc<[NodeName]> {
        &self.names
    }

    /// The mark of each, in the same order.
    pub fn renewals(&self) -> &[Renewal] {
        &self.renewals
    }

    /// Each with its mark.
    pub fn iter(&self) -> impl Iterator<Item = (&NodeName, Renewal)> {
        self.names.iter().zip(self.renewals.iter().copied())
    }

    /// The same nodes with other marks, in the same order; `None` when there are not as many.
    pub fn again(&self, renewals: Vec<Renewal>) -> Option<Self> {
        (renewals.len() == self.len()).then(|| Self { names: self.names.clone(), renewals })
    }

    /// Begins the list after this one.
    pub fn next(&self) -> NextLeases<'_> {
        NextLeases { last: self, own: None, renewals: Vec::with_capacity(self.len()) }
    }
}

impl FromIterator<(NodeName, Renewal)> for Leases {
    fn from_iter<I: IntoIterator<Item = (NodeName, Renewal)>>(leases: I) -> Self {
        let (names, renewals): (Vec<NodeName>, Vec<Renewal>) = leases.into_iter().unzip();
        Self { names: names.into(), renewals }
    }
}

/// A list that is being read.
#[derive(Clone, Debug)]
pub struct NextLeases<'a> {
    last: &'a Leases,
    /// The names so far, once they differ from those of the last list.
    own: Option<Vec<NodeName>>,
    renewals: Vec<Renewal>,
}

impl NextLeases<'_> {
    /// The next lease of the list. `is` tells whether a name is the lease's Node, and `name` makes that name: called only
    /// where the last list had another Node in this place.
    pub fn take(
        &mut self,
        is: impl FnOnce(&NodeName) -> bool,
        name: impl FnOnce() -> NodeName,
        renewal: Renewal,
    ) {
        let at = self.renewals.len();
        let known = self.last.names.get(at).filter(|known| is(known));
        match (&mut self.own, known) {
            (None, Some(_)) => {}
            (Some(own), known) => own.push(known.cloned().unwrap_or_else(name)),
            (None, None) => {
                let mut own = self.last.names[..at].to_vec();
                own.push(name());
                self.own = Some(own);
            }
        }
        self.renewals.push(renewal);
    }

    /// The list is whole.
    pub fn end(self) -> Leases {
        let names = match self.own {
            Some(own) => own.into(),
            None if self.renewals.len() == self.last.len() => self.last.names.clone(),
            None => self.last.names[..self.renewals.len()].into(),
        };
        Leases { names, renewals: self.renewals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(last: &Leases, text: &str) -> Leases {
        let mut next = last.next();
        for word in text.split_whitespace() {
            let (name, renewed) = word.split_at(1);
            next.take(|known| known.as_str() == name, || NodeName::from(name), Renewal::of(renewed));
        }
        next.end()
    }

    #[test]
    fn lease_names_are_shared_with_last_list_while_unchanged() {
        let table = [
            ("a1 b1 c1", true),
            ("a2 b2", false),
            ("a1 b1", false),
            ("a1 c1 b1", false),
            ("a1 b1 c1 d1", false),
        ];
        for (text, shared) in table {
            let first = after(&Leases::default(), "a1 b1 c1");
            let next = after(&first, text);
            assert_eq!(Arc::ptr_eq(first.names(), next.names()), shared, "{text}");
            assert_eq!(next, after(&Leases::default(), text), "{text}");
        }
    }

    #[test]
    fn another_text_is_another_mark() {
        let text = |second: u32| format!("2026-03-02T08:00:00.{second:06}Z");
        let marks: std::collections::BTreeSet<Renewal> =
            (0..100_000).map(|s| Renewal::of(&text(s))).collect();
        assert_eq!(marks.len(), 100_000);
        assert_ne!(Renewal::of(""), Renewal::of(" "));
    }
}
