//! Texts and lists with a size limit: the reader refuses a peer's text by its length before it keeps it.
//!
//! [`Text`] refuses a text that is longer than its limit and replaces control characters. A [`Word`] is also a single line
//! without characters that turn or hide text, so that no name can forge a log line or reorder a table. [`List`] stops
//! reading at its limit. [`Secret`] is a text that is written to JSON, because it has to travel, and to nothing else.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use reveille_core::model::hidden::is_hidden;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A text of at most `MAX` bytes, without control characters; with `LINES` it may have several lines and tabs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<const MAX: usize, const LINES: bool = true>(Arc<str>);

/// A name, an id, a time stamp: one line, all of it visible.
pub type Word = Text<256, false>;
/// A sentence or two.
pub type Sentence = Text<1024>;
/// The last lines of an output.
pub type Tail = Text<8192>;
/// A file of a plan, or a certificate chain.
pub type Content = Text<{ 512 << 10 }>;

impl<const MAX: usize, const LINES: bool> Text<MAX, LINES> {
    /// The beginning of `text` that fits, cut at a character, with control characters replaced.
    pub fn cut(text: &str) -> Self {
        let is_kept = |c: char| match LINES {
            true => !c.is_control() || matches!(c, '\n' | '\t'),
            false => !is_hidden(c),
        };
        let printable = |c: char| if is_kept(c) { c } else { '\u{fffd}' };
        let mut kept = String::with_capacity(text.len().min(MAX));
        for c in text.chars().map(printable) {
            if kept.len() + c.len_utf8() > MAX {
                break;
            }
            kept.push(c);
        }
        Self(Arc::from(kept))
    }

    /// The end of `text`, where it is too long: the last line tells the reason.
    pub fn tail(text: &str) -> Self {
        let from = text.len().saturating_sub(MAX);
        let from = (from..=text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(text.len());
        Self::cut(&text[from..])
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The shared bytes.
    pub fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl<const MAX: usize, const LINES: bool> Default for Text<MAX, LINES> {
    fn default() -> Self {
        Self(Arc::from(""))
    }
}

impl<const MAX: usize, const LINES: bool> Deref for Text<MAX, LINES> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize, const LINES: bool> From<&str> for Text<MAX, LINES> {
    fn from(text: &str) -> Self {
        Self::cut(text)
    }
}

impl<const MAX: usize, const LINES: bool> fmt::Display for Text<MAX, LINES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<const MAX: usize, const LINES: bool> fmt::Debug for Text<MAX, LINES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl<const MAX: usize, const LINES: bool> Serialize for Text<MAX, LINES> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de, const MAX: usize, const LINES: bool> Deserialize<'de> for Text<MAX, LINES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reads<const MAX: usize, const LINES: bool>;
        impl<const MAX: usize, const LINES: bool> Visitor<'_> for Reads<MAX, LINES> {
            type Value = Text<MAX, LINES>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a text of at most {MAX} bytes")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<MAX, LINES>, E> {
                if text.len() > MAX {
                    // The error gives the length, not the content, because errors are logged.
                    return Err(E::custom(format_args!(
                        "a text of {} bytes, and {MAX} are taken",
                        text.len()
                    )));
                }
                let read = Text::cut(text);
                // A replaced character may take more bytes than before. Then the text was cut, and a cut value is another value.
                let grew = text.chars().count() != read.0.chars().count();
                if grew {
                    Err(E::custom("a text with hidden characters that does not fit"))
                } else {
                    Ok(read)
                }
            }
        }
        deserializer.deserialize_str(Reads::<MAX, LINES>)
    }
}

/// At most `MAX` items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct List<T, const MAX: usize>(Vec<T>);

impl<T, const MAX: usize> List<T, MAX> {
    /// The first `MAX` items.
    pub fn first(items: impl IntoIterator<Item = T>) -> Self {
        Self(items.into_iter().take(MAX).collect())
    }

    /// True when there are no items.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The items.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T, const MAX: usize> Default for List<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const MAX: usize> Deref for List<T, MAX> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Serialize, const MAX: usize> Serialize for List<T, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reads<T, const MAX: usize>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Reads<T, MAX> {
            type Value = List<T, MAX>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {MAX}")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut kept = Vec::new();
                while let Some(item) = items.next_element()? {
                    if kept.len() == MAX {
                        return Err(de::Error::custom(format_args!("a list of more than {MAX}")));
                    }
                    kept.push(item);
                }
                Ok(List(kept))
            }
        }
        deserializer.deserialize_seq(Reads(std::marker::PhantomData))
    }
}

/// A text that no log, error or Debug output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Text<4096>);

impl Secret {
    /// Wraps the text.
    pub fn new(text: &str) -> Self {
        Self(Text::cut(text))
    }

    /// Returns the text, for the one place that uses it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(Self)
    }
}
