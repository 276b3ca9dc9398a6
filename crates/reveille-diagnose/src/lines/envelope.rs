//! What collectors wrap around a line: docker's json-file, journald's JSON export, k0s around what its components print.
//!
//! Only wrappers that hide the text are taken off. CRI, syslog and journald's own text stand before it and do not hide
//! anything; phrases match behind them.

use std::borrow::Cow;

use serde_json::Value;

/// Fields of a wrapper that hold the line itself.
const FIELDS: [&str; 2] = ["MESSAGE", "log"];

/// The line within its wrapper, or the line itself.
pub fn unwrapped(line: &str) -> Cow<'_, str> {
    let trimmed = line.trim();
    if let Some(inner) = of_a_component(trimmed) {
        return Cow::Owned(inner);
    }
    let may_wrap = trimmed.starts_with('{')
        && trimmed.ends_with('}')
        && FIELDS.iter().any(|field| trimmed.contains(&format!("\"{field}\"")));
    if !may_wrap {
        return Cow::Borrowed(line);
    }
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(trimmed) else {
        return Cow::Borrowed(line);
    };
    for field in FIELDS {
        match fields.get(field) {
            Some(Value::String(text)) => return Cow::Owned(with_unit(&fields, text)),
            // journald writes a message with control characters as a list of bytes.
            Some(Value::Array(bytes)) => {
                let bytes: Vec<u8> = bytes
                    .iter()
                    .filter_map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok()))
                    .collect();
                return Cow::Owned(with_unit(&fields, &String::from_utf8_lossy(&bytes)));
            }
            _ => {}
        }
    }
    Cow::Borrowed(line)
}

/// A line of a component that k0s passes on: k0s calls each of them info, however loud the component said it.
fn of_a_component(line: &str) -> Option<String> {
    let (head, component) = line.rsplit_once("\" component=")?;
    let (_, said) = head.split_once("level=info msg=\"")?;
    let klog =
        said.starts_with(['I', 'W', 'E', 'F']) && said.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    let component = component.split_whitespace().next().unwrap_or(component);
    (klog || said.starts_with("time=")).then(|| format!("{component}: {said}"))
}

/// The message behind the name of who wrote it, as journald prints it.
fn with_unit(fields: &serde_json::Map<String, Value>, text: &str) -> String {
    match fields.get("SYSLOG_IDENTIFIER").and_then(Value::as_str) {
        Some(unit) => format!("{unit}: {text}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_taken_off() {
        for (line, expected) in [
            (r#"{"log":"E0101 x \"y\"\n","stream":"stderr","time":"2024"}"#, "E0101 x \"y\"\n"),
            (r#"{"MESSAGE":"boom","SYSLOG_IDENTIFIER":"kubelet","PRIORITY":"3"}"#, "kubelet: boom"),
            (r#"{"MESSAGE":[27,91,51,49,109,110,111]}"#, "\u{1b}[31mno"),
            (r#"{"level":"warn","msg":"x"}"#, r#"{"level":"warn","msg":"x"}"#),
            (r#"{"log": broken"#, r#"{"log": broken"#),
            (
                r#"time="2024" level=info msg="E0101 10:00:00.1 1 a.go:1] x" component=kubelet"#,
                "kubelet: E0101 10:00:00.1 1 a.go:1] x",
            ),
            (
                r#"time="2024" level=info msg="Started" component=kubelet"#,
                r#"time="2024" level=info msg="Started" component=kubelet"#,
            ),
            ("2024-01-01T00:00:00Z stderr F boom", "2024-01-01T00:00:00Z stderr F boom"),
        ] {
            assert_eq!(unwrapped(line), expected);
        }
    }
}
