//! The words that stand in slots: times, counts, machines, pools, zones, quoted texts, causes.
//!
//! Each reader refuses with a reason that says what would be right.

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::cause::Cause;
use reveille_core::model::id::{PoolName, ZoneName};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;
use reveille_core::record::Verdict;

use crate::world::vm::Trouble;

use super::phrase::{Known, Slots, nearest};

/// Machines as a statement names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Machines {
    /// By their names, in order.
    Named(Vec<String>),
    /// Every machine of a pool that there is then.
    OfPool(PoolName),
    /// Every machine of a zone.
    OfZone(ZoneName),
    /// Every machine of the roster.
    All,
}

/// `90s`, `20m`, `1h30m`, `2d`, `500ms`.
pub(crate) fn span(text: &str) -> Result<Span, String> {
    let wrong = || format!("`{text}` is no time; write for instance 90s, 20m or 1h30m");
    let mut rest = text;
    let mut ms: i64 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: i64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        rest = &rest[end..];
        ms = number.checked_mul(unit).and_then(|more| ms.checked_add(more)).ok_or_else(wrong)?;
    }
    if ms > 400 * 86_400_000 {
        return Err(format!("`{text}` is longer than a scenario can be; at most 400d"));
    }
    Ok(Span::from_ms(ms))
}

/// A time as it is shown in transcripts: `1:02:03`.
pub(crate) fn shown(span: Span) -> String {
    let s = span.ms / 1000;
    format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// A number.
pub(crate) fn count(text: &str) -> Result<u32, String> {
    let number = text.parse().map_err(|_| format!("`{text}` is no number; write for instance 3"))?;
    if number > 100_000 { Err(format!("{text} is too many; at most 100000")) } else { Ok(number) }
}

/// A share: `20%`.
pub(crate) fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse::<u8>().ok());
    number
        .filter(|number| (1..=100).contains(number))
        .ok_or_else(|| format!("`{text}` is no share; write 1% to 100%"))
}

/// A text in quotes.
pub(crate) fn quoted(text: &str) -> Result<String, String> {
    let inside =
        text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).filter(|text| !text.is_empty());
    inside.map(str::to_owned).ok_or_else(|| format!("`{text}` must stand in quotes: \"{text}\""))
}

/// The name of a pool or zone that is to be: small letters, digits and dashes.
pub(crate) fn new_name(text: &str) -> Result<&str, String> {
    let fine = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if fine {
        Ok(text)
    } else {
        Err(format!("`{text}` is no name; write small letters, digits and dashes, a letter first"))
    }
}

/// A pool of the file.
pub(crate) fn pool(text: &str, known: &Known) -> Result<PoolName, String> {
    if known.pools.contains(text) {
        return Ok(PoolName::from(text));
    }
    Err(format!("there is no pool `{text}`; the file has {}", listed(known.pools.iter())))
}

/// A zone of the file.
pub(crate) fn zone(text: &str, known: &Known) -> Result<ZoneName, String> {
    if known.zones.contains(text) {
        return Ok(ZoneName::from(text));
    }
    Err(format!("there is no zone `{text}`; the file has {}", listed(known.zones.iter())))
}

fn listed<'n>(names: impl Iterator<Item = &'n String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// One machine: a pool's name and a number, perhaps `-twin` or `-again`; or a neighbour.
pub(crate) fn machine(text: &str, known: &Known) -> Result<(String, PoolName), String> {
    let wrong = || {
        let example = known.pools.first().map_or("workers", String::as_str);
        format!("`{text}` is no machine; write a pool and a number, for instance {example}-1")
    };
    let stem = text.strip_suffix("-twin").or_else(|| text.strip_suffix("-again")).unwrap_or(text);
    let (of, number) = stem.rsplit_once('-').ok_or_else(wrong)?;
    let number: u32 = number.parse().map_err(|_| wrong())?;
    if number == 0 {
        return Err(wrong());
    }
    if of == "neighbour" {
        return Ok((text.to_owned(), PoolName::from("neighbour")));
    }
    if !known.pools.contains(of) {
        return Err(format!(
            "there is no pool `{of}` for `{text}`; the file has {}",
            listed(known.pools.iter())
        ));
    }
    Ok((text.to_owned(), PoolName::from(of)))
}

/// `workers-1`, `workers-1, workers-4`, `workers-1..8`, `every machine of workers`, `every machine in zone a`.
pub(crate) fn machines(text: &str, known: &Known) -> Result<Machines, String> {
    if text == "every machine" {
        return Ok(Machines::All);
    }
    if let Some(name) = text.strip_prefix("every machine of ") {
        return pool(name, known).map(Machines::OfPool);
    }
    if let Some(name) = text.strip_prefix("every machine in zone ") {
        return zone(name, known).map(Machines::OfZone);
    }
    let mut named = Vec::new();
    for item in text.split(", ").flat_map(|item| item.split(" and ")) {
        match item.split_once("..") {
            None => named.push(machine(item, known)?.0),
            Some((first, last)) => {
                let (name, of) = machine(first, known)?;
                let from = count(name.rsplit('-').next().unwrap_or_default())?;
                let to = count(last)?;
                if to < from || to - from > 5_000 {
                    return Err(format!("`{item}` ends before it begins; write for instance {of}-1..8"));
                }
                named.extend((from..=to).map(|number| format!("{of}-{number}")));
            }
        }
    }
    Ok(Machines::Named(named))
}

/// What is wrong inside a machine, in the words of the world.
pub(crate) fn trouble(text: &str) -> Result<Trouble, String> {
    Trouble::ALL.iter().copied().find(|trouble| trouble.sentence() == text).ok_or_else(|| {
        let all: Vec<&str> = Trouble::ALL.iter().map(|trouble| trouble.sentence()).collect();
        format!("`{text}` is nothing that can be wrong with a machine; one of: {}", all.join("; "))
    })
}

/// How reads of the cloud fail.
pub(crate) fn read_error(text: &str) -> Result<ReadErrorKind, String> {
    Ok(match text {
        "429" => ReadErrorKind::Throttled,
        "503" => ReadErrorKind::Unavailable,
        "401" => ReadErrorKind::Unauthorized,
        "a page that is missing" => ReadErrorKind::Incomplete,
        "nothing" => ReadErrorKind::TimedOut,
        _ => {
            return Err(format!(
                "`{text}` is no answer; one of: 429; 503; 401; nothing; a page that is missing"
            ));
        }
    })
}

pub(crate) fn kind(text: &str) -> Result<FaultKind, String> {
    FaultKind::from_name(text).ok_or_else(|| {
        let near = nearest_word(FaultKind::ALL.iter().map(|kind| kind.name()), text);
        let all: Vec<&str> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
        format!("`{text}` is no fault; did you mean {near}? There are: {}", all.join(", "))
    })
}

/// A cause by its code or its label.
pub(crate) fn cause(text: &str) -> Result<Cause, String> {
    crate::catalogue::cause(text).ok_or_else(|| {
        let labels = crate::catalogue::labels();
        let near = nearest_word(labels.iter().map(String::as_str), text);
        format!("`{text}` is no cause; write its code (RV104) or its label; did you mean {near}?")
    })
}

pub(crate) fn stage(text: &str) -> Result<Stage, String> {
    Stage::from_name(text).ok_or_else(|| {
        let all: Vec<&str> = Stage::ALL.iter().map(|stage| stage.name()).collect();
        format!("`{text}` is no stage; one of: {}", all.join(", "))
    })
}

pub(crate) fn verdict(text: &str) -> Result<Verdict, String> {
    const ALL: [Verdict; 4] =
        [Verdict::Mended, Verdict::Recovered, Verdict::SubjectGone, Verdict::Superseded];
    ALL.into_iter().find(|verdict| verdict.name() == text).ok_or_else(|| {
        let all: Vec<&str> = ALL.iter().map(|verdict| verdict.name()).collect();
        format!("`{text}` is no verdict; one of: {}", all.join(", "))
    })
}

/// The word that shares the longest beginning with the text, then the first.
fn nearest_word<'w>(words: impl Iterator<Item = &'w str> + Clone, text: &str) -> &'w str {
    let shared = |word: &str| word.chars().zip(text.chars()).take_while(|(a, b)| a == b).count();
    let best = words.clone().map(shared).max().unwrap_or(0);
    let mut words = words.filter(move |word| shared(word) == best);
    words.next().unwrap_or_else(|| nearest(std::iter::once(""), text))
}

impl Slots<'_> {
    /// The text that stands in quotes.
    pub(crate) fn quoted(&self) -> Result<String, String> {
        quoted(self.text("text"))
    }

    pub(crate) fn machines(&self) -> Result<Machines, String> {
        machines(self.text("machines"), self.known)
    }

    pub(crate) fn pool(&self) -> Result<PoolName, String> {
        pool(self.text("pool"), self.known)
    }

    pub(crate) fn zone(&self) -> Result<ZoneName, String> {
        zone(self.text("zone"), self.known)
    }

    pub(crate) fn span(&self) -> Result<Span, String> {
        span(self.text("span"))
    }

    pub(crate) fn count(&self) -> Result<u32, String> {
        count(self.text("count"))
    }
}

/// A role's name: one word, as Keystone has it.
pub(crate) fn role(text: &str) -> Result<&str, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.is_empty() || !text.chars().all(fits) {
        return Err(format!("`{text}` is no role; write letters, digits, _ and -"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_sums_of_numbers_with_units() {
        assert_eq!(span("90s"), Ok(Span::from_s(90)));
        assert_eq!(span("1h30m"), Ok(Span::from_min(90)));
        assert_eq!(span("500ms"), Ok(Span::from_ms(500)));
        for wrong in ["", "10", "m", "10x", "-5m", "1.5h", "10 m", "99999999999999d"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn machines_are_named_alone_in_lists_by_pool_or_by_zone() {
        let known =
            Known { pools: ["workers".into()].into(), zones: ["a".into()].into(), ..Known::default() };
        let named = |names: &[&str]| Ok(Machines::Named(names.iter().map(ToString::to_string).collect()));
        assert_eq!(machines("workers-1", &known), named(&["workers-1"]));
        assert_eq!(machines("workers-2..4", &known), named(&["workers-2", "workers-3", "workers-4"]));
        assert_eq!(machines("workers-1 and workers-7", &known), named(&["workers-1", "workers-7"]));
        assert_eq!(machines("every machine of workers", &known), Ok(Machines::OfPool("workers".into())));
        assert_eq!(machines("every machine in zone a", &known), Ok(Machines::OfZone("a".into())));
        for wrong in [
            "workers",
            "gpu-1",
            "workers-0",
            "workers-4..2",
            "every machine of gpu",
            "every machine in zone b",
        ] {
            assert!(machines(wrong, &known).is_err(), "{wrong}");
        }
    }
}
