//! What an API server counts of itself: writes by kind, what came of them, and how full its memory is.
//!
//! ```text
//!  /metrics, twice ─▶ Scrape, Scrape ─▶ writes that were answered well  ─┐
//!  our own watch, or the server's counts of stored updates ─▶ changes ───┴▶ many writes, few changes: NoOps
//! ```
//!
//! A PUT that changes nothing is stored nowhere, moves no version and reaches no watch: only the API server's counters show it.
//! They name kinds, not objects. They are those of one server. Behind a load balancer the second answer may come from another
//! server, as its start time shows; then there is no verdict. Clients that change objects through other servers make the storm
//! look smaller, never larger.

use std::collections::BTreeMap;

use reveille_core::model::time::Span;

use crate::object::Resource;
use crate::settings::Settings;

/// Kinds that are kept; a server has some hundreds.
const KINDS_MAX: usize = 4_000;
/// Of ten writes, one may have changed something, and it is a storm of no-ops still.
const CHANGED_SHARE: u64 = 10;
/// Fewer writes than this prove nothing.
const WRITES_MIN: u64 = 20;

/// Subresources through which something else is written than the object, or nothing.
const NOT_THE_OBJECT: [&str; 7] = ["proxy", "exec", "attach", "portforward", "log", "binding", "eviction"];

/// Writes of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Answered with success.
    pub done: u64,
    /// Refused because another was faster (409).
    pub conflicts: u64,
}

/// One reading of `/metrics`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    /// When the server's process began, seconds: which server it is.
    pub started_s: f64,
    /// Writes of each kind: PUT, PATCH, APPLY.
    pub writes: BTreeMap<Resource, Writes>,
    /// Updates of each kind that were stored, where the server tells kinds apart.
    pub stored: BTreeMap<Resource, u64>,
    /// Events that were sent to all watchers, of each kind.
    pub sent: BTreeMap<Resource, u64>,
    /// Memory that the process holds.
    pub resident_bytes: u64,
    /// Memory that its heap uses.
    pub heap_bytes: u64,
    /// Requests that it turned away because it had too many.
    pub rejected: u64,
}

/// How full the API server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pressure {
    /// Memory that the process holds.
    pub resident_bytes: u64,
    /// How much more than at the first reading; negative when less.
    pub grown_bytes: i64,
    /// Memory that its heap uses.
    pub heap_bytes: u64,
    /// Requests turned away between the readings.
    pub rejected: u64,
}

/// A kind that is written and hardly changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoOps {
    /// The kind.
    pub resource: Resource,
    /// Writes that were answered with success.
    pub writes: u64,
    /// Changes in the same time.
    pub changes: u64,
    /// Writes that were refused because another was faster.
    pub conflicts: u64,
    /// How long it was looked at.
    pub over: Span,
}

impl Scrape {
    /// From the text of `/metrics`; lines that are not understood, or not needed, are passed over.
    pub fn of_text(text: &str) -> Self {
        let mut scrape = Self::default();
        text.lines().for_each(|line| scrape.line(line));
        scrape
    }

    fn line(&mut self, line: &str) {
        let Some((name, rest)) = line.split_once(['{', ' ']) else { return };
        let Some(value) = line.rsplit(' ').next().and_then(|text| text.parse::<f64>().ok()) else { return };
        if !value.is_finite() || value < 0.0 {
            return;
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts and bytes, finite and not negative"
        )]
        let count = value as u64;
        match name {
            "apiserver_request_total" => self.request(rest, count),
            "etcd_requests_total" | "etcd_request_duration_seconds_count" => {
                self.stored_of(name, rest, count)
            }
            "apiserver_watch_events_total" => {
                if let Some(resource) = resource(rest)
                    && self.sent.len() < KINDS_MAX
                {
                    *self.sent.entry(resource).or_default() += count;
                }
            }
            "process_start_time_seconds" => self.started_s = value,
            "process_resident_memory_bytes" => self.resident_bytes = count,
            "go_memstats_heap_inuse_bytes" => self.heap_bytes = count,
            "apiserver_flowcontrol_rejected_requests_total" => self.rejected += count,
            _ => {}
        }
    }

    fn request(&mut self, labels: &str, count: u64) {
        let is_write = matches!(label(labels, "verb"), Some("PUT" | "PATCH" | "APPLY" | "UPDATE"));
        let is_dry = label(labels, "dry_run").is_some_and(|dry| !dry.is_empty());
        let sub = label(labels, "subresource").unwrap_or_default();
        if !is_write || is_dry || NOT_THE_OBJECT.contains(&sub) || self.writes.len() >= KINDS_MAX {
            return;
        }
        let Some(resource) = resource(labels) else { return };
        let writes = self.writes.entry(resource).or_default();
        match label(labels, "code") {
            Some("409") => writes.conflicts += count,
            Some(code) if code.starts_with('2') => writes.done += count,
            _ => {}
        }
    }

    /// The two metrics count the same; older servers have the second alone, and some of them no kinds in it.
    fn stored_of(&mut self, name: &str, labels: &str, count: u64) {
        if label(labels, "operation") != Some("update") || self.stored.len() >= KINDS_MAX {
            return;
        }
        if let Some(resource) = resource(labels) {
            let stored = self.stored.entry(resource).or_default();
            *stored = if name == "etcd_requests_total" { count } else { count.max(*stored) };
        }
    }

    /// The same server as before, and later?
    fn follows(&self, before: &Self) -> bool {
        (self.started_s - before.started_s).abs() < 1.0 && self.started_s > 0.0
    }

    /// How full it is, beside an earlier reading of the same server.
    pub fn pressure(&self, before: Option<&Self>) -> Option<Pressure> {
        let before = before.filter(|before| self.follows(before));
        let grown = |before: &Self| {
            let bytes = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
            bytes(self.resident_bytes) - bytes(before.resident_bytes)
        };
        (self.resident_bytes > 0).then(|| Pressure {
            resident_bytes: self.resident_bytes,
            grown_bytes: before.map_or(0, grown),
            heap_bytes: self.heap_bytes,
            rejected: before.map_or(0, |before| self.rejected.saturating_sub(before.rejected)),
        })
    }

    /// Kinds that were written much and changed little since `before`. `seen` are changes that our own watch saw in that
    /// time, of the kinds that it watched throughout.
    pub fn no_ops(
        &self,
        before: &Self,
        over: Span,
        seen: &BTreeMap<Resource, u64>,
        settings: &Settings,
    ) -> Vec<NoOps> {
        if !self.follows(before) || over.ms <= 0 {
            return Vec::new();
        }
        let grown = |now: Option<&u64>, then: Option<&u64>| {
            now.map(|now| now.saturating_sub(then.copied().unwrap_or(0)))
        };
        let allowed = u64::from(settings.at_once) * u64::try_from(over.ms).unwrap_or(0) / 1_000_000;
        let storm = |(resource, now): (&Resource, &Writes)| {
            let then = before.writes.get(resource).copied().unwrap_or_default();
            let writes = now.done.saturating_sub(then.done);
            // The source that saw most of the changes counts: each source may have missed some, none invents any.
            let changes =
                [seen.get(resource).copied(), grown(self.stored.get(resource), before.stored.get(resource))];
            let known = changes.into_iter().flatten().max();
            // Events are sent to each watcher, so they are more than changes, and few of them are proof all the same.
            let changes = known.or_else(|| grown(self.sent.get(resource), before.sent.get(resource)))?;
            let conflicts = now.conflicts.saturating_sub(then.conflicts);
            let is_storm = writes > allowed && writes >= WRITES_MIN && changes * CHANGED_SHARE <= writes;
            is_storm.then(|| NoOps { resource: resource.clone(), writes, changes, conflicts, over })
        };
        self.writes.iter().filter_map(storm).collect()
    }
}

/// The kind in these labels.
fn resource(labels: &str) -> Option<Resource> {
    let plural = label(labels, "resource").filter(|plural| !plural.is_empty())?;
    Some(Resource::new(label(labels, "group").unwrap_or_default(), plural))
}

/// The value of a label; none of those that are read has quotes in it.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = labels;
    loop {
        let (key, after) = rest.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        if key.trim_start_matches([',', '{', ' ']) == name {
            return Some(value);
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(put: u64, stored: u64, started: f64) -> String {
        format!(
            r#"# TYPE apiserver_request_total counter
apiserver_request_total{{code="200",component="apiserver",dry_run="",group="example.dev",resource="things",scope="resource",subresource="",verb="PUT",version="v1"}} {put}
apiserver_request_total{{code="409",component="apiserver",dry_run="",group="example.dev",resource="things",scope="resource",subresource="",verb="PUT",version="v1"}} 7
apiserver_request_total{{code="200",component="apiserver",dry_run="All",group="example.dev",resource="things",scope="resource",subresource="",verb="PUT",version="v1"}} 9000
apiserver_request_total{{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="proxy",verb="PUT",version="v1"}} 9000
apiserver_request_total{{code="200",component="apiserver",dry_run="",group="",resource="nodes",scope="resource",subresource="",verb="GET",version="v1"}} 9000
etcd_requests_total{{group="example.dev",operation="update",resource="things"}} {stored}
etcd_request_duration_seconds_count{{group="example.dev",operation="update",resource="things"}} {stored}
process_start_time_seconds {started}
process_resident_memory_bytes 4.28e+08
go_memstats_heap_inuse_bytes 3e+08
nonsense
"#
        )
    }

    fn things() -> Resource {
        Resource::new("example.dev", "things")
    }

    fn storms(before: &str, after: &str, seen: &[u64]) -> Vec<NoOps> {
        let seen = seen.iter().map(|count| (things(), *count)).collect();
        let (before, after) = (Scrape::of_text(before), Scrape::of_text(after));
        after.no_ops(&before, Span::from_s(30), &seen, &Settings::default())
    }

    #[test]
    fn many_writes_without_change_are_a_storm_and_others_are_not() {
        let before = text(1_000, 50, 1.5e9);
        let table: [(u64, u64, &[u64], bool); 6] = [
            (1_600, 50, &[], true),
            (1_600, 50, &[2], true),
            // Our watch saw them change, or the store did.
            (1_600, 50, &[600], false),
            (1_600, 650, &[], false),
            // Below two a second.
            (1_050, 50, &[], false),
            (1_000, 50, &[], false),
        ];
        for (put, stored, seen, wanted) in table {
            let found = storms(&before, &text(put, stored, 1.5e9), seen);
            assert_eq!(!found.is_empty(), wanted, "{put} {stored} {seen:?}: {found:?}");
            assert!(found.iter().all(|storm| storm.resource == things() && storm.writes == put - 1_000));
        }
    }

    #[test]
    fn two_servers_counts_are_not_compared() {
        assert_eq!(storms(&text(0, 0, 1.5e9), &text(9_000, 0, 1.6e9), &[]), []);
    }

    #[test]
    fn pressure_is_told_with_what_it_grew_by() {
        let before = Scrape { resident_bytes: 400_000_000, ..Scrape::of_text(&text(0, 0, 1.5e9)) };
        let now = Scrape::of_text(&text(0, 0, 1.5e9)).pressure(Some(&before));
        assert_eq!(now.map(|now| (now.resident_bytes, now.grown_bytes)), Some((428_000_000, 28_000_000)));
        assert_eq!(Scrape::default().pressure(None), None);
    }
}
