//! Keystone, Nova and Neutron as made-up answers over real HTTP: servers of four pools, each with a port and one group.
//!
//! Lists come in pages as the real services give them: a page that is full links to the next one, which may be empty. Nothing
//! ever changes, so a request for changes gets a list without servers. Answers hold the other fields of real ones beside those
//! that are needed.

use std::net::SocketAddr;

use super::http_service::{Answer, Asked, HttpService};

/// Pools that the servers belong to.
pub(crate) const POOLS: usize = 4;
/// Nova's own default maximum.
const SERVERS_PER_PAGE: usize = 1_000;
const PROJECT: &str = "0123456789abcdef0123456789abcdef";
const GROUPS: &str = r#"{"security_groups":[{"id":"9d9e7f1a-0000-4000-8000-000000000001","name":"k8s-nodes","project_id":"0123456789abcdef0123456789abcdef","security_group_rules":[]}]}"#;
const ROUTERS: &str =
    r#"{"routers":[{"id":"9d9e7f1a-0000-4000-8000-00000000000f","routes":[],"revision_number":3}]}"#;

/// Starts a project with so many servers.
pub(crate) fn start(servers: usize) -> std::io::Result<HttpService> {
    HttpService::start(move |address| {
        // The pages that are asked for most are written once: what is measured is the client.
        let first = page("servers", servers, 0, SERVERS_PER_PAGE, &server);
        move |asked: &Asked| answer(address, servers, &first, asked)
    })
}

fn answer(address: SocketAddr, servers: usize, first: &str, asked: &Asked) -> Answer {
    // Ids begin with the number, in hexadecimal; a marker is the last one of the page before.
    let after = asked.parameter("marker").and_then(|id| usize::from_str_radix(id.get(..8)?, 16).ok());
    let from = after.map_or(0, |last| last + 1);
    match asked.path.as_str() {
        "/v3/auth/tokens" => Answer::Whole(201, "X-Subject-Token: bench\r\n", login(address)),
        "/v2.1/" | "/v2.1" => Answer::ok(
            r#"{"version":{"id":"v2.1","status":"CURRENT","version":"2.96","min_version":"2.1"}}"#.to_owned(),
        ),
        "/v2.1/servers/detail" if asked.parameter("changes-since").is_some() => {
            Answer::ok(r#"{"servers":[]}"#.to_owned())
        }
        "/v2.1/servers/detail" if from == 0 => Answer::ok(first.to_owned()),
        "/v2.1/servers/detail" => Answer::ok(page("servers", servers, from, SERVERS_PER_PAGE, &server)),
        "/v2.0/ports" => {
            Answer::ok(page("ports", servers, from, asked.number("limit").unwrap_or(servers), &port))
        }
        "/v2.0/security-groups" => Answer::ok(GROUPS.to_owned()),
        "/v2.0/extensions" => Answer::ok(r#"{"extensions":[{"alias":"extraroute-atomic"}]}"#.to_owned()),
        "/v2.0/routers" => Answer::ok(ROUTERS.to_owned()),
        path if path.starts_with("/v2.0/quotas/") => {
            Answer::ok(r#"{"quota":{"router_route":256,"port":5000}}"#.to_owned())
        }
        _ => Answer::Whole(404, "", "{}".to_owned()),
    }
}

/// One page of a list; a full one links to the next.
fn page(kind: &str, total: usize, from: usize, limit: usize, entry: &dyn Fn(usize) -> String) -> String {
    let until = total.min(from + limit);
    let entries = (from..until).map(entry).collect::<Vec<_>>().join(",");
    if until < from + limit {
        return format!("{{\"{kind}\":[{entries}]}}");
    }
    let marker = format!("{:08x}-end", until - 1);
    format!(
        r#"{{"{kind}":[{entries}],"{kind}_links":[{{"rel":"next","href":"http://cloud/{kind}?marker={marker}"}}]}}"#
    )
}

fn login(address: SocketAddr) -> String {
    let endpoint = |kind: &str, path: &str| {
        format!(
            r#"{{"type":"{kind}","name":"{kind}","endpoints":[{{"interface":"public","region":"RegionOne","region_id":"RegionOne","id":"{kind}","url":"http://{address}{path}"}}]}}"#
        )
    };
    format!(
        r#"{{"token":{{"expires_at":"2099-01-01T00:00:00.000000Z","issued_at":"2026-11-21T00:00:00.000000Z","project":{{"id":"{PROJECT}","name":"bench","domain":{{"id":"default","name":"Default"}}}},"user":{{"id":"u","name":"u","domain":{{"id":"default","name":"Default"}}}},"catalog":[{},{},{}]}}}}"#,
        endpoint("identity", "/v3"),
        endpoint("compute", "/v2.1"),
        endpoint("network", "")
    )
}

/// The id of a server, wherever it is named.
pub(crate) fn server_id(number: usize) -> String {
    format!("{number:08x}-7c1e-4b0e-9f5e-0f6f0a3b8c12")
}

/// Its name, which is its node's as well.
pub(crate) fn server_name(number: usize) -> String {
    format!("kks-bench-pool{}-{number:05}", number % POOLS)
}

/// Its address.
pub(crate) fn address(number: usize) -> String {
    let [_, b, c, d] = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    format!("10.{b}.{c}.{d}")
}

/// A server as Nova describes it, with what a real answer carries beside what is needed.
fn server(number: usize) -> String {
    let pool = number % POOLS;
    format!(
        r#"{{"id":"{}","name":"{}","status":"ACTIVE","tenant_id":"{PROJECT}","user_id":"f0c2a9a1b2c3d4e5f60718293a4b5c6d","metadata":{{"provisioner":"kubernikus","kubernikus:nodepool":"pool{pool}","kubernikus:kluster":"bench"}},"hostId":"1f2e3d4c5b6a79880716253443526170aabbccddeeff00112233445566","image":{{"id":"9d9e7f1a-0000-4000-8000-000000000003","links":[{{"rel":"bookmark","href":"http://cloud/images/9d9e7f1a"}}]}},"flavor":{{"vcpus":4,"ram":16384,"disk":64,"ephemeral":0,"swap":0,"original_name":"m1.large","extra_specs":{{"hw:cpu_cores":"4"}}}},"created":"2026-10-01T08:00:00Z","updated":"2026-10-01T08:02:00Z","addresses":{{"nodes":[{{"version":4,"addr":"{}","OS-EXT-IPS:type":"fixed","OS-EXT-IPS-MAC:mac_addr":"fa:16:3e:00:00:01"}}]}},"accessIPv4":"","accessIPv6":"","links":[{{"rel":"self","href":"http://cloud/v2.1/servers/{number:08x}"}}],"OS-DCF:diskConfig":"MANUAL","progress":0,"OS-EXT-AZ:availability_zone":"zone-{}","config_drive":"True","key_name":null,"OS-SRV-USG:launched_at":"2026-10-01T08:01:30.000000","OS-SRV-USG:terminated_at":null,"OS-EXT-STS:task_state":null,"OS-EXT-STS:vm_state":"active","OS-EXT-STS:power_state":1,"os-extended-volumes:volumes_attached":[],"locked":false,"description":null,"tags":["k8s-cluster=bench","k8s-pool=pool{pool}"],"trusted_image_certificates":null,"server_groups":[],"security_groups":[{{"name":"k8s-nodes"}}]}}"#,
        server_id(number),
        server_name(number),
        address(number),
        number % 3
    )
}

fn port(number: usize) -> String {
    format!(
        r#"{{"id":"{number:08x}-aaaa-4b0e-9f5e-0f6f0a3b8c12","device_id":"{}","device_owner":"compute:zone-{}","network_id":"9d9e7f1a-0000-4000-8000-000000000002","fixed_ips":[{{"subnet_id":"9d9e7f1a-0000-4000-8000-000000000004","ip_address":"{}"}}],"security_groups":["9d9e7f1a-0000-4000-8000-000000000001"],"allowed_address_pairs":[],"port_security_enabled":true,"status":"ACTIVE","revision_number":4}}"#,
        server_id(number),
        number % 3,
        address(number)
    )
}
