//! Decisions that rest on words for people: what is rendered is compared, or looked into.
//!
//! A developer who rewords an output must not change a decision. So decisions rest on types, and text is made from a type at the
//! edge. A test may look into text, as it is what people read. Display names of ids and causes are no rendered text.

use super::Report;

/// Where something is decided.
const DECIDES: [&str; 6] = [
    "crates/reveille-core/src/",
    "crates/reveille-agent/src/",
    "crates/reveille-hot/src/",
    "crates/reveille-rancher/src/",
    "crates/reveille-registrar/src/",
    "crates/reveille/src/",
];

/// What people are told: fields and methods of these names, and the types that are rendered for people alone.
const WORDS: [&str; 7] =
    [".says()", ".says", ".text", ".why", ".fact.to_string()", ".source.to_string()", ".why.to_string()"];

/// What a decision does with a text.
const COMPARES: [&str; 6] = [" == ", " != ", ".starts_with(", ".ends_with(", ".contains(", ".strip_prefix("];

pub(super) fn check(path: &str, text: &str, report: &mut Report) {
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    if is_test || !DECIDES.iter().any(|place| path.starts_with(place)) {
        return;
    }
    let code = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    for (index, line) in code.enumerate() {
        if !line.trim_start().starts_with("//") && compares(line) {
            let advice = "this decides by words for people; compare the type that they are made from";
            report.breach(path, index + 1, "rendered-text", advice);
        }
    }
}

fn compares(line: &str) -> bool {
    let follows = |word: &str, rest: &str| {
        rest.strip_prefix(word).is_some_and(|rest| COMPARES.iter().any(|how| rest.starts_with(how)))
    };
    let words_first =
        line.char_indices().any(|(place, _)| WORDS.iter().any(|word| follows(word, &line[place..])));
    words_first || line.contains("== format!(") || line.contains("== &format!(")
}

#[cfg(test)]
mod tests {
    use super::compares;

    #[test]
    fn what_is_made_for_people_is_not_compared() {
        for line in [
            "if unread.why.starts_with(\"404\") {",
            "let same = tried.text == other.text;",
            "repair_step.says() == \"reboot\"",
            "held.iter().any(|hold| hold.text.contains(\"limit reached\"))",
            "name == format!(\"{one} of {two}\")",
            "evidence.iter().any(|it| it.fact.to_string().contains(\"Live migration failed\"))",
            "quote.source.to_string() == CONSOLE",
            "attempt.why.to_string().starts_with(\"paused\")",
        ] {
            assert!(compares(line), "{line}");
        }
        for line in [
            "let why = hold.why.clone();",
            "text == other",
            "cause.label() == name",
            "says(repair_step) == 3",
            "quote.source == Source::Console",
            "text: it.fact.to_string(),",
        ] {
            assert!(!compares(line), "{line}");
        }
    }
}
