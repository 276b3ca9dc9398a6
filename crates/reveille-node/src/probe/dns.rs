//! Names: the answer of the system's resolver, and the answer of each name server of resolv.conf to a direct question.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use futures::future::join_all;
use reveille_agent::checkup::Reading;
use reveille_agent::checkup::server::Lookup;
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::timeout;

use super::Probe;
use crate::target::{Endpoint, Target};

/// The number of name servers that the probe asks; resolvers use three.
const SERVERS_MAX: usize = 3;
const PORT: u16 = 53;

impl Probe {
    /// The addresses of a host, as every program on the machine gets them.
    pub(super) async fn lookup(&self, endpoint: &Endpoint) -> Reading<Lookup> {
        if let Some(address) = endpoint.address() {
            return Reading::Read(Lookup::Found(vec![address]));
        }
        let found = match timeout(self.left(), lookup_host((endpoint.host.as_str(), endpoint.port))).await {
            Err(_) => Lookup::NoAnswer("no answer in time".to_owned()),
            Ok(Ok(found)) => {
                let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
                addresses.dedup();
                if addresses.is_empty() {
                    Lookup::NoSuchName("the name has no address".to_owned())
                } else {
                    Lookup::Found(addresses)
                }
            }
            // getaddrinfo's words: only "try again" says that no server has denied the name.
            Ok(Err(error)) if error.to_string().contains("emporary failure") => {
                Lookup::NoAnswer(error.to_string())
            }
            Ok(Err(error)) => Lookup::NoSuchName(error.to_string()),
        };
        Reading::Read(found)
    }

    /// The answer of each name server to the names of the target.
    pub(super) async fn ask_resolvers(
        &self,
        target: Option<&Target>,
        resolvers: &Reading<Vec<IpAddr>>,
    ) -> Vec<(IpAddr, String)> {
        let name = target.and_then(|target| target.endpoints.iter().find(|one| one.address().is_none()));
        let (Some(endpoint), Some(resolvers), true) = (name, resolvers.read(), self.asks_system) else {
            return Vec::new();
        };
        let asked = resolvers.iter().take(SERVERS_MAX).map(async |server| {
            let said = timeout(self.left(), ask(SocketAddr::new(*server, PORT), &endpoint.host)).await;
            (*server, said.unwrap_or_else(|_| "nothing, in time".to_owned()))
        });
        join_all(asked).await
    }
}

/// The answer of a name server to a name.
async fn ask(server: SocketAddr, name: &str) -> String {
    let Some(question) = question(name) else { return "the name cannot be asked for".to_owned() };
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let answer = async {
        let socket = UdpSocket::bind((any, 0)).await?;
        socket.connect(server).await?;
        socket.send(&question).await?;
        let mut bytes = [0; 1024];
        let length = socket.recv(&mut bytes).await?;
        Ok::<_, std::io::Error>(said(bytes.get(..length).unwrap_or_default()))
    };
    answer.await.unwrap_or_else(|error| error.to_string())
}

/// A question for the addresses (A) of a name, RFC 1035 §4.1.
fn question(name: &str) -> Option<Vec<u8>> {
    // A fixed id is enough: the socket receives only from this server, and only the words of the answer are used.
    let mut bytes = vec![0x52, 0x56, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        bytes.push(length);
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.extend_from_slice(&[0, 0, 1, 0, 1]);
    Some(bytes)
}

/// The answer in words.
fn said(answer: &[u8]) -> String {
    let (Some(code), Some(count)) = (answer.get(3).map(|flags| flags & 0x0f), answer.get(6..8)) else {
        return "something that is no answer".to_owned();
    };
    match (code, count) {
        (0, [0, 0]) => "the name is there and has no IPv4 address".to_owned(),
        (0, _) => "the name is there".to_owned(),
        (2, _) => "it failed itself (SERVFAIL)".to_owned(),
        (3, _) => "there is no such name (NXDOMAIN)".to_owned(),
        (5, _) => "it refuses to say (REFUSED)".to_owned(),
        (code, _) => format!("it answers with code {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_server_is_asked_and_its_code_is_told() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let at = server.local_addr().unwrap();
        let answer = async {
            let mut bytes = [0; 512];
            let (length, from) = server.recv_from(&mut bytes).await.unwrap();
            assert!(bytes[..length].windows(4).any(|part| part == b"\x03lan"), "the name is asked for");
            bytes[3] = 0x83;
            server.send_to(&bytes[..length], from).await.unwrap();
        };
        let (said, ()) = tokio::join!(ask(at, "api.lan"), answer);
        assert_eq!(said, "there is no such name (NXDOMAIN)");
    }

    #[test]
    fn names_that_cannot_be_asked_for_are_not() {
        assert!(
            question("a..b").is_none() && question(&"a".repeat(64)).is_none() && question("a.b.").is_some()
        );
    }
}
