//! The file as it is written: texts, lists and maps, each with its position.
//!
//! A direct conversion into typed structs would stop at the first mistake and lose the positions of the others. So the
//! YAML parser fills this tree first. Scalars stay the text that the author wrote: `off` is the word, never a boolean,
//! and `1.10` never becomes `1.1`, whatever a YAML version makes of them. The readers of the sections give each value its
//! meaning later. The parser limits size and depth before it keeps anything.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::{Location, MessageFormatter, Options, Spanned};

use super::complaint::Place;

/// One node of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    /// Where it begins.
    pub(super) at: Place,
    /// What it is.
    pub(super) kind: Kind,
}

/// What a node can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing: an empty value, `null`, `~`.
    Nothing,
    /// Any scalar, as written, without its quotes.
    Text(String),
    /// A list.
    List(Vec<Tree>),
    /// A map, in the order of the file.
    Map(Vec<(Key, Tree)>),
}

/// A key and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Where it begins.
    pub(super) at: Place,
    /// As written.
    pub(super) text: String,
}

impl Tree {
    /// What it is, for messages.
    pub(super) const fn noun(&self) -> &'static str {
        match self.kind {
            Kind::Nothing => "nothing",
            Kind::Text(_) => "a single value",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }
}

/// Why the text is not acceptable YAML.
pub(super) struct NotYaml {
    /// Where, when the parser knows.
    pub(super) at: Place,
    /// The parser's message, one line.
    pub(super) text: String,
}

/// Reads every document of the text. Empty documents are left out.
pub(super) fn read(text: &str) -> Result<Vec<Tree>, NotYaml> {
    let raws: Vec<Spanned<Raw>> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| NotYaml {
            at: error.location().map_or(Place::default(), place),
            text: words(&error),
        })?;
    Ok(raws.into_iter().map(|raw| resolve(raw, text)).collect())
}

/// The parser's message without its position, in one line.
fn words(error: &serde_saphyr::Error) -> String {
    let said = serde_saphyr::UserMessageFormatter.format_message(error.without_snippet());
    said.chars().flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] }).collect()
}

fn options() -> Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_documents: 64,
            max_depth: 24,
            max_nodes: 50_000,
            max_events: 200_000,
            max_aliases: 1_000,
            max_total_scalar_bytes: 1_000_000,
        },
    }
}

fn place(location: Location) -> Place {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Place { line: number(location.line()), column: number(location.column()) }
}

/// A node as serde returns it: a value that YAML does not take for text has lost its spelling.
#[derive(Debug)]
enum Raw {
    Nothing,
    Text(String),
    Typed,
    List(Vec<Spanned<Self>>),
    Map(Vec<(Spanned<Spelling>, Spanned<Self>)>),
}

/// A key; YAML keys may be numbers and booleans, here they are text.
#[derive(Debug)]
struct Spelling(String);

impl<'de> Deserialize<'de> for Spelling {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a map")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw::Typed)
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }
}

/// Gives every node its position, and every typed scalar its original spelling.
fn resolve(raw: Spanned<Raw>, source: &str) -> Tree {
    let at = place(raw.defined);
    let kind = match raw.value {
        Raw::Nothing => Kind::Nothing,
        Raw::Text(text) => Kind::Text(text),
        Raw::Typed => Kind::Text(spelling(raw.defined, source).to_owned()),
        Raw::List(items) => Kind::List(items.into_iter().map(|item| resolve(item, source)).collect()),
        Raw::Map(entries) => Kind::Map(
            entries
                .into_iter()
                .map(|(key, value)| {
                    let key = Key { at: place(key.defined), text: key.value.0 };
                    (key, resolve(value, source))
                })
                .collect(),
        ),
    };
    Tree { at, kind }
}

fn spelling(location: Location, source: &str) -> &str {
    let span = location.span();
    let slice = span.byte_offset().zip(span.byte_len()).and_then(|(from, len)| {
        let from = usize::try_from(from).ok()?;
        let to = from.checked_add(usize::try_from(len).ok()?)?;
        source.get(from..to)
    });
    slice.unwrap_or("").trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(value: &str) -> Tree {
        let Kind::Map(mut entries) = read(&format!("é: ü\nkey: {value}\n")).ok().unwrap().remove(0).kind
        else {
            unreachable!("a map was written")
        };
        entries.remove(1).1
    }

    #[test]
    fn scalars_keep_the_spelling_of_their_author() {
        for word in
            ["off", "on", "no", "NO", "true", "30%", "30", "0x1F", "1.10", "1e3", "012", "1:30", "v1.0"]
        {
            assert_eq!(scalar(word).kind, Kind::Text(word.to_owned()));
        }
        assert_eq!(scalar("\"off\"").kind, Kind::Text("off".to_owned()));
        assert_eq!(scalar("'30%'").kind, Kind::Text("30%".to_owned()));
        assert_eq!(scalar("1.10  # after").kind, Kind::Text("1.10".to_owned()));
        assert_eq!(scalar("&a 17").kind, Kind::Text("17".to_owned()));
        for nothing in ["", "~", "null"] {
            assert_eq!(scalar(nothing).kind, Kind::Nothing, "{nothing:?}");
        }
    }

    #[test]
    fn places_count_lines_and_characters_from_one() {
        assert_eq!(scalar("off").at, Place { line: 2, column: 6 });
        let trees = read("a: {ü: 1, b: [x, yy]}\n---\nc: &n 5\nd: *n\n").ok().unwrap();
        let Kind::Map(first) = &trees[0].kind else { unreachable!("a map was written") };
        let Kind::Map(inner) = &first[0].1.kind else { unreachable!("a map was written") };
        assert_eq!(inner[1].0.at, Place { line: 1, column: 11 });
        let Kind::List(items) = &inner[1].1.kind else { unreachable!("a list was written") };
        assert_eq!(items[1].at, Place { line: 1, column: 18 });
        let Kind::Map(second) = &trees[1].kind else { unreachable!("a map was written") };
        assert_eq!((second[1].0.at.line, second[1].1.at.line), (4, 3));
        assert_eq!(second[1].1.kind, Kind::Text("5".to_owned()));
    }

    #[test]
    fn hostile_files_are_refused_within_bounds() {
        let deep = format!("{}{}", "[".repeat(60), "]".repeat(60));
        let laughs = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n\
                      d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]\n";
        for text in [deep.as_str(), laughs, "a: [", "a: 1\na: 2\n", "%YAML 9", "\u{0}"] {
            assert!(read(text).is_err(), "{text:.40}");
        }
    }
}
