//! The moment that a line says it was written at, on its own scale.
//!
//! Enough to order lines of one source and to tell seconds from hours between them: a year has 12 months of 31 days here,
//! and zones are not looked at. Nothing else is done with it.

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// Where a time stands at the latest.
const HEAD_BYTES: usize = 96;

/// Seconds since the beginning of the line's own year, from a comparable line.
pub fn seconds(comparable: &str) -> Option<i64> {
    let bytes = comparable.as_bytes();
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let at = (0..head.len().saturating_sub(7)).find(|at| clock(&head[*at..]).is_some())?;
    let clock = clock(&head[at..])?;
    Some(day(&head[..at]).unwrap_or(0) * 86_400 + clock)
}

/// `hh:mm:ss` at the start.
fn clock(bytes: &[u8]) -> Option<i64> {
    if bytes.len() < 8 || bytes[2] != b':' || bytes[5] != b':' {
        return None;
    }
    let (h, m, s) = (two(&bytes[0..2])?, two(&bytes[3..5])?, two(&bytes[6..8])?);
    (h < 24 && m < 60 && s < 61).then_some(h * 3600 + m * 60 + s)
}

fn two(bytes: &[u8]) -> Option<i64> {
    bytes.iter().all(u8::is_ascii_digit).then(|| bytes.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')))
}

/// The day that stands before the clock: `2024-05-29t`, `e0529 `, `may 29 `.
fn day(before: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(before).ok()?.trim_end_matches(['t', ' ', '[']);
    let bytes = text.as_bytes();
    if bytes.len() >= 5 {
        let last = &bytes[bytes.len() - 5..];
        if matches!(last[2], b'-' | b'/') {
            return Some(two(&last[0..2])? * 31 + two(&last[3..5])?);
        }
        if last[0].is_ascii_alphabetic() && last[1..].iter().all(u8::is_ascii_digit) {
            return Some(two(&last[1..3])? * 31 + two(&last[3..5])?);
        }
    }
    let (rest, number) = text.rsplit_once(' ')?;
    let day: i64 = number.parse().ok()?;
    let month = rest.trim_end().rsplit(' ').next()?;
    let month = MONTHS.iter().position(|name| *name == month)?;
    i64::try_from(month + 1).ok().map(|month| month * 31 + day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::comparable;

    #[test]
    fn heads_of_every_format_are_read() {
        let expected = Some((5 * 31 + 29) * 86_400 + 8 * 3600 + 4 * 60 + 11);
        for line in [
            "May 29 08:04:11 host kubelet[1]: x",
            "E0529 08:04:11.201000    1 x.go:1] y",
            "2024-05-29T08:04:11.201Z x",
            "time=\"2024-05-29T08:04:11Z\" level=info",
            "{\"level\":\"warn\",\"ts\":\"2024-05-29T08:04:11.201Z\"}",
            "2024/05/29 08:04:11 INF Adding",
            "2024-05-29 08:04:11,464 - url_helper.py[WARNING]",
        ] {
            assert_eq!(seconds(&comparable(line)), expected, "{line}");
        }
        assert_eq!(seconds("no time here"), None);
        assert_eq!(seconds("22:22:44 cst message"), Some(22 * 3600 + 22 * 60 + 44));
    }
}
