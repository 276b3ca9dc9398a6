//! Keystone, Nova and Neutron as canned answers over real HTTP, in a thread of their own: 1,000 servers of four pools.
//!
//! Answers are built once, so that what is measured is the client. Nothing is parsed beyond the request's first line.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Servers in the project.
pub(crate) const SERVERS: usize = 1_000;
/// Pools that they belong to.
pub(crate) const POOLS: usize = 4;
const PROJECT: &str = "0123456789abcdef0123456789abcdef";

/// The service, and what it was asked.
pub(crate) struct CloudService {
    pub(crate) address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    bytes: AtomicU64,
}

struct Answers {
    address: SocketAddr,
    servers: String,
    ports: String,
    groups: String,
    routers: String,
}

impl CloudService {
    pub(crate) fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let counts = Arc::new(Counts::default());
        let answers = Arc::new(Answers::new(address));
        let shared = counts.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, counts) = (answers.clone(), shared.clone());
                std::thread::spawn(move || serve(stream, &answers, &counts));
            }
        });
        Ok(Self { address, counts })
    }

    /// Calls answered and bytes sent since the last time this was asked.
    pub(crate) fn take_counts(&self) -> (u64, u64) {
        (self.counts.calls.swap(0, Ordering::Relaxed), self.counts.bytes.swap(0, Ordering::Relaxed))
    }
}

fn serve(stream: TcpStream, answers: &Answers, counts: &Counts) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let target = line.split_whitespace().nth(1)?;
        let (status, extra, text) = answers.to(target);
        counts.calls.fetch_add(1, Ordering::Relaxed);
        counts.bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nDate: Sat, 21 Nov 2026 10:00:00 GMT\r\n{extra}Content-Length: {}\r\n\r\n",
            text.len()
        );
        writer.write_all(head.as_bytes()).ok()?;
        writer.write_all(text.as_bytes()).ok()?;
    }
}

impl Answers {
    fn new(address: SocketAddr) -> Self {
        let list = |entry: &dyn Fn(usize) -> String| (0..SERVERS).map(entry).collect::<Vec<_>>().join(",");
        Self {
            address,
            servers: format!("{{\"servers\":[{}]}}", list(&server)),
            ports: format!("{{\"ports\":[{}]}}", list(&port)),
            groups: r#"{"security_groups":[{"id":"9d9e7f1a-0000-4000-8000-000000000001","name":"k8s-nodes","project_id":"0123456789abcdef0123456789abcdef","security_group_rules":[]}]}"#.to_owned(),
            routers: r#"{"routers":[{"id":"9d9e7f1a-0000-4000-8000-00000000000f","routes":[],"revision_number":3}]}"#.to_owned(),
        }
    }

    fn to(&self, target: &str) -> (u16, &'static str, String) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match path {
            "/v3/auth/tokens" => (201, "X-Subject-Token: bench\r\n", self.login()),
            "/v2.1/" | "/v2.1" => (
                200,
                "",
                r#"{"version":{"id":"v2.1","status":"CURRENT","version":"2.96","min_version":"2.1"}}"#
                    .to_owned(),
            ),
            // A full page is followed by an empty one, as Nova has it.
            "/v2.1/servers/detail" if query.contains("marker=") => (200, "", "{\"servers\":[]}".to_owned()),
            "/v2.1/servers/detail" => (200, "", self.servers.clone()),
            "/v2.0/ports" if query.contains("marker=") => (200, "", "{\"ports\":[]}".to_owned()),
            "/v2.0/ports" => (200, "", self.ports.clone()),
            "/v2.0/security-groups" => (200, "", self.groups.clone()),
            "/v2.0/extensions" => (200, "", r#"{"extensions":[{"alias":"extraroute-atomic"}]}"#.to_owned()),
            "/v2.0/routers" => (200, "", self.routers.clone()),
            path if path.starts_with("/v2.0/quotas/") => {
                (200, "", r#"{"quota":{"router_route":256,"port":5000}}"#.to_owned())
            }
            _ => (404, "", "{}".to_owned()),
        }
    }

    fn login(&self) -> String {
        let endpoint = |kind: &str, path: &str| {
            format!(
                r#"{{"type":"{kind}","name":"{kind}","endpoints":[{{"interface":"public","region":"RegionOne","region_id":"RegionOne","id":"{kind}","url":"http://{}{path}"}}]}}"#,
                self.address
            )
        };
        format!(
            r#"{{"token":{{"expires_at":"2099-01-01T00:00:00.000000Z","issued_at":"2026-11-21T00:00:00.000000Z","project":{{"id":"{PROJECT}","name":"bench","domain":{{"id":"default","name":"Default"}}}},"user":{{"id":"u","name":"u","domain":{{"id":"default","name":"Default"}}}},"catalog":[{},{},{}]}}}}"#,
            endpoint("identity", "/v3"),
            endpoint("compute", "/v2.1"),
            endpoint("network", "")
        )
    }
}

/// A server as Nova describes it, with what a real answer carries beside what is needed.
fn server(number: usize) -> String {
    let pool = number % POOLS;
    format!(
        r#"{{"id":"{number:08x}-7c1e-4b0e-9f5e-0f6f0a3b8c12","name":"kks-bench-pool{pool}-{number:05}","status":"ACTIVE","tenant_id":"{PROJECT}","user_id":"f0c2a9a1b2c3d4e5f60718293a4b5c6d","metadata":{{"provisioner":"kubernikus","kubernikus:nodepool":"pool{pool}","kubernikus:kluster":"bench"}},"hostId":"1f2e3d4c5b6a79880716253443526170aabbccddeeff00112233445566","image":{{"id":"9d9e7f1a-0000-4000-8000-000000000003","links":[{{"rel":"bookmark","href":"http://cloud/images/9d9e7f1a"}}]}},"flavor":{{"vcpus":4,"ram":16384,"disk":64,"ephemeral":0,"swap":0,"original_name":"m1.large","extra_specs":{{"hw:cpu_cores":"4"}}}},"created":"2026-10-01T08:00:00Z","updated":"2026-10-01T08:02:00Z","addresses":{{"nodes":[{{"version":4,"addr":"10.8.{}.{}","OS-EXT-IPS:type":"fixed","OS-EXT-IPS-MAC:mac_addr":"fa:16:3e:00:00:01"}}]}},"accessIPv4":"","accessIPv6":"","links":[{{"rel":"self","href":"http://cloud/v2.1/servers/{number:08x}"}}],"OS-DCF:diskConfig":"MANUAL","progress":0,"OS-EXT-AZ:availability_zone":"zone-{}","config_drive":"True","key_name":null,"OS-SRV-USG:launched_at":"2026-10-01T08:01:30.000000","OS-SRV-USG:terminated_at":null,"OS-EXT-STS:task_state":null,"OS-EXT-STS:vm_state":"active","OS-EXT-STS:power_state":1,"os-extended-volumes:volumes_attached":[],"locked":false,"description":null,"tags":["k8s-cluster=bench","k8s-pool=pool{pool}"],"trusted_image_certificates":null,"server_groups":[],"security_groups":[{{"name":"k8s-nodes"}}]}}"#,
        number / 250,
        number % 250 + 2,
        number % 3
    )
}

fn port(number: usize) -> String {
    format!(
        r#"{{"id":"{number:08x}-aaaa-4b0e-9f5e-0f6f0a3b8c12","device_id":"{number:08x}-7c1e-4b0e-9f5e-0f6f0a3b8c12","device_owner":"compute:zone-{}","network_id":"9d9e7f1a-0000-4000-8000-000000000002","fixed_ips":[{{"subnet_id":"9d9e7f1a-0000-4000-8000-000000000004","ip_address":"10.8.{}.{}"}}],"security_groups":["9d9e7f1a-0000-4000-8000-000000000001"],"allowed_address_pairs":[],"port_security_enabled":true,"status":"ACTIVE","revision_number":4}}"#,
        number % 3,
        number / 250,
        number % 250 + 2
    )
}
