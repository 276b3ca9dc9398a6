//! Lengths of time as people write them: `90s`, `15m`, `1h30m`.
//!
//! [`parse`] reads them into the core's [`Span`]; [`text`] writes a [`Span`] so that [`parse`] reads the same one back.
//! The parser refuses a number without a unit (except zero, which needs none) and does not guess. It refuses days and
//! longer units too, because a day is not always 24 hours. The caller decides whether a length makes sense for a field.

use jiff::SignedDuration;
use jiff::fmt::friendly::{Designator, Spacing, SpanPrinter};
use reveille_core::model::time::Span;
use thiserror::Error;

/// Why a text is not a length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DurationError {
    /// A bare number.
    #[error("has no unit")]
    NoUnit,
    /// A negative length.
    #[error("is negative")]
    Negative,
    /// Not made of numbers and the units `h`, `m`, `s`, `ms`.
    #[error("is not a length of time")]
    Unread,
}

/// Reads a length of time.
///
/// # Errors
/// When the text has no unit, is negative, or is not made of hours, minutes, seconds and milliseconds.
pub fn parse(text: &str) -> Result<Span, DurationError> {
    let text = text.trim();
    if text == "0" {
        return Ok(Span::ZERO);
    }
    if text.parse::<f64>().is_ok() {
        return Err(DurationError::NoUnit);
    }
    let duration: SignedDuration = text.parse().map_err(|_| DurationError::Unread)?;
    if duration.is_negative() {
        return Err(DurationError::Negative);
    }
    i64::try_from(duration.as_millis()).map(Span::from_ms).map_err(|_| DurationError::Unread)
}

/// Writes a length of time: `1h30m`, `15m`, `2m30s`, `0s`.
pub fn text(span: Span) -> String {
    const PRINTER: SpanPrinter = SpanPrinter::new().designator(Designator::Compact).spacing(Spacing::None);
    PRINTER.duration_to_string(&SignedDuration::from_millis(span.ms))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_read_as_people_write_them() {
        let table = [
            ("90s", Ok(Span::from_s(90))),
            ("15m", Ok(Span::from_min(15))),
            ("1h30m", Ok(Span::from_min(90))),
            ("1h 30m", Ok(Span::from_min(90))),
            ("250ms", Ok(Span::from_ms(250))),
            ("0s", Ok(Span::ZERO)),
            ("0", Ok(Span::ZERO)),
            ("15", Err(DurationError::NoUnit)),
            ("1.5", Err(DurationError::NoUnit)),
            ("-15m", Err(DurationError::Negative)),
            ("2d", Err(DurationError::Unread)),
            ("15 min 3", Err(DurationError::Unread)),
            ("soon", Err(DurationError::Unread)),
            ("", Err(DurationError::Unread)),
            ("99999999999999999h", Err(DurationError::Unread)),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn lengths_are_written_short() {
        assert_eq!(text(Span::from_min(90)), "1h30m");
        assert_eq!(text(Span::from_min(15)), "15m");
        assert_eq!(text(Span::from_s(30)), "30s");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ms in 0..10_000_000_000_i64) {
            prop_assert_eq!(parse(&text(Span::from_ms(ms))), Ok(Span::from_ms(ms)));
        }
    }
}
