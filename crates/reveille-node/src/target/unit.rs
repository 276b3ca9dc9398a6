//! The words that systemd makes of a line in a unit.

/// A word of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// The same with its quotes and backslashes: so a token stands in the unit.
    pub(super) spelled: String,
}

/// The words of a line, by systemd's quotes. A token of several words is one word.
pub(super) fn words(line: &str) -> Vec<Word> {
    let (mut all, mut word, mut begun, mut quote) = (Vec::new(), None::<String>, 0, None);
    let spelled = |from: usize, to: usize| line.get(from..to).unwrap_or_default().to_owned();
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        if quote.is_none() && c.is_whitespace() {
            all.extend(word.take().map(|text| Word { text, spelled: spelled(begun, at) }));
            continue;
        }
        if word.is_none() {
            begun = at;
        }
        let text = word.get_or_insert_default();
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            ('\\', _) => match chars.next().map(|(_, c)| c) {
                Some('s') => text.push(' '),
                Some('t') => text.push('\t'),
                Some(c @ ('\\' | '"' | '\'' | ' ')) => text.push(c),
                other => text.extend(['\\'].into_iter().chain(other)),
            },
            (c, _) => text.push(c),
        }
    }
    all.extend(word.map(|text| Word { text, spelled: spelled(begun, line.len()) }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_systemd_splits_them() {
        for (line, wanted) in [
            ("a  'b c' \"d 'e\"", vec!["a", "b c", "d 'e"]),
            ("--token='b c'x \\\"y\\\" '' z", vec!["--token=b cx", "\"y\"", "", "z"]),
            ("'it'\\''s' a\\sb \\x 'open end", vec!["it's", "a b", "\\x", "open end"]),
            ("", vec![]),
        ] {
            let texts: Vec<String> = words(line).into_iter().map(|word| word.text).collect();
            assert_eq!(texts, wanted, "{line}");
        }
        let spelled: Vec<String> = words("a  'it'\\''s' b").into_iter().map(|word| word.spelled).collect();
        assert_eq!(spelled, ["a", "'it'\\''s'", "b"]);
    }
}
