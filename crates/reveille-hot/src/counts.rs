//! Writes in a log, counted for each object with the client that the log names.
//!
//! ```text
//!  audit log ─▶ audit ─┐
//!  klog      ─▶ klog  ─┴▶ Entry { object, by, at } ─▶ Counts ─▶ Counted { writes, over, by }
//! ```
//!
//! Several logs may be counted together, in any order: parts of one, or those of servers beside each other. Rates are between the
//! stamps of the logs. Objects and writers are bounded: those seen once are forgotten first.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::time::Span;

use crate::object::Object;
use crate::stamp::Stamp;

/// Objects that are counted.
const OBJECTS_MAX: usize = 50_000;
/// Writers that are kept of one object.
const WRITERS_MAX: usize = 16;
/// A log of one object with this share of all writes has a hot object, whatever the time.
const SHARE: u64 = 30;
/// Writes a minute of one object from which it is hot.
const PER_MINUTE: u64 = 60;

/// Who wrote, as a log tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client {
    /// As whom it was logged in.
    pub user: String,
    /// What program it says it is.
    pub agent: String,
    /// Where it came from.
    pub addresses: String,
}

/// One write of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What was written.
    pub object: Object,
    /// Who wrote; `None` where the log does not say.
    pub by: Option<Client>,
    /// PUT, PATCH, ….
    pub verb: String,
    /// When, on the clock of the machine that wrote the log.
    pub at: Option<Stamp>,
}

/// All writes of one log or several.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    objects: BTreeMap<Object, Count>,
    writes: u64,
    forgotten: u64,
    /// The first stamp that was seen. Others are places from it: stamps without a year only tell differences.
    origin: Option<Stamp>,
    without_year: bool,
}

#[derive(Clone, Debug, Default)]
struct Count {
    writes: u64,
    /// Its first and last write, from the origin; `None` while no write had a stamp.
    between: Option<(Span, Span)>,
    by: BTreeMap<Client, u64>,
    verbs: BTreeMap<String, u64>,
}

/// The writes of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The object.
    pub object: Object,
    /// Its writes.
    pub writes: u64,
    /// From its first to its last; zero when there was one, or no stamps.
    pub over: Span,
    /// Its share of all writes of the log, in hundredths.
    pub share: u64,
    /// Who, and how often, most first.
    pub by: Vec<(Client, u64)>,
    /// By which verbs.
    pub verbs: Vec<String>,
}

impl Counts {
    /// Of a log whose stamps name no year.
    pub fn without_year() -> Self {
        Self { without_year: true, ..Self::default() }
    }

    /// Counts one write.
    pub fn take(&mut self, entry: Entry) {
        let at = entry.at.map(|at| {
            let origin = *self.origin.get_or_insert(at);
            if self.without_year { at.from_origin_without_year(origin) } else { at.from_origin(origin) }
        });
        self.writes += 1;
        if !self.objects.contains_key(&entry.object) && self.objects.len() >= OBJECTS_MAX {
            self.forget();
        }
        let count = self.objects.entry(entry.object).or_default();
        count.writes += 1;
        if let Some(at) = at {
            let (from, to) = count.between.unwrap_or((at, at));
            count.between = Some((from.min(at), to.max(at)));
        }
        *count.verbs.entry(entry.verb).or_default() += 1;
        if let Some(by) = entry.by
            && (count.by.len() < WRITERS_MAX || count.by.contains_key(&by))
        {
            *count.by.entry(by).or_default() += 1;
        }
    }

    /// Drops the objects that were written least, until half are left: what is hot has been written more often than they.
    fn forget(&mut self) {
        let mut least = 1;
        while self.objects.len() > OBJECTS_MAX / 2 {
            let before = self.objects.len();
            self.objects.retain(|_, count| count.writes > least);
            self.forgotten += (before - self.objects.len()) as u64;
            least *= 2;
        }
    }

    /// Writes in all.
    pub const fn writes(&self) -> u64 {
        self.writes
    }

    /// Kinds of the objects that are counted.
    pub fn kinds(&self) -> u64 {
        let kinds: BTreeSet<_> = self.objects.keys().map(|object| &object.resource).collect();
        kinds.len() as u64
    }

    /// Objects that were forgotten because there were too many.
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The objects that are hot, most written first: sixty writes a minute, or a third of all that is written.
    pub fn hot(&self) -> Vec<Counted> {
        let mut hot: Vec<Counted> =
            self.objects.iter().map(|(object, count)| self.counted(object, count)).collect();
        hot.retain(|counted| {
            let minute = u64::try_from(counted.over.ms).unwrap_or(0);
            let fast = counted.writes > 1 && counted.writes * 60_000 >= PER_MINUTE * minute.max(60_000);
            fast || counted.share > SHARE
        });
        hot.sort_by(|a, b| (b.writes, &a.object).cmp(&(a.writes, &b.object)));
        hot
    }

    fn counted(&self, object: &Object, count: &Count) -> Counted {
        let mut by: Vec<_> = count.by.iter().map(|(client, writes)| (client.clone(), *writes)).collect();
        by.sort_by(|(a, many), (b, more)| (more, a).cmp(&(many, b)));
        Counted {
            object: object.clone(),
            writes: count.writes,
            over: count.between.map_or(Span::ZERO, |(from, to)| Span::from_ms(to.ms - from.ms)),
            share: count.writes * 100 / self.writes.max(1),
            by,
            verbs: count.verbs.keys().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Resource;

    #[test]
    fn logs_of_two_servers_count_together_whichever_is_read_first() {
        let object = Object::new(Resource::new("", "configmaps"), "a", "b");
        let entry = |second: u64| Entry {
            object: object.clone(),
            by: None,
            verb: "PUT".to_owned(),
            at: Stamp::of_rfc3339(&format!("2026-01-01T10:00:{second:02}Z")),
        };
        let (even, odd): (Vec<u64>, Vec<u64>) = (0..60).partition(|second| second % 2 == 0);
        for order in [[&even, &odd], [&odd, &even]] {
            let mut counts = Counts::default();
            for second in order.into_iter().flatten() {
                counts.take(entry(*second));
            }
            let hot = counts.hot();
            assert_eq!((hot[0].writes, hot[0].over), (60, Span::from_s(59)));
        }
    }
}
