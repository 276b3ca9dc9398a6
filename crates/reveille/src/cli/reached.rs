//! How machines reach the registration server, as the operator writes it: names for its certificate, and
//! the address for an agent.
//!
//! ```text
//!  run --listen ADDRESS ───▶ listen ─▶ an address and a port to bind
//!  run --listen-name NAME ─▶ name ─▶ a host name or an address, which can stand in a certificate
//!  invite --server URL ────▶ server ─▶ https://HOST:PORT, read by the agent's own parser
//! ```
//!
//! A mistake that is not found here would show only on the machine: a certificate has another name, or an
//! agent refuses its argument.

use std::net::{IpAddr, SocketAddr};

use reveille_node::target::Endpoint;

/// The longest host name, and one part of it between dots (RFC 1123).
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// The address to listen on.
pub(super) fn listen(text: &str) -> Result<SocketAddr, String> {
    let wrong = "Write IP:PORT, for example 0.0.0.0:9464; names go to --listen-name";
    text.trim().parse().map_err(|_| wrong.to_owned())
}

/// A host name or an address, without anything else.
pub(super) fn name(text: &str) -> Result<String, String> {
    if is_host(text) {
        return Ok(text.to_owned());
    }
    let host = host_of(text);
    let write = if is_host(host) { host } else { "a host name or an address, for example join.example" };
    Err(format!("it is no host name and no address. Write {write}; the port is that of --listen"))
}

/// An address that an agent accepts as its `--server`.
pub(super) fn server(text: &str) -> Result<String, String> {
    let parsed = Endpoint::parse("--server", text).ok().filter(|endpoint| is_host(&endpoint.host));
    if let Some(endpoint) = parsed {
        return Ok(format!("https://{endpoint}"));
    }
    let host = host_of(text);
    let host = if is_host(host) { host } else { "join.example" };
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    Err(format!("an agent does not take this. Write https://HOST:PORT, for example https://{host}:9464"))
}

/// The part of a URL, or of a host and a port, that is most likely the host.
fn host_of(text: &str) -> &str {
    let bare = text.trim();
    let bare = bare.split_once("://").map_or(bare, |(_, rest)| rest);
    let bare = bare.split(['/', '?', '#']).next().unwrap_or(bare);
    if let Some(rest) = bare.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match bare.split_once(':') {
        Some((host, port)) if !port.contains(':') => host,
        _ => bare,
    }
}

fn is_host(text: &str) -> bool {
    if text.parse::<IpAddr>().is_ok() {
        return true;
    }
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let fits = bytes.len() <= LABEL_BYTES_MAX && is_end(bytes.first()) && is_end(bytes.last());
        fits && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    // Four numbers that are no valid address are no host name either.
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= NAME_BYTES_MAX
        && text.split('.').all(is_label)
        && !text.rsplit('.').next().is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn listen_name_unfit_for_a_certificate_is_refused_with_advice() {
        for fine in ["join.example", "host", "10.0.0.9", "fd00::9", "a-1.b2"] {
            assert_eq!(name(fine), Ok(fine.to_owned()));
        }
        let wrong = [
            ("join.example:9464", "Write join.example;"),
            ("https://a.b", "Write a.b;"),
            ("https://a.b:1/c", "Write a.b;"),
            ("[fd00::9]:9464", "Write fd00::9;"),
            ("10.0.0.9:9464", "Write 10.0.0.9;"),
            ("10.0.0.900", "Write a host name or an address"),
            ("a b", "Write a host name or an address"),
            ("*.example", "Write a host name or an address"),
            ("a_b", "Write a host name or an address"),
            ("", "Write a host name or an address"),
        ];
        for (text, write) in wrong {
            assert!(name(text).is_err_and(|said| said.contains(write)), "{text}: {:?}", name(text));
        }
    }

    #[test]
    fn server_unfit_for_an_agent_is_refused_with_advice() {
        for (text, taken) in [
            ("https://join.example:9464", "https://join.example:9464"),
            ("https://join.example/", "https://join.example:443"),
            ("join.example:9464", "https://join.example:9464"),
            ("https://[fd00::9]:1", "https://[fd00::9]:1"),
        ] {
            assert_eq!(server(text).as_deref(), Ok(taken));
            assert!(Endpoint::parse("--server", taken).is_ok());
        }
        for (text, write) in [
            ("foo", "https://foo:9464"),
            ("http://foo:1", "https://foo:9464"),
            ("https://foo:0", "https://foo:9464"),
            ("https://foo:1/path", "https://foo:9464"),
            ("https://f o:1", "https://join.example:9464"),
            ("fd00::9", "https://[fd00::9]:9464"),
        ] {
            assert!(server(text).is_err_and(|said| said.contains(write)), "{text}: {:?}", server(text));
        }
    }

    #[test]
    fn unusable_address_is_refused_before_any_command_runs() {
        for line in [
            "reveille run --listen 0.0.0.0:9464 --listen-name https://a.b",
            "reveille run --listen localhost:9464",
            "reveille run --listen 9464",
            "reveille invite --pool w --server foo",
        ] {
            let text = crate::cli::Cli::try_parse_from(line.split(' ')).unwrap_err().to_string();
            assert!(text.contains("Write "), "{text}");
        }
    }
}
