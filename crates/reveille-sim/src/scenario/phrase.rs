//! Phrases: sentences with slots, matched against a statement.
//!
//! ```text
//!  form       {machines} [loses its|lose their] security group
//!  statement  workers-1, workers-4 lose their security group
//!  slots      machines = "workers-1, workers-4"
//! ```
//!
//! A form is literal text, `[this|or this]`, and `{slots}`. The first phrase whose form fits and whose slots can be read
//! wins. When a form fits and a slot cannot be read, that is the reason for refusing; when no form fits, the nearest form
//! is shown.

use std::collections::BTreeSet;

/// What a file has named before: the words that slots may refer to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) pools: BTreeSet<String>,
    pub(crate) zones: BTreeSet<String>,
    /// Service users.
    pub(crate) users: BTreeSet<String>,
}

/// One form and what it means.
pub(crate) struct Phrase<T> {
    pub(crate) form: &'static str,
    pub(crate) make: fn(&Slots<'_>) -> Result<T, String>,
}

/// The texts that stand in a form's slots.
pub(crate) struct Slots<'t> {
    values: Vec<(&'static str, &'t str)>,
    pub(crate) known: &'t Known,
}

impl Slots<'_> {
    /// The text of a slot. A form is asked for its own slots only; a slot that it has not is an empty text.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.values.iter().find(|(slot, _)| *slot == name).map_or("", |(_, text)| text)
    }

    /// The text of the second slot of that name.
    pub(crate) fn second(&self, name: &str) -> &str {
        self.values.iter().filter(|(slot, _)| *slot == name).nth(1).map_or("", |(_, text)| text)
    }
}

/// Reads a statement with the phrases of its section, table by table.
pub(crate) fn read<T>(tables: &[&[Phrase<T>]], text: &str, known: &Known) -> Result<T, String> {
    let mut refused = None;
    for phrase in tables.iter().copied().flatten() {
        let Some(values) = fit(&pieces(phrase.form), text) else { continue };
        match (phrase.make)(&Slots { values, known }) {
            Ok(made) => return Ok(made),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    Err(refused.unwrap_or_else(|| {
        let nearest = nearest(tables.iter().copied().flatten().map(|phrase| phrase.form), text);
        format!("this is no phrase of the language; the nearest is: {nearest}")
    }))
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(&'static str),
    Either(Vec<&'static str>),
    Slot(&'static str),
}

fn pieces(form: &'static str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = form;
    while let Some(at) = rest.find(['{', '[']) {
        if at > 0 {
            pieces.push(Piece::Literal(&rest[..at]));
        }
        let (close, slot) = if rest[at..].starts_with('{') { ('}', true) } else { (']', false) };
        let end = rest[at..].find(close).map_or(rest.len(), |end| at + end);
        let inside = &rest[at + 1..end];
        pieces.push(if slot { Piece::Slot(inside) } else { Piece::Either(inside.split('|').collect()) });
        rest = rest.get(end + 1..).unwrap_or("");
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest));
    }
    pieces
}

/// Slots that hold one word.
const WORDS: [&str; 14] = [
    "cause", "count", "fault", "machine", "mode", "percent", "person", "pool", "role", "span", "stage",
    "verdict", "word", "zone",
];

fn fit<'t>(pieces: &[Piece], text: &'t str) -> Option<Vec<(&'static str, &'t str)>> {
    let Some((first, rest)) = pieces.split_first() else {
        return text.is_empty().then(Vec::new);
    };
    match first {
        Piece::Literal(literal) => fit(rest, text.strip_prefix(literal)?),
        Piece::Either(ways) => ways.iter().find_map(|way| fit(rest, text.strip_prefix(way)?)),
        Piece::Slot(name) => {
            let word = WORDS.contains(name);
            let ends = text
                .char_indices()
                .take_while(|(_, c)| !(word && *c == ' '))
                .map(|(at, c)| at + c.len_utf8());
            ends.into_iter().find_map(|end| {
                let mut values = fit(rest, &text[end..])?;
                values.insert(0, (*name, &text[..end]));
                Some(values)
            })
        }
    }
}

/// The form that has most words with the text in common.
pub(crate) fn nearest<'f>(forms: impl Iterator<Item = &'f str>, text: &str) -> &'f str {
    let words: BTreeSet<&str> = text.split_whitespace().collect();
    let common = |form: &str| {
        let split = form.split(|c: char| c.is_whitespace() || "[|]".contains(c));
        let of_form: BTreeSet<&str> =
            split.filter(|word| !word.is_empty() && !word.starts_with('{')).collect();
        let shared = of_form.intersection(&words).count();
        (shared * 100).saturating_sub((of_form.len() - shared) * 10)
    };
    // The first of several that are as near.
    let mut best = ("", 0);
    for form in forms {
        let near = common(form);
        if best.0.is_empty() || near > best.1 {
            best = (form, near);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(form: &'static str, text: &'static str) -> Option<Vec<(&'static str, &'static str)>> {
        fit(&pieces(form), text)
    }

    #[test]
    fn a_form_fits_its_statements_and_no_others() {
        let form = "{machines} [loses its|lose their] group";
        assert_eq!(slots(form, "w-1 loses its group"), Some(vec![("machines", "w-1")]));
        assert_eq!(slots(form, "w-1, w-2 lose their group"), Some(vec![("machines", "w-1, w-2")]));
        assert_eq!(slots(form, "w-1 lose its group"), None);
        assert_eq!(slots(form, "loses its group"), None);
        assert_eq!(slots("no {kind}", "no call"), Some(vec![("kind", "call")]));
        let list = slots("repair {words} {mode}", "repair reboot, replace act");
        assert_eq!(list, Some(vec![("words", "reboot, replace"), ("mode", "act")]));
        let two = slots("takes {span} to {span}", "takes 4m to 8m");
        assert_eq!(two, Some(vec![("span", "4m"), ("span", "8m")]));
    }

    #[test]
    fn the_nearest_form_is_the_one_with_most_words_in_common() {
        let forms = ["zone {zone} is cut off for {span}", "the cloud lists no servers for {span}"];
        assert_eq!(nearest(forms.into_iter(), "zone a is dark for 5m"), forms[0]);
        assert_eq!(nearest(forms.into_iter(), "the cloud lists nothing"), forms[1]);
    }
}
