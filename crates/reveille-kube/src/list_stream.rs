//! A list that is read item by item while it arrives, so that it never lies in memory as a whole.
//!
//! ```text
//!  bytes ─▶ head up to "items":[ ─▶ item, item, item … each handed on and forgotten ─▶ ] and the tail
//!              └────────────── head + tail = the list without its items ──────────────┘ read at the end
//! ```
//!
//! Ten thousand leases are nine megabytes of JSON every ten seconds; what is kept of each is a name and a time. A list
//! whose beginning looks otherwise (no array of items near its start) is gathered whole and split afterwards: slower,
//! never wrong. Nothing of a list counts before its end was seen: the caller gets items early, and throws them away when
//! what follows is cut or broken.
//!
//! An item may have megabytes, in hundreds of frames: a kubelet chooses how long the texts of its Node are. One that is not
//! whole is tried again when twice as much of it has come, so that all tries together parse it three times at most.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::{List, ListMeta};

/// A head is small: kind, version, place. What is longer is not looked through for its items.
const HEAD_MAX_BYTES: usize = 64 << 10;

/// A list on its way.
#[derive(Default)]
pub(crate) struct ListStream {
    place: Place,
    /// Bytes that are not used up yet: the head, or the beginning of an item.
    pending: Vec<u8>,
    /// How many bytes the next item had when it was not whole yet; 0 when that was not tried.
    tried_bytes: usize,
    /// The list without its items.
    frame: Vec<u8>,
    /// How many bytes of items were parsed, those parsed again among them.
    #[cfg(test)]
    parsed_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the items.
    #[default]
    Head,
    /// Before an item, or before the comma or bracket after one.
    Items,
    /// After the items.
    Tail,
    /// It is no list of the usual look.
    Whole,
}

/// The list without its items.
#[derive(Deserialize)]
struct Frame {
    #[serde(default)]
    metadata: ListMeta,
}

impl ListStream {
    /// Takes in some bytes, and hands on each item that is complete with them.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(&RawValue),
    ) -> Result<(), serde_json::Error> {
        self.pending.extend_from_slice(bytes);
        if self.place == Place::Head {
            match items_begin(&self.pending) {
                Some(at) => {
                    self.frame.extend(self.pending.drain(..at));
                    self.place = Place::Items;
                }
                None if self.pending.len() > HEAD_MAX_BYTES => self.place = Place::Whole,
                None => {}
            }
        }
        if self.place == Place::Items {
            self.split(each)?;
        }
        if self.place == Place::Tail {
            self.frame.append(&mut self.pending);
        }
        Ok(())
    }

    /// Hands on the items that are whole, and keeps the beginning of the next.
    fn split(&mut self, each: &mut impl FnMut(&RawValue)) -> Result<(), serde_json::Error> {
        let mut used = 0;
        while let Some(skipped) = self.pending[used..].iter().position(|byte| !is_between(*byte)) {
            let from = used + skipped;
            if self.pending[from] == b']' {
                self.place = Place::Tail;
                used = from;
                break;
            }
            let rest = &self.pending[from..];
            if rest.len() < self.tried_bytes.saturating_mul(2) {
                break;
            }
            let item = first(rest)?;
            let parsed = item.map_or(rest.len(), |(_, length)| length);
            #[cfg(test)]
            {
                self.parsed_bytes += parsed;
            }
            let Some((item, _)) = item else {
                self.tried_bytes = parsed;
                break;
            };
            each(item);
            self.tried_bytes = 0;
            used = from + parsed;
        }
        self.pending.drain(..used);
        Ok(())
    }

    /// The list is at its end: what stands around its items.
    pub(crate) fn end(mut self, each: &mut impl FnMut(&RawValue)) -> Result<ListMeta, serde_json::Error> {
        if self.place == Place::Items {
            // Nothing more comes that would be worth waiting for.
            self.tried_bytes = 0;
            self.split(each)?;
        }
        let whole = [self.frame, self.pending].concat();
        if self.place == Place::Tail {
            return serde_json::from_slice::<Frame>(&whole).map(|frame| frame.metadata);
        }
        // Cut in the middle of its items, it is no list; otherwise it was gathered whole.
        let list: List<'_> = serde_json::from_slice(&whole)?;
        list.items.unwrap_or_default().into_iter().for_each(each);
        Ok(list.metadata)
    }
}

/// The value at the beginning of these bytes and its length; `None` when more bytes belong to it.
fn first(bytes: &[u8]) -> Result<Option<(&RawValue, usize)>, serde_json::Error> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<&RawValue>();
    match values.next() {
        Some(Ok(value)) => Ok(Some((value, values.byte_offset()))),
        Some(Err(error)) if !error.is_eof() => Err(error),
        _ => Ok(None),
    }
}

const fn is_between(byte: u8) -> bool {
    matches!(byte, b',' | b' ' | b'\n' | b'\r' | b'\t')
}

/// Where the first item begins. Within a text the key's quotes would have a backslash before them, so it cannot be one.
fn items_begin(head: &[u8]) -> Option<usize> {
    const KEY: &[u8] = b"\"items\"";
    let from = head.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let rest = &head[from..];
    let skip =
        |from: usize| rest[from..].iter().position(|byte| !byte.is_ascii_whitespace()).map(|at| from + at);
    let colon = skip(0).filter(|at| rest[*at] == b':')?;
    let bracket = skip(colon + 1).filter(|at| rest[*at] == b'[')?;
    Some(from + bracket + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"kind":"LeaseList","metadata":{"resourceVersion":"7","continue":"x\"items\":["},
        "items":[{"a":"]}"},{"b":[1,{"c":"\"}"}]} , {"d":null}],"more":{"items":[]}}"#;

    fn read(list: &str, by: usize) -> Result<(Vec<String>, ListMeta), serde_json::Error> {
        let (mut stream, mut items) = (ListStream::default(), Vec::new());
        let mut each = |item: &RawValue| items.push(item.get().to_owned());
        for bytes in list.as_bytes().chunks(by) {
            stream.take(bytes, &mut each)?;
        }
        let meta = stream.end(&mut each)?;
        Ok((items, meta))
    }

    #[test]
    fn items_are_the_same_however_the_bytes_come() {
        for by in 1..=LIST.len() {
            let (items, meta) = read(LIST, by).unwrap();
            assert_eq!(items, [r#"{"a":"]}"}"#, r#"{"b":[1,{"c":"\"}"}]}"#, r#"{"d":null}"#], "by {by}");
            assert_eq!(meta.resource_version.as_deref(), Some("7"));
            assert_eq!(meta.next.as_deref(), Some("x\"items\":["));
        }
    }

    #[test]
    fn item_is_passed_on_before_list_ends_and_is_not_kept() {
        let (mut stream, mut count) = (ListStream::default(), 0);
        stream.take(br#"{"metadata":{"resourceVersion":"7"},"items":["#, &mut |_| count += 1).unwrap();
        for _ in 0..1_000 {
            stream.take(br#"{"metadata":{"name":"a"}},"#, &mut |_| count += 1).unwrap();
        }
        assert_eq!(count, 1_000);
        assert!(stream.pending.len() <= 1, "a comma at most");
        assert!(stream.pending.capacity() < 1_000);
    }

    /// The client that writes an object of a list chooses its length, and everything else waits while the object is read.
    #[test]
    fn parse_work_grows_linearly_with_item_length() {
        let long = format!(r#"{{"message":"{}"}}"#, r"\u0001".repeat(100_000));
        let list = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{long},{{"a":1}},{long}]}}"#);
        for by in [1 << 10, 16 << 10, list.len()] {
            let (mut stream, mut items) = (ListStream::default(), Vec::new());
            let mut each = |item: &RawValue| items.push(item.get().len());
            for bytes in list.as_bytes().chunks(by) {
                stream.take(bytes, &mut each).unwrap();
            }
            let parsed = stream.parsed_bytes;
            assert!(parsed <= 4 * list.len(), "by {by}: {parsed} bytes parsed of {}", list.len());
            assert!(stream.end(&mut each).is_ok(), "by {by}");
            assert_eq!(items, [long.len(), 7, long.len()], "by {by}");
        }
    }

    #[test]
    fn truncated_or_invalid_list_is_an_error_unusual_list_is_read() {
        for cut in
            [r#"{"metadata":{},"items":[{"a":1},"#, r#"{"metadata":{},"items":[{"a":1"#, "<html>", "", LIST]
        {
            let cut = if cut == LIST { &LIST[..LIST.len() - 1] } else { cut };
            for by in [1, 7, 4096] {
                assert!(read(cut, by).is_err(), "{cut}");
            }
        }
        for (unusual, count) in
            [(r#"{"items":null,"metadata":{"resourceVersion":"7"}}"#, 0), (r#"{"metadata":{}}"#, 0)]
        {
            assert_eq!(read(unusual, 3).unwrap().0.len(), count, "{unusual}");
        }
        let long = format!(r#"{{"junk":"{}","items":[{{"a":1}}]}}"#, "x".repeat(HEAD_MAX_BYTES * 2));
        assert_eq!(read(&long, 4096).unwrap().0, [r#"{"a":1}"#]);
    }
}
