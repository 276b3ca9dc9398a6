//! How full a router is, and what a refusal says of its limit.
//!
//! Neutron holds a number of extra routes per router. Up to 2026.1 the limit cannot be read and shows only in the
//! refusal (400 `RoutesExhausted`); from 2026.2 it is the quota `router_route` (409 `OverQuota`). Both mean the same:
//! stop, a retry is useless. The limit is held against the *resulting* list, also when that is shorter than before.

use crate::model::network::Route;

/// How full a router is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitOutlook {
    /// How many routes it may hold.
    pub limit: u32,
    /// How many it holds, everybody's.
    pub used: u32,
    /// How many more it must take so that no node lacks one.
    pub needed_next: u32,
}

/// How many routes these are.
pub(super) fn count(routes: &[Route]) -> u32 {
    u32::try_from(routes.len()).unwrap_or(u32::MAX)
}

impl LimitOutlook {
    /// How many more routes it takes now.
    pub const fn free(&self) -> u32 {
        self.limit.saturating_sub(self.used)
    }

    /// True when the routes that are missing do not all fit, before anything is taken out.
    pub const fn is_reached(&self) -> bool {
        self.needed_next > self.free()
    }
}

/// True when the refusal is about the number of routes of a router, whether or not it names the number.
pub fn is_route_limit(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("routesexhausted")
        || text.contains("number of routes exceeds")
        || (text.contains("quota") && text.contains("router_route"))
}

/// The limit that a refusal names. `None` for other refusals, and for those that name no number.
pub fn limit_from_text(text: &str) -> Option<u32> {
    if !is_route_limit(text) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    ["maximum", "limit", "allowed", "max"].iter().find_map(|word| {
        lower.match_indices(word).find_map(|(at, _)| leading_number(&lower[at + word.len()..]))
    })
}

/// The number that the text begins with, after a few marks like `: ` or `=`, or the words `of` and `is`.
fn leading_number(text: &str) -> Option<u32> {
    let is_mark = |c: char| !c.is_ascii_alphanumeric();
    let mut rest = text.trim_start_matches(is_mark);
    for word in ["of ", "is "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let skipped = text.len() - rest.len();
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if skipped > 6 { None } else { rest[..digits].parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_refusals_are_one_condition_and_give_their_number() {
        let exhausted = "Unable to complete operation for 3f0c7e30-1111-4222-8333-444455556666. The number of routes \
                         exceeds the maximum";
        let table: Vec<(String, bool, Option<u32>)> = vec![
            (format!("{exhausted} 30."), true, Some(30)),
            (format!("{exhausted} 256."), true, Some(256)),
            (format!("400 RoutesExhausted: {exhausted} 31"), true, Some(31)),
            ("Quota exceeded for resources: ['router_route'].".into(), true, None),
            ("Quota exceeded for resources: ['router_route']. Limit: 30".into(), true, Some(30)),
            (
                "{\"type\":\"OverQuota\",\"message\":\"quota router_route, limit=512 used=512\"}".into(),
                true,
                Some(512),
            ),
            ("Quota exceeded for resources: ['security_group_rule'], limit 100".into(), false, None),
            ("The number of allowed address pair exceeds the maximum 10.".into(), false, None),
            ("429 Too Many Requests: rate limit 60r/m".into(), false, None),
            (format!("{exhausted} 99999999999999."), true, None),
            (String::new(), false, None),
        ];
        for (text, is_limit, limit) in table {
            assert_eq!((is_route_limit(&text), limit_from_text(&text)), (is_limit, limit), "{text}");
        }
    }

    #[test]
    fn a_router_is_full_when_what_is_needed_does_not_fit() {
        let outlook = |used, needed_next| LimitOutlook { limit: 30, used, needed_next };
        assert_eq!((outlook(29, 1).free(), outlook(29, 1).is_reached()), (1, false));
        assert_eq!((outlook(30, 1).free(), outlook(30, 1).is_reached()), (0, true));
        assert_eq!((outlook(30, 0).free(), outlook(30, 0).is_reached()), (0, false));
        assert_eq!(outlook(31, 0).free(), 0, "a lowered limit leaves no room");
    }
}
