//! A signal on an object, and whether it counts: an annotation, a label, a condition or a field, with the values that count.
//!
//! ```text
//!  {annotation: karpenter.sh/do-not-disrupt, is: ["true"]} ─▶ Sign ─▶ counts(Seen) ─▶ bool
//! ```
//!
//! Signs say when a machine is on hold, on its way out, idle, or failed. Whose values are looked up, and how a wrong type is
//! told, is the reader's part: here are only the shape and the comparison.

use serde::Deserialize;

use crate::path::Path;

/// Where a signal is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// The annotation of this key.
    Annotation(Box<str>),
    /// Any annotation whose key is this, or this and a slash and more: Metal3's `reboot.metal3.io/…`.
    AnnotationPrefix(Box<str>),
    /// The label of this key.
    Label(Box<str>),
    /// The status of the condition of this type.
    Condition(Box<str>),
    /// The field at this path.
    Field(Path),
}

/// Which values count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// Any that is there. An annotation is there with an empty value as well: `cluster.x-k8s.io/paused: ""`.
    Present,
    /// None: it counts where the signal is not there.
    Absent,
    /// One of these.
    Among(Vec<Box<str>>),
    /// Any that is there and none of these.
    NotAmong(Vec<Box<str>>),
}

/// A signal and the values that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    /// Where it is.
    pub look: Look,
    /// Which values count.
    pub values: Values,
    /// For a condition: with a reason among these it does not count.
    pub unless_reason: Vec<Box<str>>,
}

/// A signal as a map writes it. Exactly one place, and at most one choice of values; without one, any value counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SignEntry {
    pub(crate) annotation: Option<String>,
    pub(crate) annotation_prefix: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) condition: Option<String>,
    pub(crate) field: Option<Path>,
    pub(crate) is: Option<Vec<String>>,
    pub(crate) is_not: Option<Vec<String>>,
    pub(crate) absent: bool,
    pub(crate) unless_reason: Vec<String>,
    pub(crate) words: Option<String>,
}

impl Values {
    /// Whether this value counts; `None` is a signal that is not there.
    pub fn count(&self, value: Option<&str>) -> bool {
        match (self, value) {
            (Self::Absent, value) => value.is_none(),
            (_, None) => false,
            (Self::Present, Some(_)) => true,
            (Self::Among(words), Some(value)) => words.iter().any(|word| **word == *value),
            (Self::NotAmong(words), Some(value)) => words.iter().all(|word| **word != *value),
        }
    }
}

impl Sign {
    /// Whether a signal of this value and this reason counts.
    pub fn counts(&self, value: Option<&str>, reason: Option<&str>) -> bool {
        let is_excused = reason.is_some_and(|reason| self.unless_reason.iter().any(|word| **word == *reason));
        self.values.count(value) && !is_excused
    }
}

impl SignEntry {
    /// The sign that it describes.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words.
    pub(crate) fn sign(self) -> Result<Sign, String> {
        let boxed = |words: Vec<String>| words.into_iter().map(String::into_boxed_str).collect::<Vec<_>>();
        let places = [
            self.annotation.map(|key| Look::Annotation(key.into())),
            self.annotation_prefix.map(|key| Look::AnnotationPrefix(key.into())),
            self.label.map(|key| Look::Label(key.into())),
            self.condition.map(|name| Look::Condition(name.into())),
            self.field.map(Look::Field),
        ];
        let mut places = places.into_iter().flatten();
        let (Some(look), None) = (places.next(), places.next()) else {
            return Err("a signal has one of annotation, annotation_prefix, label, condition, field".into());
        };
        let values = match (self.is, self.is_not, self.absent) {
            (None, None, false) => Values::Present,
            (None, None, true) => Values::Absent,
            (Some(words), None, false) if !words.is_empty() => Values::Among(boxed(words)),
            (None, Some(words), false) if !words.is_empty() => Values::NotAmong(boxed(words)),
            _ => return Err("a signal has at most one of is, is_not, absent, and no empty list".into()),
        };
        if !self.unless_reason.is_empty() && !matches!(look, Look::Condition(_)) {
            return Err("unless_reason is for conditions: nothing else has a reason".into());
        }
        Ok(Sign { look, values, unless_reason: boxed(self.unless_reason) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_count_as_the_map_says() {
        let words = |words: &[&str]| words.iter().map(|word| Box::from(*word)).collect::<Vec<_>>();
        for (values, value, counts) in [
            (Values::Present, Some("false"), true),
            (Values::Present, Some(""), true),
            (Values::Present, None, false),
            (Values::Absent, None, true),
            (Values::Absent, Some("x"), false),
            (Values::Among(words(&["true"])), Some("true"), true),
            (Values::Among(words(&["true"])), Some("True"), false),
            (Values::Among(words(&["true"])), None, false),
            (Values::NotAmong(words(&["false"])), Some("now"), true),
            (Values::NotAmong(words(&["false"])), Some("false"), false),
            (Values::NotAmong(words(&["false"])), None, false),
        ] {
            assert_eq!(values.count(value), counts, "{values:?} {value:?}");
        }
    }

    #[test]
    fn signal_with_two_places_or_two_choices_is_refused() {
        for yaml in [
            "{}",
            "{annotation: a, label: b}",
            "{annotation: a, is: [x], is_not: [y]}",
            "{annotation: a, is: []}",
            "{annotation: a, is: [x], absent: true}",
            "{annotation: a, unless_reason: [x]}",
        ] {
            let entry: SignEntry = serde_saphyr::from_str(yaml).unwrap();
            assert!(entry.sign().is_err(), "{yaml}");
        }
        assert!(serde_saphyr::from_str::<SignEntry>("{anotation: a}").is_err());
    }
}
