//! kubeadm: a configuration file, `kubeadm join`, `kubeadm reset`, and a kubelet in a unit of its own.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reveille_core::model::id::NodeName;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use tokio_rustls::rustls::RootCertStore;

use super::{Begun, Deed, Distribution, NameTrial, Order, SCRATCH, TOKEN_PLACE, Trial, UnitVerb};
use crate::api::Answer;
use crate::discovery::{self, CLUSTER_INFO, Discovered, DiscoveryError};
use crate::root::Root;
use crate::target::kubeconfig::{Kubeconfig, unreadable};
use crate::target::{
    BOOTSTRAP_KUBECONFIG, Endpoint, KUBECONFIG, KUBELET_CONFIG, Kind, Target, TargetError, Token,
};

/// Shorter than the time limit that `reveille-agent` gives the verb, so that the process that started the program also
/// ends it.
const JOIN_WITHIN: Duration = Duration::from_secs(4 * 60 + 40);
const RESET_WITHIN: Duration = Duration::from_secs(2 * 60 + 30);
/// The files that the kubelet needs beside a kubeconfig to go on by itself.
const NEEDED: [&str; 1] = [KUBELET_CONFIG];

/// kubeadm.
#[derive(Clone, Copy, Debug)]
pub struct Kubeadm;

impl Distribution for Kubeadm {
    fn kind(&self) -> Kind {
        Kind::Kubeadm
    }

    fn unit(&self) -> &'static str {
        "kubelet"
    }

    fn kubeconfig(&self) -> String {
        KUBECONFIG.to_owned()
    }

    fn begun(&self, root: &Root, _: bool) -> Result<Option<Begun>, TargetError> {
        let text = root.text(BOOTSTRAP_KUBECONFIG);
        let text = text.map_err(|error| unreadable(BOOTSTRAP_KUBECONFIG, &error))?;
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        let read = Kubeconfig::parse(root, &text).map_err(|error| error.within(BOOTSTRAP_KUBECONFIG))?;
        let token = read.token.as_ref().and_then(|token| Token::parse("bootstrap", token).ok());
        let is_whole = NEEDED.iter().all(|path| root.has(path));
        let (authorities, requests_at) = (read.authorities, Some(read.server));
        Ok(Some(Begun { token, authorities, shown_at: None, is_whole, requests_at }))
    }

    fn debris(&self) -> Vec<String> {
        vec!["/etc/kubernetes/pki/ca.crt".to_owned()]
    }

    fn scratch(&self, node: &NodeName) -> Vec<String> {
        vec![scratch(node)]
    }

    fn is_kubelet(&self, words: &[&str]) -> bool {
        words.first().is_some_and(|path| path.rsplit('/').next() == Some("kubelet"))
    }

    fn authority_path(&self) -> &'static str {
        CLUSTER_INFO
    }

    fn judge(
        &self,
        endpoint: &Endpoint,
        target: &Target,
        answer: &Answer,
    ) -> Result<Discovered, DiscoveryError> {
        discovery::judge(endpoint, target, answer)
    }

    fn kept_authorities(&self, root: &Root, target: &Target) -> Option<Discovered> {
        let own = Kubeconfig::read(root, KUBECONFIG).ok()??;
        let pinned = own.pins().iter().any(|pin| target.pins.contains(pin));
        pinned.then(|| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(own.authorities.iter().cloned());
            Discovered {
                roots: Arc::new(roots),
                authorities: own.authorities.clone(),
                bundle: None,
                date: None,
            }
        })
    }

    fn is_of_target(&self, _: &Root, target: &Target, own: &Kubeconfig) -> Option<bool> {
        (!target.pins.is_empty()).then(|| own.pins().iter().any(|pin| target.pins.contains(pin)))
    }

    fn trial(&self, node: &NodeName) -> Trial {
        Trial { path: format!("/api/v1/nodes/{node}"), is_node: true }
    }

    fn name_trial(&self, _: &Root, _: &NodeName) -> Option<NameTrial> {
        None
    }

    fn api_servers(&self, _: &Target, own: &Kubeconfig) -> Vec<Endpoint> {
        vec![own.server.clone()]
    }

    fn stood_at(&self, _: &Root, own: &Kubeconfig) -> Vec<Endpoint> {
        vec![own.server.clone()]
    }

    fn registers_by_token(&self) -> bool {
        false
    }

    fn join(&self, order: &Order<'_>) -> Vec<Deed> {
        let path = scratch(order.node_name);
        let mut arguments = vec!["join".to_owned(), "--config".to_owned(), path.clone()];
        if !order.ignored_checks.is_empty() {
            arguments.push(format!("--ignore-preflight-errors={}", order.ignored_checks.join(",")));
        }
        vec![
            Deed::Write { path: path.clone(), content: configuration(order) },
            Deed::Run { program: "kubeadm", arguments, within: JOIN_WITHIN },
            Deed::Remove(path),
        ]
    }

    fn bootstrap(&self, order: &Order<'_>) -> Vec<Deed> {
        let content = bootstrap_kubeconfig(order);
        vec![
            Deed::Write { path: BOOTSTRAP_KUBECONFIG.to_owned(), content },
            Deed::Unit(UnitVerb::Restart, self.unit()),
        ]
    }

    fn restart(&self) -> Vec<Deed> {
        vec![Deed::Unit(UnitVerb::Restart, self.unit())]
    }

    fn reset(&self, target: &Target) -> Vec<Deed> {
        let mut arguments = vec!["reset".to_owned(), "--force".to_owned()];
        arguments.extend(target.cri_socket.iter().map(|socket| format!("--cri-socket={socket}")));
        vec![
            Deed::Keep(
                [KUBECONFIG, BOOTSTRAP_KUBECONFIG, KUBELET_CONFIG, "/var/lib/kubelet/pki"]
                    .map(str::to_owned)
                    .to_vec(),
            ),
            Deed::Run { program: "kubeadm", arguments, within: RESET_WITHIN },
        ]
    }
}

/// The path contains the Node's name: machines that are containers may share the directory.
fn scratch(node: &NodeName) -> String {
    format!("{SCRATCH}/kubeadm-join-{node}.yaml")
}

/// The operator's configuration with the current token, or a configuration equal to kubeadm's arguments.
fn configuration(order: &Order<'_>) -> SecretString {
    if let Some(text) = order.config {
        // A token file may have given another token: this replaces the token that the text contains.
        let written = Target::token_of_config(text).or_else(|| order.target.token.clone());
        let written = written.as_ref().map_or(TOKEN_PLACE, |token| token.whole().expose_secret());
        return text.replace(written, order.token.whole().expose_secret()).into();
    }
    let target = order.target;
    let endpoint = target.endpoints.first().map(ToString::to_string).unwrap_or_default();
    let pins: Vec<String> = target.pins.iter().map(ToString::to_string).collect();
    let mut registration = json!({ "name": order.node_name.as_str() });
    if let Some(socket) = &target.cri_socket {
        registration["criSocket"] = json!(socket);
    }
    let file = json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": { "bootstrapToken": {
            "apiServerEndpoint": endpoint,
            "token": order.token.whole().expose_secret(),
            "caCertHashes": pins,
            "unsafeSkipCAVerification": pins.is_empty(),
        } },
        "nodeRegistration": registration,
    });
    // JSON is YAML.
    file.to_string().into()
}

fn bootstrap_kubeconfig(order: &Order<'_>) -> SecretString {
    let endpoint = order.target.endpoints.first().map(ToString::to_string).unwrap_or_default();
    let file = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "kubernetes", "cluster": {
            "certificate-authority-data": STANDARD.encode(order.authorities_pem),
            "server": format!("https://{endpoint}"),
        } }],
        "contexts": [{ "name": "bootstrap", "context": { "cluster": "kubernetes", "user": "bootstrap" } }],
        "current-context": "bootstrap",
        "users": [{ "name": "bootstrap", "user": { "token": order.token.whole().expose_secret() } }],
    });
    file.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Arguments, Token};

    const TOKEN: &str = "abcdef.0123456789abcdef";

    fn target() -> Target {
        let pin = format!("sha256:{}", "ab".repeat(32));
        let arguments = Arguments {
            words: vec!["10.0.0.1:6443".to_owned()],
            token: Some("oldold.0123456789abcdef".into()),
            ca_cert_hashes: vec![pin],
            cri_socket: Some("unix:///run/crio.sock".to_owned()),
            ..Arguments::default()
        };
        Target::find(&arguments, &Root::new("/nowhere")).unwrap().unwrap()
    }

    fn deeds(config: Option<&str>, of: fn(&Kubeadm, &Order<'_>) -> Vec<Deed>) -> Vec<Deed> {
        let (target, token) = (target(), Token::parse("test", &TOKEN.into()).unwrap());
        let ignored = ["Swap".to_owned(), "Mem".to_owned()];
        let order = Order {
            target: &target,
            node_name: &NodeName::from("w-1"),
            token: &token,
            authorities_pem: "PEM",
            bundle: None,
            config,
            ignored_checks: &ignored,
        };
        of(&Kubeadm, &order)
    }

    fn written(deeds: &[Deed]) -> (&str, serde_json::Value) {
        let Some(Deed::Write { path, content }) = deeds.first() else { panic!("{deeds:?}") };
        (path, serde_json::from_str(content.expose_secret()).unwrap_or_default())
    }

    #[test]
    fn a_token_is_in_a_file_that_goes_away_and_in_no_argument() {
        let deeds = deeds(None, Kubeadm::join);
        let (path, file) = written(&deeds);
        assert_eq!(file["discovery"]["bootstrapToken"]["token"], TOKEN);
        assert_eq!(file["discovery"]["bootstrapToken"]["apiServerEndpoint"], "10.0.0.1:6443");
        assert_eq!(file["discovery"]["bootstrapToken"]["unsafeSkipCAVerification"], false);
        assert_eq!(file["nodeRegistration"]["criSocket"], "unix:///run/crio.sock");
        assert!(path.contains("w-1"), "two that share the folder do not share the file: {path}");
        let Some(Deed::Run { program: "kubeadm", arguments, .. }) = deeds.get(1) else { panic!("{deeds:?}") };
        assert_eq!(arguments, &["join", "--config", path, "--ignore-preflight-errors=Swap,Mem"]);
        assert!(matches!(deeds.last(), Some(Deed::Remove(removed)) if removed == path));
        assert!(!format!("{deeds:?}").contains(&TOKEN[7..]), "Debug output of deeds holds no token");
    }

    #[test]
    fn operator_config_is_kept_with_current_token_inserted() {
        for (token, text) in [("oldold.0123456789abcdef", "kept"), (TOKEN_PLACE, "made before there was one")]
        {
            let config = format!("{{\"note\": \"{text}\", \"discovery\": {{\"token\": \"{token}\"}}}}");
            let (target, new) = (target(), Token::parse("test", &TOKEN.into()).unwrap());
            let target =
                Target { token: (token != TOKEN_PLACE).then(|| target.token.clone()).flatten(), ..target };
            let order = Order {
                target: &target,
                node_name: &NodeName::from("w-1"),
                token: &new,
                authorities_pem: "",
                bundle: None,
                config: Some(&config),
                ignored_checks: &[],
            };
            let deeds = Kubeadm.join(&order);
            let (_, file) = written(&deeds);
            assert_eq!((&file["note"], &file["discovery"]["token"]), (&text.into(), &TOKEN.into()));
        }
    }

    #[test]
    fn given_token_replaces_token_in_join_configuration() {
        let config = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery:\n  bootstrapToken:\n    \
                      {apiServerEndpoint: \"a:1\", token: deadde.0123456789abcdef, unsafeSkipCAVerification: true}\n";
        let deeds = deeds(Some(config), Kubeadm::join);
        let Some(Deed::Write { content, .. }) = deeds.first() else { panic!("{deeds:?}") };
        let written = content.expose_secret();
        assert!(written.contains(TOKEN) && !written.contains("deadde"), "the one that was tried is shown");
    }

    #[test]
    fn new_token_precedes_kubelet_restart_and_reset_copies_first() {
        let bootstrap = deeds(None, Kubeadm::bootstrap);
        let (path, file) = written(&bootstrap);
        assert_eq!(path, BOOTSTRAP_KUBECONFIG);
        assert_eq!(file["users"][0]["user"]["token"], TOKEN);
        assert!(matches!(bootstrap.last(), Some(Deed::Unit(UnitVerb::Restart, "kubelet"))));
        let reset = Kubeadm.reset(&target());
        assert!(
            matches!(reset.first(), Some(Deed::Keep(kept)) if kept.iter().any(|path| path == KUBECONFIG)),
            "{reset:?}"
        );
        assert!(matches!(reset.get(1), Some(Deed::Run { program: "kubeadm", .. })));
    }
}
