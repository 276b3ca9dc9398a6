//! Durations as Go prints them in objects: `20m0s`, `1h30m`, `500ms`.
//!
//! Read here are hours, minutes, seconds and milliseconds in whole numbers, which is what people write into specifications.
//! Fractions, signs, and units below a millisecond are no duration to this reader: an owner's deadline that cannot be read is
//! left out, and told as unread.

use reveille_core::model::time::Span;

/// Longest text that is looked at: Go prints at most 25 characters.
const TEXT_BYTES_MAX: usize = 32;
/// Longest duration that is believed: a year. A longer one is no deadline.
const SPAN_MS_MAX: i64 = 366 * 24 * 3600 * 1000;

/// The duration, where the text is one.
pub(crate) fn go_duration(text: &str) -> Option<Span> {
    if text.is_empty() || text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let mut ms: i64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let unit_ends = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_ends);
        let unit_ms = match unit {
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1000,
            "ms" => 1,
            _ => return None,
        };
        ms = number.parse::<i64>().ok()?.checked_mul(unit_ms)?.checked_add(ms)?;
        rest = after;
    }
    (ms <= SPAN_MS_MAX).then_some(Span::from_ms(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read() {
        for (text, ms) in [
            ("20m0s", Some(1_200_000)),
            ("1h30m", Some(5_400_000)),
            ("0s", Some(0)),
            ("500ms", Some(500)),
            ("1h0m0s", Some(3_600_000)),
            ("", None),
            ("20", None),
            ("m", None),
            ("-5m", None),
            ("1.5h", None),
            ("5d", None),
            ("9223372036854775807h", None),
            ("99999h", None),
            ("1h ", None),
        ] {
            assert_eq!(go_duration(text), ms.map(Span::from_ms), "{text}");
        }
    }
}
