//! What systemd tells the program of a service: the lines of its unit, and of the unit's drop-ins.
//!
//! ```text
//!  NAME.service                  of the folders the last that has one: it counts alone
//!  NAME.service.d/*.conf         of all folders, by name; `systemctl edit` writes one. Later lines count
//!  an empty line of a setting    takes back the lines of this setting before it
//! ```
//!
//! A line that does not count is read, too: a token there is still a token, and a folder there may have been a server's.

use std::collections::BTreeMap;

use super::TargetError;
use super::kubeconfig::unreadable;
use super::reader::Reader;
use crate::root::Root;

/// The folders of units, in systemd's order: a later one goes before.
const FOLDERS: [&str; 4] = [
    "/usr/lib/systemd/system",
    "/usr/local/lib/systemd/system",
    "/run/systemd/system",
    "/etc/systemd/system",
];

/// The value of one setting.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) place: String,
    pub(super) text: String,
    pub(super) counts: bool,
}

/// The lines of a service, in their order.
#[derive(Debug, Default)]
pub(super) struct Unit {
    pub(super) environment: Vec<Line>,
    pub(super) environment_files: Vec<Line>,
    pub(super) commands: Vec<Line>,
}

impl Unit {
    /// The readable part, and why it is not all.
    pub(super) fn of(service: &str, root: &Root) -> (Self, Result<(), TargetError>) {
        let (mut own, mut reader) = (Self::default(), Reader::default());
        let mut read = || {
            for path in paths(service) {
                let text = reader.text(root, &path)?;
                if !text.is_empty() {
                    own.all().into_iter().for_each(|lines| take_back(lines));
                }
                own.add(&path, &text);
            }
            for path in drop_ins(service, root)? {
                own.add(&path, &reader.text(root, &path)?);
            }
            Ok(())
        };
        let whole = read();
        (own, whole)
    }

    fn all(&mut self) -> [&mut Vec<Line>; 3] {
        [&mut self.environment, &mut self.environment_files, &mut self.commands]
    }

    fn add(&mut self, place: &str, text: &str) {
        for line in logical_lines(text) {
            let Some((key, value)) = line.split_once('=') else { continue };
            let all = match key.trim() {
                "Environment" => &mut self.environment,
                "EnvironmentFile" => &mut self.environment_files,
                "ExecStart" => &mut self.commands,
                _ => continue,
            };
            match value.trim() {
                "" => take_back(all),
                text => all.push(Line { place: place.to_owned(), text: text.to_owned(), counts: true }),
            }
        }
    }
}

fn take_back(lines: &mut [Line]) {
    lines.iter_mut().for_each(|line| line.counts = false);
}

/// The possible paths of a service's unit.
pub(super) fn paths(service: &str) -> Vec<String> {
    FOLDERS.iter().map(|folder| format!("{folder}/{service}.service")).collect()
}

/// The drop-ins of a service, of all services of its prefix, and of all services.
fn drop_ins(service: &str, root: &Root) -> Result<Vec<String>, TargetError> {
    let prefix = service.split_once('-').map(|(prefix, _)| format!("{prefix}-.service.d"));
    let folders = ["service.d".to_owned()].into_iter().chain(prefix).chain([format!("{service}.service.d")]);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in folders.flat_map(|name| FOLDERS.map(|folder| format!("{folder}/{name}"))) {
        let names = root.names(&folder).map_err(|error| unreadable(&folder, &error))?.unwrap_or_default();
        for name in names.into_iter().filter(|name| name.ends_with(".conf")) {
            let path = format!("{folder}/{name}");
            found.entry(name).or_default().push(path);
        }
    }
    Ok(found.into_values().flatten().collect())
}

/// Lines without comments; one that ends in a backslash goes on in the next.
fn logical_lines(text: &str) -> Vec<String> {
    let (mut all, mut begun) = (Vec::new(), String::new());
    for line in text.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])) {
        if let Some(part) = line.strip_suffix('\\') {
            begun.extend([part, " "]);
        } else {
            begun.push_str(line);
            all.push(std::mem::take(&mut begun));
        }
    }
    all.push(begun);
    all
}

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
        let text = "ExecStart=k3s \\\n# a comment\n  agent \\\n\n;x=1\nA=b \\";
        assert_eq!(logical_lines(text), ["ExecStart=k3s    agent  ", "A=b  "]);
    }
}
