//! Whether requests to the API server go through the proxy that the environment names.
//!
//! A `proxy-url` in the kubeconfig is kube's business. Without one, `HTTPS_PROXY` counts for `https` servers unless
//! `NO_PROXY` names the server: a host, a domain, an address, a range, or `*`. Loopback is never proxied. These are the
//! rules that kubectl inherits from Go. kube 5.0 compares `NO_PROXY` with the proxy instead of the server, hence ours.

use std::net::IpAddr;

use http::Uri;
use ipnet::IpNet;

/// The proxy for this server, if the environment wants one.
pub(crate) fn from_environment(server: &Uri) -> Option<Uri> {
    let read = |names: [&str; 2]| {
        names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    };
    choose(
        server,
        read(["HTTPS_PROXY", "https_proxy"])?.as_str(),
        &read(["NO_PROXY", "no_proxy"]).unwrap_or_default(),
    )
}

fn choose(server: &Uri, proxy: &str, exempt: &str) -> Option<Uri> {
    if server.scheme_str() != Some("https") {
        return None;
    }
    let host = server.host()?.trim_matches(['[', ']']).to_ascii_lowercase();
    let address: Option<IpAddr> = host.parse().ok();
    let is_loopback = host == "localhost" || address.is_some_and(|address| address.is_loopback());
    if is_loopback || exempt.split(',').any(|entry| exempts(entry.trim(), &host, address)) {
        return None;
    }
    let proxy = if proxy.contains("://") { proxy.to_owned() } else { format!("http://{proxy}") };
    proxy.parse().ok()
}

fn exempts(entry: &str, host: &str, address: Option<IpAddr>) -> bool {
    let entry = entry.to_ascii_lowercase();
    if entry.is_empty() {
        return false;
    }
    if entry == "*" {
        return true;
    }
    if let (Some(address), Ok(range)) = (address, entry.parse::<IpNet>()) {
        return range.contains(&address);
    }
    // A port is allowed in the list, and ignored: one API server is one host for us.
    let entry = entry.rsplit_once(':').map_or(entry.as_str(), |(name, port)| {
        if port.bytes().all(|digit| digit.is_ascii_digit()) && !name.contains(':') { name } else { &entry }
    });
    let domain = entry.trim_start_matches("*.").trim_start_matches('.');
    host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exemptions_are_of_the_server_and_follow_the_common_rules() {
        let proxied = |server: &str, exempt: &str| {
            choose(&server.parse().unwrap(), "http://proxy.example:3128", exempt).is_some()
        };
        let table = [
            ("https://api.example:6443", "", true),
            ("https://api.example:6443", "proxy.example", true),
            ("https://api.example:6443", "api.example", false),
            ("https://api.example:6443", "other, .example", false),
            ("https://api.example:6443", "*.example", false),
            ("https://api.example:6443", "api.example:6443", false),
            ("https://api.example:6443", "pi.example", true),
            ("https://api.example:6443", "*", false),
            ("https://10.1.2.3:6443", "10.0.0.0/8", false),
            ("https://10.1.2.3:6443", "10.1.2.3", false),
            ("https://10.1.2.3:6443", "192.168.0.0/16", true),
            ("https://127.0.0.1:6443", "", false),
            ("https://[::1]:6443", "", false),
            ("https://localhost:6443", "", false),
            ("http://api.example:8001", "", false),
        ];
        for (server, exempt, wanted) in table {
            assert_eq!(proxied(server, exempt), wanted, "{server} with NO_PROXY={exempt}");
        }
    }
}
