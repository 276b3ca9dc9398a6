//! Paths in Rust code: which names a file imports, and which it calls by their whole path.
//!
//! ```text
//!  text ─▶ code: comments and quotes blanked, each line where it was ─▶ without_tests ─▶ paths: `crate::a::B`, line 12
//! ```
//!
//! That needs no parser, and reads code that does not compile yet. What it leaves out: macros that make paths, and modules
//! with their braces in the same file, whose `super` is read as that of the file.

/// One path as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named<'a> {
    /// From 1.
    pub(crate) line: usize,
    /// Its words, with `crate`, `self` and `super`; a glob ends in `*`.
    pub(crate) words: Vec<&'a str>,
    /// The name that a `use` gives it in this file; none for a path in an expression.
    pub(crate) known_as: Option<&'a str>,
}

/// The text with spaces in place of comments and of what stands in quotes.
pub(crate) fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let name_goes_on = code.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        let blanked = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => quoted(rest),
            'r' if !name_goes_on || code.ends_with(['b', 'c']) => raw_quoted(rest),
            '\'' => character(rest),
            _ => 0,
        };
        let (gone, kept) = rest.split_at(blanked);
        code.extend(gone.chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
        rest = kept;
        if blanked == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    code
}

fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (place, character) in text.char_indices().skip(1) {
        match character {
            '"' if !escaped => return place + 1,
            _ => escaped = character == '\\' && !escaped,
        }
    }
    text.len()
}

fn raw_quoted(text: &str) -> usize {
    let hashes = text[1..].chars().take_while(|character| *character == '#').count();
    let inside = 1 + hashes + 1;
    if text.as_bytes().get(inside - 1) != Some(&b'"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    text[inside..].find(&end).map_or(text.len(), |place| inside + place + end.len())
}

/// Length of a character in quotes; 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut inside = text[1..].char_indices();
    match inside.next() {
        Some((_, '\\')) => text.get(3..).and_then(|rest| rest.find('\'')).map_or(0, |place| place + 4),
        _ => inside.next().filter(|(_, next)| *next == '\'').map_or(0, |(place, _)| place + 2),
    }
}

/// The code with spaces in place of what only tests have, and the names of files that only tests have.
pub(crate) fn without_tests(code: &str) -> (String, Vec<String>) {
    let (mut kept, mut modules, mut rest) = (String::with_capacity(code.len()), Vec::new(), code);
    while let Some(start) = ["#[cfg(test)]", "#[cfg(all(test"].iter().filter_map(|mark| rest.find(mark)).min()
    {
        let item = &rest[start..];
        let body = item.find([';', '{']).unwrap_or(item.len());
        let end = if item[body..].starts_with('{') { body + braced(&item[body..]) } else { body + 1 };
        if let Some(name) = item[..body].trim_end().rsplit_once("mod ").map(|(_, name)| name)
            && !item[body..].starts_with('{')
        {
            modules.push(name.to_owned());
        }
        let (gone, after) = item.split_at(end.min(item.len()));
        kept.push_str(&rest[..start]);
        kept.extend(gone.chars().filter(|character| *character == '\n'));
        rest = after;
    }
    kept.push_str(rest);
    (kept, modules)
}

/// Length of a block from its opening brace to its closing one.
fn braced(text: &str) -> usize {
    let mut depth = 0_usize;
    for (place, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => return place + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// All paths of more than one word, and all that a `use` names.
pub(crate) fn paths(code: &str) -> Vec<Named<'_>> {
    let mut found = Vec::new();
    let (mut place, mut line) = (0, 1);
    while let Some(start) = code[place..].find(is_of_name).map(|next| place + next) {
        line += code[place..start].matches('\n').count();
        let end = code[start..].find(|c| !is_of_name(c) && c != ':').map_or(code.len(), |end| start + end);
        let (word, next) = (&code[start..end], code[end..].find(';').map_or(code.len(), |next| end + next));
        if word == "use" && code[end..].starts_with(' ') {
            members(&code[end..next], &[], line, &mut found);
            line += code[end..next].matches('\n').count();
            place = next;
            continue;
        }
        let words: Vec<&str> = word.split("::").filter(|word| !word.is_empty()).collect();
        if words.len() > 1 {
            found.push(Named { line, words, known_as: None });
        }
        place = end;
    }
    found
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// What one `use` names: `a::{b, c::{self, D as E}}` is `a::b`, `a::c` and `a::c::D`.
fn members<'a>(tree: &'a str, before: &[&'a str], line: usize, found: &mut Vec<Named<'a>>) {
    let (path, group) = tree.split_once('{').map_or((tree, None), |(path, group)| (path, Some(group)));
    let (path, alias) =
        path.split_once(" as ").map_or((path, None), |(path, alias)| (path, Some(alias.trim())));
    let mut words = before.to_vec();
    words.extend(path.split("::").map(str::trim).filter(|word| !word.is_empty()));
    let Some(group) = group else {
        if words.len() > 1 && words.last() == Some(&"self") {
            words.pop();
        }
        let known_as = alias.or(words.last().copied());
        if !path.trim().is_empty() {
            found.push(Named { line, words, known_as });
        }
        return;
    };
    let (mut depth, mut start) = (0_usize, 0);
    for (place, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                members(&group[start..place], &words, line, found);
                start = place + 1;
                if character == '}' {
                    return;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_from_uses_and_expressions_and_not_from_comments() {
        let text = "// crate::no::A\nuse crate::{\n    a::B as C,\n    d::{self, E},\n};\n\
                    fn f<'a>(g: &'a str) -> char {\n    super::h::i(\"crate::no\", r#\"crate::\"no\"#, '\\'', '\"');\n}\n\
                    #[cfg(test)]\nmod j {\n    use crate::no;\n}\n#[cfg(test)]\nmod k;\nuse super::*;\n";
        let (code, modules) = without_tests(&code(text));
        let found: Vec<String> = paths(&code)
            .iter()
            .map(|Named { line, words, known_as }| format!("{line} {} {known_as:?}", words.join("::")))
            .collect();
        let expected = [
            "2 crate::a::B Some(\"C\")",
            "2 crate::d Some(\"d\")",
            "2 crate::d::E Some(\"E\")",
            "7 super::h::i None",
            "15 super::* Some(\"*\")",
        ];
        assert_eq!(found, expected);
        assert_eq!(modules, ["k"]);
    }
}
