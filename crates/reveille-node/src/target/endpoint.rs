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

/// What to write instead.
const USUAL: &str = "HOST:PORT, such as 10.0.0.1:6443";

/// Why a text is no endpoint.
struct Refused {
    wrong: &'static str,
    with_port: Option<Endpoint>,
}

impl Endpoint {
    /// Reads `host:port`, `address:port` or `[address]:port`, each also with `https://` in front.
    ///
    /// # Errors
    ///
    /// The text has another form. The refusal quotes it: this is for what a person wrote as an argument.
    pub fn parse(place: &str, text: &str) -> Result<Self, TargetError> {
        Self::read(text.trim()).map_err(|Refused { wrong, with_port }| {
            let wrong = format!("{:?} is no address of an API server: {wrong}", text.trim());
            let with_port = with_port.map(|own| format!("{own}, or the port that it listens on"));
            TargetError::new(place, wrong, with_port.unwrap_or_else(|| USUAL.to_owned()))
        })
    }

    /// The same from a file.
    ///
    /// # Errors
    ///
    /// The text has another form. The refusal says nothing of it: where a person wrote `server:` and `token:` in each other's
    /// place, it is the token, and of a form that no mask knows.
    pub fn of_file(place: &str, text: &str) -> Result<Self, TargetError> {
        Self::read(text.trim()).map_err(|Refused { wrong, .. }| {
            TargetError::new(place, format!("it is no address of an API server: {wrong}"), USUAL)
        })
    }

    fn read(text: &str) -> Result<Self, Refused> {
        let refuse = |wrong| Err(Refused { wrong, with_port: None });
        let bare = text.strip_prefix("https://").unwrap_or(text);
        if bare.contains("://") {
            return refuse("an API server speaks HTTPS");
        }
        let bare = bare.trim_end_matches('/');
        if bare.is_empty() || bare.contains(['/', '@', ' ', '?', '#']) {
            return refuse("it is not a host and a port alone");
        }
        let no_host = "its host is no name or address";
        let (host, port) = match bare.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
            _ => {
                let host = bare.trim_start_matches('[').trim_end_matches(']');
                if !is_host(host) {
                    return refuse(no_host);
                }
                // With a scheme in front the port is the scheme's, as every HTTP client takes it.
                if text.starts_with("https://") {
                    return Ok(Self { host: host.to_owned(), port: 443 });
                }
                let with_port = Some(Self { host: host.to_owned(), port: 6443 });
                return Err(Refused { wrong: "it has no port", with_port });
            }
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match port.parse() {
            Ok(port) if port > 0 && is_host(host) => Ok(Self { host: host.to_owned(), port }),
            _ if host.is_empty() => refuse("it has no host"),
            _ if !is_host(host) => refuse(no_host),
            _ => refuse("its port is not a number from 1 to 65535"),
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
