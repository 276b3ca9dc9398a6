//! k3s and RKE2: one protocol, and one program that fetches its certificates from a supervisor at each start.
//!
//! ```text
//!  join       token's file and a file of ours in config.yaml.d, then the unit: enabled, started
//!  new token  the same files, written again, then the unit
//!  reset      unit stopped, copies kept, the agent's certificates and kubeconfigs away
//! ```
//!
//! The agent never changes a file that an operator wrote. Its own file lies beside them, with the server, the path of the
//! token and, if wanted, the name. The file stays, because the k3s or RKE2 agent asks for its token at each start. The
//! agent never removes the password by which a cluster recognises a machine of this name (`/etc/rancher/node/password`):
//! a machine without it is locked out of its name. It never touches the directory `server`. The operator installs the
//! program itself.

use std::sync::Arc;

use reveille_core::model::id::NodeName;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_rustls::rustls::RootCertStore;

use super::{Begun, Deed, Distribution, NameTrial, Order, Trial, UnitVerb};
use crate::api::Answer;
use crate::bundle_hash::Bundle;
use crate::discovery::{Discovered, DiscoveryError, judge_bundle};
use crate::root::Root;
use crate::target::agent_config::{AgentConfig, own_file, own_token_file};
use crate::target::kubeconfig::Kubeconfig;
use crate::target::{Endpoint, Kind, Target, TargetError, documents};

/// By this password a cluster recognises the machine that had the name before.
pub(super) const NODE_PASSWORD: &str = "/etc/rancher/node/password";
/// The port of RKE2's API server beside its supervisor; k3s serves both on one port.
const API_PORT: u16 = 6443;

/// k3s or RKE2.
#[derive(Clone, Debug)]
pub struct Supervised {
    kind: Kind,
    folder: String,
    /// The k3s or RKE2 agent appends an id of its own to the name: a full name in its configuration would have the id
    /// twice.
    adds_id: bool,
}

impl Supervised {
    /// The distribution with this machine's agent configuration.
    ///
    /// # Errors
    ///
    /// The agent's configuration cannot be read.
    pub fn of_machine(kind: Kind, root: &Root) -> Result<Self, TargetError> {
        let config = AgentConfig::read(kind, root)?;
        Ok(Self { kind, folder: config.data_folder(), adds_id: config.adds_id() })
    }

    fn file(&self, name: &str) -> String {
        format!("{}/agent/{name}", self.folder)
    }

    /// The files that identify the agent to its cluster, which it fetches again when they are missing.
    fn identity(&self) -> Vec<String> {
        let kind = self.kind;
        let fixed = [
            "kubelet.kubeconfig",
            "client-kubelet.crt",
            "client-kubelet.key",
            "serving-kubelet.crt",
            "serving-kubelet.key",
            "kubeproxy.kubeconfig",
            "client-kube-proxy.crt",
            "client-kube-proxy.key",
            "client-ca.crt",
            "server-ca.crt",
        ];
        let own = [
            format!("{kind}controller.kubeconfig"),
            format!("client-{kind}-controller.crt"),
            format!("client-{kind}-controller.key"),
            format!("etc/{kind}-agent-load-balancer.json"),
            format!("etc/{kind}-api-server-agent-load-balancer.json"),
        ];
        fixed.iter().map(|name| self.file(name)).chain(own.iter().map(|name| self.file(name))).collect()
    }

    /// The files that tell the agent its server and token, before the deeds that start it.
    fn told(&self, order: &Order<'_>) -> Vec<Deed> {
        let Order { target, token, .. } = order;
        let endpoint = target.endpoints.first().map(ToString::to_string).unwrap_or_default();
        let path = own_token_file(self.kind);
        // The token's full form has the hash of the CAs, so the agent accepts no other server as its cluster.
        let content = order.bundle.map_or_else(|| token.whole().clone(), |bundle| token.full(bundle));
        let mut said = config(order.config);
        said.insert("server".to_owned(), json!(format!("https://{endpoint}")));
        said.insert("token-file".to_owned(), json!(path));
        if let (Some(name), false) = (&target.node_name, self.adds_id) {
            said.insert("node-name".to_owned(), json!(name.as_str()));
        }
        // JSON is YAML.
        let text = Value::Object(said).to_string();
        vec![Deed::Write { path, content }, Deed::Write { path: own_file(self.kind), content: text.into() }]
    }
}

/// The plan's settings beside the server, as keys of the agent's configuration. They are read with the bounds by which the
/// agent reads its own file back: what is written stands in the way of no later plan.
fn config(text: Option<&str>) -> serde_json::Map<String, Value> {
    let read = text.and_then(|text| documents::<Value>(text).ok()).and_then(|all| all.into_iter().next());
    match read {
        Some(Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    }
}

impl Distribution for Supervised {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn unit(&self) -> &'static str {
        if self.kind == Kind::Rke2 { "rke2-agent" } else { "k3s-agent" }
    }

    fn kubeconfig(&self) -> String {
        self.file("kubelet.kubeconfig")
    }

    /// A running agent asks for its certificate by itself, again and again. A stopped agent has begun nothing that its
    /// next start would not begin again.
    fn begun(&self, root: &Root, runs: bool) -> Result<Option<Begun>, TargetError> {
        if !runs {
            return Ok(None);
        }
        let config = AgentConfig::read(self.kind, root)?;
        let token = config.token(root)?;
        // The agent keeps the CAs of its server once it took them. Until then it shows a short token to any server that
        // answers at the configured address.
        let kept = root.bytes(self.file("server-ca.crt")).ok().flatten();
        let kept = kept.and_then(|pem| Bundle::read(&pem).ok());
        let authorities = kept.map(|kept| kept.anchors).unwrap_or_default();
        let shown_at = config.server().ok().flatten().map(|(endpoint, _)| endpoint);
        Ok(Some(Begun { token, authorities, shown_at, is_whole: true, requests_at: None }))
    }

    fn debris(&self) -> Vec<String> {
        Vec::new()
    }

    fn scratch(&self, _: &NodeName) -> Vec<String> {
        Vec::new()
    }

    fn is_kubelet(&self, words: &[&str]) -> bool {
        let name = words.first().map(|path| path.rsplit('/').next().unwrap_or_default());
        let kind = self.kind.name();
        name == Some(self.unit()) || name == Some(kind) && words.get(1) == Some(&"agent")
    }

    fn authority_path(&self) -> &'static str {
        "/cacerts"
    }

    fn judge(
        &self,
        endpoint: &Endpoint,
        target: &Target,
        answer: &Answer,
    ) -> Result<Discovered, DiscoveryError> {
        judge_bundle(endpoint, target, answer)
    }

    fn kept_authorities(&self, root: &Root, target: &Target) -> Option<Discovered> {
        let kept = Bundle::read(&root.bytes(self.file("server-ca.crt")).ok()??).ok()?;
        if !is_meant(target, &kept)? {
            return None;
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(kept.anchors.iter().cloned());
        let roots = Arc::new(roots);
        Some(Discovered { roots, authorities: kept.anchors, bundle: Some(kept.hash), date: None })
    }

    fn is_of_target(&self, root: &Root, target: &Target, own: &Kubeconfig) -> Option<bool> {
        match root.bytes(self.file("server-ca.crt")).ok().flatten().and_then(|pem| Bundle::read(&pem).ok()) {
            Some(kept) => is_meant(target, &kept),
            None if target.pins.is_empty() => None,
            None => Some(own.pins().iter().any(|pin| target.pins.contains(pin))),
        }
    }

    /// A public certificate, which every client that may join can read: the answer holds no secret.
    fn trial(&self, _: &NodeName) -> Trial {
        Trial { path: format!("/v1-{}/server-ca.crt", self.kind), is_node: false }
    }

    /// The request that the agent makes at each start, with the password that it made at its first one: refused (403)
    /// where the cluster knows another password for the name. Before the agent has made a password, this must not ask:
    /// the first machine that asks under a name owns it from then on.
    fn name_trial(&self, root: &Root, node: &NodeName) -> Option<NameTrial> {
        let password = root.text(NODE_PASSWORD).ok()??;
        let kind = self.kind;
        let advice = format!(
            "the supervisor rejects this machine's node password: a machine of the name {node} joined before, and it was not this one as it is now. \
             If it is gone, or was this machine before it was reinstalled: kubectl delete node {node}; \
             kubectl -n kube-system delete secret {node}.node-password.{kind}; its agent goes on by itself then. Otherwise give this machine another name: --node-name"
        );
        Some(NameTrial {
            path: format!("/v1-{kind}/client-kubelet.crt"),
            headers: vec![
                (format!("{kind}-node-name"), node.as_str().into()),
                (format!("{kind}-node-password"), password.trim().into()),
            ],
            advice,
        })
    }

    /// The kubeconfig names the agent's own load balancer, which is down when the agent is down: so the servers
    /// themselves come first.
    fn api_servers(&self, target: &Target, own: &Kubeconfig) -> Vec<Endpoint> {
        let of_api = |endpoint: &Endpoint| match self.kind {
            Kind::Rke2 => Endpoint { port: API_PORT, ..endpoint.clone() },
            Kind::Kubeadm | Kind::K3s => endpoint.clone(),
        };
        target.endpoints.iter().map(of_api).chain([own.server.clone()]).collect()
    }

    /// The servers that the agent's load balancer remembers: the configuration may have changed since.
    fn stood_at(&self, root: &Root, _: &Kubeconfig) -> Vec<Endpoint> {
        let path = self.file(&format!("etc/{}-agent-load-balancer.json", self.kind));
        let Ok(Some(text)) = root.text(path) else { return Vec::new() };
        let read: Balancer = serde_json::from_str(&text).unwrap_or_default();
        let mut found: Vec<Endpoint> = std::iter::once(read.server_url)
            .chain(read.server_addresses)
            .filter_map(|text| Endpoint::parse("load balancer", &text).ok())
            .collect();
        found.sort();
        found.dedup();
        found
    }

    fn registers_by_token(&self) -> bool {
        true
    }

    fn join(&self, order: &Order<'_>) -> Vec<Deed> {
        let mut deeds = self.told(order);
        deeds.push(Deed::Unit(UnitVerb::Enable, self.unit()));
        deeds.push(Deed::Unit(UnitVerb::RestartUnwaited, self.unit()));
        deeds
    }

    fn bootstrap(&self, order: &Order<'_>) -> Vec<Deed> {
        self.join(order)
    }

    fn restart(&self) -> Vec<Deed> {
        vec![Deed::Unit(UnitVerb::RestartUnwaited, self.unit())]
    }

    fn reset(&self, _: &Target) -> Vec<Deed> {
        let mut kept = self.identity();
        kept.extend([own_file(self.kind), own_token_file(self.kind), NODE_PASSWORD.to_owned()]);
        let mut deeds = vec![Deed::Unit(UnitVerb::Stop, self.unit()), Deed::Keep(kept)];
        deeds.extend(self.identity().into_iter().map(Deed::Remove));
        deeds
    }
}

/// True when the kept bundle is of the target's cluster; `None` where the target does not say.
fn is_meant(target: &Target, kept: &Bundle) -> Option<bool> {
    if let Some(hash) = target.bundle {
        return Some(hash == kept.hash);
    }
    let is_pinned = |der| {
        let key = crate::certificate::Presented::read(der).key;
        key.is_some_and(|key| target.pins.contains(&key))
    };
    (!target.pins.is_empty()).then(|| kept.anchors.iter().any(is_pinned))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Balancer {
    #[serde(rename = "ServerURL")]
    server_url: String,
    #[serde(rename = "ServerAddresses")]
    server_addresses: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle_hash::BundleHash;
    use crate::target::{Arguments, Token};
    use secrecy::ExposeSecret as _;
    use std::fs;

    const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const SECRET: &str = "f9e8d7c6b5a49382";

    fn root() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        (folder, root)
    }

    fn target(kind: Kind, name: Option<&str>) -> Target {
        let arguments = Arguments {
            distribution: Some(kind),
            words: vec!["10.0.0.1:9345".to_owned()],
            token: Some(format!("K10{HASH}::server:old").into()),
            node_name: name.map(NodeName::from),
            ..Arguments::default()
        };
        Target::find(&arguments, &root().1).unwrap().unwrap()
    }

    fn told(config: Option<&str>, target: &Target, way: &Supervised) -> (Vec<Deed>, Value) {
        let token = Token::parse_for(way.kind, "test", &format!("abcdef.{SECRET}").into()).unwrap();
        let order = Order {
            target,
            node_name: &NodeName::from("w-1"),
            token: &token,
            authorities_pem: "",
            bundle: BundleHash::parse(HASH),
            config,
            ignored_checks: &[],
        };
        let deeds = way.join(&order);
        let Some(Deed::Write { path, content }) = deeds.get(1) else { panic!("{deeds:?}") };
        assert_eq!(*path, own_file(way.kind));
        let file = serde_json::from_str(content.expose_secret()).unwrap();
        (deeds, file)
    }

    #[test]
    fn join_writes_own_files_and_starts_unit_without_secret_in_args() {
        let way = Supervised::of_machine(Kind::Rke2, &root().1).unwrap();
        let (deeds, file) = told(None, &target(Kind::Rke2, None), &way);
        assert_eq!(
            file,
            json!({ "server": "https://10.0.0.1:9345", "token-file": "/etc/rancher/rke2/reveille-token" })
        );
        let [Deed::Write { path, content }, _, Deed::Unit(enable, one), Deed::Unit(start, two)] = &*deeds
        else {
            panic!("{deeds:?}")
        };
        assert_eq!(path, "/etc/rancher/rke2/reveille-token");
        let full = format!("K10{HASH}::abcdef.{SECRET}");
        assert_eq!(content.expose_secret(), full, "the agent, too, is to know its cluster");
        assert_eq!(
            (*enable, *one, *start, *two),
            (UnitVerb::Enable, "rke2-agent", UnitVerb::RestartUnwaited, "rke2-agent")
        );
        assert!(!format!("{deeds:?}").contains(SECRET), "Debug output of deeds holds no token");
    }

    #[test]
    fn wanted_node_name_is_written_beside_plan_settings() {
        let way = Supervised::of_machine(Kind::K3s, &root().1).unwrap();
        let config = r#"{"node-label+": ["a=b"], "server": "https://elsewhere:1"}"#;
        let (_, file) = told(Some(config), &target(Kind::K3s, Some("w-1")), &way);
        assert_eq!((&file["node-name"], &file["node-label+"]), (&json!("w-1"), &json!(["a=b"])));
        assert_eq!(file["server"], "https://10.0.0.1:9345", "where to go is the order's alone");
        let (_folder, root) = root();
        fs::create_dir_all(root.at("/etc/rancher/k3s")).unwrap();
        fs::write(root.at("/etc/rancher/k3s/config.yaml"), "with-node-id: true\n").unwrap();
        let way = Supervised::of_machine(Kind::K3s, &root).unwrap();
        let (_, file) = told(None, &target(Kind::K3s, Some("w-1-1a2b")), &way);
        assert_eq!(file.get("node-name"), None, "the agent would put its id behind it once more");
    }

    #[test]
    fn reset_stops_unit_keeps_copies_and_removes_only_agent_files() {
        let (_folder, root) = root();
        fs::create_dir_all(root.at("/etc/rancher/k3s")).unwrap();
        fs::write(root.at("/etc/rancher/k3s/config.yaml"), "data-dir: /data/k3s\n").unwrap();
        let way = Supervised::of_machine(Kind::K3s, &root).unwrap();
        let deeds = way.reset(&target(Kind::K3s, None));
        let [Deed::Unit(UnitVerb::Stop, "k3s-agent"), Deed::Keep(kept), removed @ ..] = &*deeds else {
            panic!("{deeds:?}")
        };
        assert!(kept.iter().any(|path| path == NODE_PASSWORD));
        assert!(removed.len() > 10);
        for deed in removed {
            let Deed::Remove(path) = deed else { panic!("{deed:?}") };
            assert!(path.starts_with("/data/k3s/agent/"), "{path}: no server's, no person's, no password");
            assert!(kept.contains(path), "{path}: a copy is kept of all that goes");
        }
    }

    #[test]
    fn agent_process_is_recognized_but_not_server_or_kubectl() {
        let way = Supervised::of_machine(Kind::K3s, &root().1).unwrap();
        for (line, wanted) in [
            ("/usr/local/bin/k3s agent", true),
            ("/var/lib/rancher/k3s/data/current/bin/k3s-agent", true),
            ("/usr/local/bin/k3s server", false),
            ("k3s kubectl get nodes", false),
            ("rke2 agent", false),
            ("", false),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(way.is_kubelet(&words), wanted, "{line}");
        }
    }
}
