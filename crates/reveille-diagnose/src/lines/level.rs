//! How loud a line is, by the head that its program wrote.

/// How loud a line is. A line that does not say is as loud as can be: silence of a format proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For developers.
    Debug,
    /// It goes as it should.
    Info,
    /// Something is odd.
    Warning,
    /// Something failed.
    Error,
    /// The line does not say.
    Unsaid,
}

/// Heads that tell a level, in comparable text.
const HEADS: [(&str, Level); 34] = [
    ("level=debug", Level::Debug),
    ("level=trace", Level::Debug),
    ("level=info", Level::Info),
    ("level=warn", Level::Warning),
    ("level=error", Level::Error),
    ("level=fatal", Level::Error),
    ("level=panic", Level::Error),
    ("level:debug", Level::Debug),
    ("level:info", Level::Info),
    ("level:warn", Level::Warning),
    ("level:error", Level::Error),
    ("level:fatal", Level::Error),
    ("level: info", Level::Info),
    ("level: warn", Level::Warning),
    ("level: error", Level::Error),
    ("severity:info", Level::Info),
    ("severity:warn", Level::Warning),
    ("severity:error", Level::Error),
    ("debu[", Level::Debug),
    ("info[", Level::Info),
    ("warn[", Level::Warning),
    ("erro[", Level::Error),
    ("fata[", Level::Error),
    ("[warning ", Level::Warning),
    ("[error ", Level::Error),
    ("[debug]", Level::Debug),
    ("[info]", Level::Info),
    ("[warning]", Level::Warning),
    ("[error]", Level::Error),
    ("[critical]", Level::Error),
    ("type: normal", Level::Info),
    ("type=normal", Level::Info),
    ("<info>", Level::Info),
    ("<warn>", Level::Warning),
];

/// Where a head stands at the latest: behind date, host and unit.
const HEAD_BYTES: usize = 160;

/// The level of a comparable line.
pub fn level(comparable: &str) -> Level {
    let mut end = comparable.len().min(HEAD_BYTES);
    while !comparable.is_char_boundary(end) {
        end -= 1;
    }
    let head = &comparable[..end];
    if let Some(level) = klog(head) {
        return level;
    }
    let first = HEADS.iter().filter_map(|(word, level)| head.find(word).map(|at| (at, *level))).min();
    first.map_or(Level::Unsaid, |(_, level)| level)
}

/// klog and glog: a letter and month and day, then a time of day.
fn klog(head: &str) -> Option<Level> {
    let bytes = head.as_bytes();
    for at in 0..bytes.len().saturating_sub(8) {
        let starts_word = at == 0 || matches!(bytes[at - 1], b' ' | b'>' | b':');
        if starts_word
            && bytes[at + 1..at + 5].iter().all(u8::is_ascii_digit)
            && bytes[at + 5] == b' '
            && bytes[at + 6].is_ascii_digit()
            && matches!(bytes[at + 8], b':')
        {
            return match bytes[at] {
                b'i' => Some(Level::Info),
                b'w' => Some(Level::Warning),
                b'e' | b'f' => Some(Level::Error),
                _ => None,
            };
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::comparable;

    #[test]
    fn every_format_tells_its_level() {
        for (line, expected) in [
            (
                "Feb 11 14:39:19 h kubelet: W0211 14:39:19.932837   23111 options.go:265] unknown",
                Level::Warning,
            ),
            ("F1015 02:11:28.074425    3511 server.go:185] unknown", Level::Error),
            ("I0508 09:41:17.120441 2411 join.go:465] x", Level::Info),
            ("time=\"2024\" level=info msg=\"error\"", Level::Info),
            ("INFO[2019-02-28T09:13:26Z] Waiting", Level::Info),
            ("FATA[2021-06-11T08:52:58Z] failed", Level::Error),
            ("{\"level\":\"warn\",\"ts\":\"2024\",\"msg\":\"x\"}", Level::Warning),
            ("2015-02-03 08:30:09,464 - url_helper.py[WARNING]: Calling", Level::Warning),
            ("        [WARNING Swap]: swap is enabled", Level::Warning),
            ("        [ERROR Swap]: running", Level::Error),
            ("kubelet[5011]: Error: failed to parse kubelet flag", Level::Unsaid),
            ("", Level::Unsaid),
        ] {
            assert_eq!(level(&comparable(line)), expected, "{line}");
        }
    }
}
