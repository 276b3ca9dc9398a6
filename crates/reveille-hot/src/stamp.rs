//! Timestamps that other programs wrote, as milliseconds that may be subtracted from each other and from nothing else.
//!
//! ```text
//!  2026-01-01T10:00:05.5Z        RFC 3339, in audit logs and metadata ─┐
//!  Thu, 01 Jan 2026 10:00:05 GMT HTTP's Date, of the API server       ─┼─▶ Stamp ─▶ after(earlier) ─▶ Span
//!  0101 10:00:05.500000          klog, which names no year            ─┘
//! ```
//!
//! A [`Stamp`] is not a `Time`: our clock never meets it. The difference of two is a span on the clock of the machine that wrote
//! both, so each caller says whose clock that is.

use reveille_core::model::time::Span;

/// A moment on another machine's clock, milliseconds since 1970 there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    ms: i64,
}

/// klog names no year. A leap year holds every day that it can name.
const YEAR_OF_KLOG: i64 = 2024;
/// Days of that year.
const YEAR_OF_KLOG_MS: i64 = 366 * 86_400_000;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Stamp {
    /// `2026-01-01T10:00:05[.123456]Z`, or with an offset.
    pub fn of_rfc3339(text: &str) -> Option<Self> {
        let (date, rest) = text.split_once(['T', 't', ' '])?;
        let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
        let (year, month, day) = (date.next()??, date.next()??, date.next()??);
        let zone_at = rest.find(['Z', 'z', '+', '-'])?;
        let (clock, zone) = rest.split_at(zone_at);
        let offset_min = match zone.as_bytes().first()? {
            b'Z' | b'z' => 0,
            sign => {
                let (hours, minutes) = zone[1..].split_once(':')?;
                let ahead = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
                if *sign == b'-' { -ahead } else { ahead }
            }
        };
        let ms = day_ms(year, month, day)? + clock_ms(clock)? - offset_min * 60_000;
        Some(Self { ms })
    }

    /// `Thu, 01 Jan 2026 10:00:05 GMT`.
    pub fn of_http_date(text: &str) -> Option<Self> {
        let mut words = text.split_once(", ")?.1.split(' ');
        let day = words.next()?.parse().ok()?;
        let month = words.next()?;
        let month = i64::try_from(MONTHS.iter().position(|name| *name == month)?).ok()? + 1;
        let year = words.next()?.parse().ok()?;
        Some(Self { ms: day_ms(year, month, day)? + clock_ms(words.next()?)? })
    }

    /// `0101 10:00:05.500000`, as it stands behind klog's letter, in a year that stands for all.
    pub fn of_klog(text: &str) -> Option<Self> {
        let (date, clock) = text.split_once(' ')?;
        if date.len() != 4 || !date.is_ascii() {
            return None;
        }
        let (month, day) = (date[..2].parse().ok()?, date[2..].parse().ok()?);
        Some(Self { ms: day_ms(YEAR_OF_KLOG, month, day)? + clock_ms(clock.trim_start())? })
    }

    /// How long after `earlier` this was; zero when it was not after it.
    pub const fn after(self, earlier: Self) -> Span {
        let ms = self.ms - earlier.ms;
        Span::from_ms(if ms < 0 { 0 } else { ms })
    }

    /// Where this lies from `origin`, before it or behind it.
    pub const fn from_origin(self, origin: Self) -> Span {
        Span::from_ms(self.ms - origin.ms)
    }

    /// The same where neither names its year: no log is as long as half a year, and one goes from December to January.
    pub const fn from_origin_without_year(self, origin: Self) -> Span {
        let ms = self.ms - origin.ms;
        Span::from_ms(if ms > YEAR_OF_KLOG_MS / 2 {
            ms - YEAR_OF_KLOG_MS
        } else if ms < -YEAR_OF_KLOG_MS / 2 {
            ms + YEAR_OF_KLOG_MS
        } else {
            ms
        })
    }
}

/// Milliseconds from 1970 to the beginning of a day; `None` when there is no such day.
fn day_ms(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have their leap day at their end.
    let years = year - i64::from(month <= 2);
    let months = (month + 9) % 12;
    let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1;
    const DAYS_TO_1970: i64 = 719_468;
    Some((days - DAYS_TO_1970) * 86_400_000)
}

/// `10:00:05[.5]` since midnight.
fn clock_ms(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok()?;
    let (seconds, fraction) = parts.next().map(|part| part.split_once('.').unwrap_or((part, "0")))?;
    let seconds: i64 = seconds.parse().ok()?;
    let digits: String = fraction.chars().take(3).collect();
    let fraction = digits.parse::<i64>().ok()? * [0, 100, 10, 1].get(digits.len())?;
    let fits = (0..24).contains(&hours) && (0..60).contains(&minutes) && (0..=60).contains(&seconds);
    fits.then_some(((hours * 60 + minutes) * 60 + seconds) * 1000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_moment_is_the_same_in_every_notation() {
        let ms = |stamp: Option<Stamp>| stamp.map(|stamp| stamp.ms);
        let wanted = Some(1_767_261_605_000);
        for text in ["2026-01-01T10:00:05Z", "2026-01-01T12:30:05+02:30", "2026-01-01t09:00:05.000000-01:00"]
        {
            assert_eq!(ms(Stamp::of_rfc3339(text)), wanted, "{text}");
        }
        assert_eq!(ms(Stamp::of_http_date("Thu, 01 Jan 2026 10:00:05 GMT")), wanted);
        assert_eq!(ms(Stamp::of_rfc3339("1970-01-01T00:00:00.25Z")), Some(250));
        assert_eq!(ms(Stamp::of_rfc3339("2024-02-29T00:00:00Z")), Some(1_709_164_800_000));
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in ["", "yesterday", "2026-13-01T00:00:00Z", "2026-01-01T25:00:00Z", "2026-01-01T00:00:00"] {
            assert_eq!(Stamp::of_rfc3339(text), None, "{text}");
        }
        for text in ["", "01-1 00:00:00", "ä1 00:00:00", "0101"] {
            assert_eq!(Stamp::of_klog(text), None, "{text}");
        }
    }

    #[test]
    fn klogs_year_ends_and_its_log_goes_on() {
        let at = |text| Stamp::of_klog(text).unwrap();
        let (eve, new_year) = (at("1231 23:59:59.500000"), at("0101 00:00:00.500000"));
        assert_eq!(new_year.from_origin_without_year(eve), Span::from_s(1));
        assert_eq!(eve.from_origin_without_year(new_year), Span::from_s(-1));
        assert_eq!(eve.from_origin_without_year(eve), Span::ZERO);
    }
}
