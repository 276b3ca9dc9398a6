//! Moments as text: RFC 3339 in UTC with milliseconds, `2026-10-19T09:12:13.042Z`.
//!
//! A [`Time`] that was written by us is read back as the same millisecond. A moment that no calendar of ours can write (before
//! the year −9999, after 9999) is written as its number of milliseconds instead, because a ledger line must never fail for a
//! strange clock. Foreign timestamps do not come through here: they stay text.

use std::fmt;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::time::Time;

const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_millisecond(self.ms) {
            Ok(timestamp) => f.pad(&PRINTER.timestamp_to_string(&timestamp)),
            Err(_) => write!(f, "{} ms", self.ms),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match Timestamp::from_millisecond(self.ms) {
            Ok(timestamp) => serializer.serialize_str(&PRINTER.timestamp_to_string(&timestamp)),
            Err(_) => serializer.serialize_i64(self.ms),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an RFC 3339 time such as 2026-10-19T09:12:13.042Z")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
        let timestamp: Timestamp =
            text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))?;
        Ok(Time::from_ms(timestamp.as_millisecond()))
    }

    fn visit_i64<E: de::Error>(self, ms: i64) -> Result<Time, E> {
        Ok(Time::from_ms(ms))
    }

    fn visit_u64<E: de::Error>(self, ms: u64) -> Result<Time, E> {
        let ms = i64::try_from(ms).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(ms), &self))?;
        Ok(Time::from_ms(ms))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moments_read_as_rfc_3339_with_milliseconds() {
        let written = |ms| serde_json::to_string(&Time::from_ms(ms)).unwrap();
        assert_eq!(written(0), r#""1970-01-01T00:00:00.000Z""#);
        assert_eq!(written(1_792_401_133_042), r#""2026-10-19T09:12:13.042Z""#);
        assert_eq!(written(-1), r#""1969-12-31T23:59:59.999Z""#);
        assert_eq!(written(i64::MAX), "9223372036854775807");
    }

    #[test]
    fn text_that_is_no_time_is_refused_by_name() {
        let error = serde_json::from_str::<Time>(r#""yesterday""#).unwrap_err().to_string();
        assert!(error.contains("yesterday") && error.contains("RFC 3339"), "{error}");
    }

    proptest! {
        #[test]
        fn every_millisecond_survives(ms in any::<i64>()) {
            let time = Time::from_ms(ms);
            let text = serde_json::to_string(&time).unwrap();
            prop_assert_eq!(serde_json::from_str::<Time>(&text).unwrap(), time);
        }
    }
}
