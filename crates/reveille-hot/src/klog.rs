//! An API server's own log at verbosity 5, which has a line for each request at each of three chained servers.
//!
//! ```text
//!  I0101 10:00:05.500000  1 handler.go:153] kube-aggregator: PUT "/apis/…/machine-h46dc" …  ← counted
//!  I0101 10:00:05.500021  1 pathrecorder.go:247] kube-aggregator: "/apis/…" …      ← the same request
//!  I0101 10:00:05.500040  1 handler.go:143] kube-apiserver: PUT "/apis/…" …         ← and again
//! ```
//!
//! Six such lines are one PUT. Only the aggregator's handler counts: whatever comes to the server passes it first, and once.
//! The log names no writer.

use crate::counts::Entry;
use crate::object::Object;
use crate::stamp::Stamp;

/// The write that this line tells of, if it tells of one.
pub fn entry(line: &str) -> Option<Entry> {
    let at_handler = line.find("handler.go:")?;
    let (_, said) = line[at_handler..].split_once("] ")?;
    let (verb, rest) = said.strip_prefix("kube-aggregator: ")?.split_once(" \"")?;
    if !matches!(verb, "PUT" | "PATCH") {
        return None;
    }
    let (path, end) = rest.split_once('"')?;
    if !end.trim_start().starts_with("satisfied by") {
        return None;
    }
    let (object, _) = Object::of_path(path)?;
    Some(Entry { object, by: None, verb: verb.to_owned(), at: stamp(&line[..at_handler]) })
}

/// klog's head is `Lmmdd hh:mm:ss.uuuuuu`; journals and container runtimes write theirs before it.
fn stamp(head: &str) -> Option<Stamp> {
    let words: Vec<&str> = head.split_whitespace().collect();
    words.windows(2).rev().find_map(|pair| {
        let date = pair[0].strip_prefix(['I', 'W', 'E', 'F'])?;
        Stamp::of_klog(&format!("{date} {}", pair[1]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use reveille_core::model::time::Span;

    /// One PUT at verbosity 5, in the order in which it goes through the servers.
    const ONE_PUT: &str = include_str!("one_put.klog");

    #[test]
    fn six_lines_are_one_write_of_one_object() {
        let entries: Vec<Entry> = ONE_PUT.lines().filter_map(entry).collect();
        assert_eq!(ONE_PUT.lines().count(), 6);
        let [one] = entries.as_slice() else { panic!("{entries:?}") };
        assert_eq!(one.object.to_string(), "nodes.management.cattle.io c-x2x8k/machine-h46dc");
        assert!(one.at.is_some());
        let mut counts = Counts::without_year();
        counts.take(one.clone());
        let hot = counts.hot();
        assert_eq!((hot.len(), hot[0].writes, hot[0].over, hot[0].share), (1, 1, Span::ZERO, 100));
    }

    #[test]
    fn a_rate_goes_on_over_the_turn_of_the_year() {
        let line = |stamp: &str| {
            format!(
                "I{stamp}  1 handler.go:153] kube-aggregator: PUT \"/api/v1/nodes/a\" satisfied by gorestful with webservice /api/v1"
            )
        };
        let mut counts = Counts::without_year();
        for (date, second) in
            [("1231 23:59:", 58), ("1231 23:59:", 59), ("0101 00:00:", 0), ("0101 00:00:", 1)]
        {
            counts.take(entry(&line(&format!("{date}{second:02}.000000"))).unwrap());
        }
        assert_eq!(counts.hot()[0].over, Span::from_s(3));
        assert_eq!(counts.hot()[0].writes, 4);
    }

    #[test]
    fn heads_of_others_stand_before_klogs() {
        let lines = [
            "2026-01-01T10:00:05.5Z stderr F I0101 10:00:05.500000       1 handler.go:153] kube-aggregator: PUT \"/api/v1/nodes/a\" satisfied by x",
            "Jan 01 10:00:05 host kube-apiserver[7]: I0101 10:00:05.500000       7 handler.go:153] kube-aggregator: PATCH \"/api/v1/nodes/a\" satisfied by x",
        ];
        for line in lines {
            assert_eq!(entry(line).unwrap().at, Stamp::of_klog("0101 10:00:05.500000"), "{line}");
        }
        for line in [
            "",
            "kube-aggregator: PUT \"/api/v1/nodes/a\" satisfied by x",
            "I0101 handler.go:153] kube-aggregator: GET \"/api/v1/nodes/a\" satisfied by x",
        ] {
            assert_eq!(entry(line), None, "{line}");
        }
    }

    #[test]
    fn a_third_of_all_writes_is_hot_and_less_is_not() {
        let put = |name: usize, second: usize| {
            let line = format!(
                "I0101 10:{:02}:{:02}.0 1 handler.go:1] kube-aggregator: PUT \"/api/v1/nodes/n{name}\" satisfied by x",
                second / 60,
                second % 60
            );
            entry(&line).unwrap()
        };
        let mut counts = Counts::without_year();
        (0..100).for_each(|nth| counts.take(put(if nth % 5 < 2 { 0 } else { nth }, nth * 10)));
        let hot: Vec<_> = counts
            .hot()
            .into_iter()
            .map(|counted| (counted.object.name.to_string(), counted.share))
            .collect();
        assert_eq!(hot, [("n0".to_owned(), 40)]);
    }
}
