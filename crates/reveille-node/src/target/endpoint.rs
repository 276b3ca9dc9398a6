//! The address of an API server: a host and a port.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use super::TargetError;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// A name or an address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// Reads `host:port`, `address:port` or `[address]:port`, each also with `https://` in front.
    ///
    /// # Errors
    ///
    /// The text has another form.
    pub fn parse(place: &str, text: &str) -> Result<Self, TargetError> {
        let text = text.trim();
        let refuse = |wrong: &str, write: String| {
            Err(TargetError::new(place, format!("{text:?} is no address of an API server: {wrong}"), write))
        };
        let usual = || "HOST:PORT, such as 10.0.0.1:6443".to_owned();
        let bare = text.strip_prefix("https://").unwrap_or(text);
        if bare.contains("://") {
            return refuse("an API server speaks HTTPS", usual());
        }
        let bare = bare.trim_end_matches('/');
        if bare.is_empty() || bare.contains(['/', '@', ' ', '?', '#']) {
            return refuse("it is not a host and a port alone", usual());
        }
        let no_host = "its host is no name or address";
        let (host, port) = match bare.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
            _ => {
                let host = bare.trim_start_matches('[').trim_end_matches(']');
                if !is_host(host) {
                    return refuse(no_host, usual());
                }
                // With a scheme in front the port is the scheme's, as every HTTP client takes it.
                if text.starts_with("https://") {
                    return Ok(Self { host: host.to_owned(), port: 443 });
                }
                let with_port = Self { host: host.to_owned(), port: 6443 };
                return refuse("it has no port", format!("{with_port}, or the port that it listens on"));
            }
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match port.parse() {
            Ok(port) if port > 0 && is_host(host) => Ok(Self { host: host.to_owned(), port }),
            _ if host.is_empty() => refuse("it has no host", usual()),
            _ if !is_host(host) => refuse(no_host, usual()),
            _ => refuse("its port is not a number from 1 to 65535", usual()),
        }
    }

    /// The address, when the host is an address and not a name.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

/// A name or an address, also with the zone of a link. A disk's kubelet.conf is read, too, and its host stands in lines that a
/// person pastes: `x;reboot` is a host of nothing.
fn is_host(host: &str) -> bool {
    let is_name = |text: &str| {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !text.is_empty() && !text.starts_with('-') && text.chars().all(is_of_name)
    };
    let (address, zone) = host.split_once('%').unwrap_or((host, "0"));
    is_name(host) || address.parse::<Ipv6Addr>().is_ok() && is_name(zone)
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}
