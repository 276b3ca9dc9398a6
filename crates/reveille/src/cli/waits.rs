//! Lengths of time of the command line that are kept in whole seconds: `90s`, `2m`, and a bare number of seconds.

use std::ops::RangeInclusive;

use reveille_core::model::time::Span;
use reveille_wire::duration;

/// Reads a length of time within this range of seconds.
pub(crate) fn seconds(
    range: RangeInclusive<u32>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    move |text| {
        let within = || {
            let [from, to] = [range.start(), range.end()].map(|s| duration::text(Span::from_s((*s).into())));
            format!("write a time from {from} to {to}, such as 90s or 2m")
        };
        let bare = text.trim().parse().ok();
        let read =
            || duration::parse(text).ok().filter(|span| span.ms % 1000 == 0).map(|span| span.ms / 1000);
        let seconds = bare.or_else(|| u32::try_from(read()?).ok());
        seconds.filter(|seconds| range.contains(seconds)).ok_or_else(within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_read_with_a_unit_or_as_seconds() {
        let refused = "write a time from 5s to 10m, such as 90s or 2m".to_owned();
        let table = [
            ("90s", Ok(90)),
            ("2m", Ok(120)),
            ("120", Ok(120)),
            ("1s", Err(refused.clone())),
            ("11m", Err(refused.clone())),
            ("5500ms", Err(refused.clone())),
            ("soon", Err(refused)),
        ];
        for (text, expected) in table {
            assert_eq!(seconds(5..=600)(text), expected, "{text}");
        }
    }
}
