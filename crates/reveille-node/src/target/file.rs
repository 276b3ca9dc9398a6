//! kubeadm's JoinConfiguration, v1beta3 and v1beta4, among the other documents of its file.

use std::io::ErrorKind;
use std::path::Path;

use reveille_core::model::id::NodeName;
use secrecy::SecretString;
use serde::Deserialize;

use super::kubeconfig::{Kubeconfig, unreadable};
use super::pins::pin;
use super::{Endpoint, Kind, Target, TargetError, Token, ToldBy, documents};
use crate::root::{self, Root};

const GROUP: &str = "kubeadm.k8s.io/";
const VERSIONS: [&str; 2] = ["kubeadm.k8s.io/v1beta3", "kubeadm.k8s.io/v1beta4"];
const KIND: &str = "JoinConfiguration";

/// The target in a file. Files that it names are those of the machine below this root, on which kubeadm would read it.
pub(super) fn target(path: &Path, root: &Root) -> Result<Target, TargetError> {
    let name = path.display().to_string();
    // A path on the command line is taken as the operator's shell sees it, not as the inspected machine does.
    let text = root::named(path).and_then(root::text_of).map_err(|error| match error.kind() {
        ErrorKind::NotFound => TargetError::new(
            &name,
            "it is not there",
            "the path of the file that kubeadm join --config takes",
        ),
        _ => unreadable(&name, &error),
    })?;
    let mut target = parse(&text, root).map_err(|error| error.within(&name))?;
    target.told_by = ToldBy::File(path.to_owned());
    target.config_file = Some(path.to_owned());
    Ok(target)
}

/// The target in the text.
pub(super) fn parse(text: &str, root: &Root) -> Result<Target, TargetError> {
    of_document(document(text)?, root)
}

/// The token in the text; no file that the text names is read for it.
pub(super) fn token(text: &str) -> Option<Token> {
    let Document { discovery, .. } = document(text).ok()?;
    let Discovery { bootstrap_token, tls_bootstrap_token, .. } = discovery.unwrap_or_default();
    let text = tls_bootstrap_token.or(bootstrap_token.and_then(|discovery| discovery.token))?;
    Token::parse("token", &SecretString::from(text)).ok()
}

fn document(text: &str) -> Result<Document, TargetError> {
    let heads = documents::<Head>(text)?;
    let is_join = |head: &Head| head.kind == KIND && head.api_version.starts_with(GROUP);
    let Some(head) = heads.iter().find(|head| is_join(head)) else {
        let found: Vec<&str> =
            heads.iter().map(|head| head.kind.as_str()).filter(|kind| !kind.is_empty()).collect();
        let found = if found.is_empty() { "nothing of a kind".to_owned() } else { found.join(", ") };
        return Err(TargetError::new(
            "kind",
            format!("it holds no JoinConfiguration; it holds {found}"),
            "a document with `apiVersion: kubeadm.k8s.io/v1beta4` and `kind: JoinConfiguration`",
        ));
    };
    if !VERSIONS.contains(&head.api_version.as_str()) {
        return Err(TargetError::new(
            "apiVersion",
            format!("{} is not read here", head.api_version),
            format!("{}; kubeadm config migrate --old-config FILE does it", VERSIONS.join(" or ")),
        ));
    }
    let documents = documents::<Document>(text)?;
    let join = documents.into_iter().find(|one| one.kind == KIND && one.api_version == head.api_version);
    // Both passes read the same text; a missing document is reported like an empty one.
    join.ok_or_else(|| TargetError::new("kind", "it holds no JoinConfiguration", "one"))
}

fn of_document(join: Document, root: &Root) -> Result<Target, TargetError> {
    let Discovery { bootstrap_token, file, tls_bootstrap_token } = join.discovery.unwrap_or_default();
    let mut target = match (bootstrap_token, file) {
        (Some(discovery), _) => of_token(discovery)?,
        (None, Some(file)) => of_discovery_file(&file.kube_config_path.unwrap_or_default(), root)?,
        (None, None) => {
            return Err(TargetError::new(
                "discovery",
                "it says neither bootstrapToken nor file",
                "discovery.bootstrapToken with apiServerEndpoint, token and caCertHashes",
            ));
        }
    };
    if let Some(text) = tls_bootstrap_token {
        target.token = Some(Token::parse("discovery.tlsBootstrapToken", &SecretString::from(text))?);
    }
    let registration = join.node_registration.unwrap_or_default();
    target.node_name =
        registration.name.filter(|name| !name.is_empty()).map(|name| NodeName::from(name.as_str()));
    target.cri_socket = registration.cri_socket.filter(|socket| !socket.is_empty());
    target.is_control_plane = join.control_plane.is_some();
    Ok(target)
}

fn of_token(discovery: BootstrapToken) -> Result<Target, TargetError> {
    let place = "discovery.bootstrapToken.apiServerEndpoint";
    let endpoint = Endpoint::of_file(place, &discovery.api_server_endpoint.unwrap_or_default())?;
    let hashes = discovery.ca_cert_hashes.unwrap_or_default();
    let place = "discovery.bootstrapToken.caCertHashes";
    let pins = hashes.iter().map(|hash| pin(place, hash)).collect::<Result<Vec<_>, _>>()?;
    let is_unpinned_on_purpose = discovery.unsafe_skip_ca_verification.unwrap_or(false);
    if pins.is_empty() && !is_unpinned_on_purpose {
        return Err(TargetError::new(
            place,
            "no pin is given, so any server could answer in the API server's place",
            "the sha256:… that `kubeadm token create --print-join-command` prints",
        ));
    }
    let token = SecretString::from(discovery.token.unwrap_or_default());
    let token = Some(Token::parse("discovery.bootstrapToken.token", &token)?);
    Ok(Target { endpoints: vec![endpoint], pins, is_unpinned_on_purpose, token, ..nothing() })
}

/// The target in a kubeconfig that describes the cluster (`--discovery-file`), below this root.
pub(super) fn of_discovery_file(path: &str, root: &Root) -> Result<Target, TargetError> {
    if path.starts_with("http") {
        return Err(TargetError::new(
            "the discovery file",
            format!("{path} is not fetched here"),
            "the path of a file: fetch it first, with what you trust its server by",
        ));
    }
    let read = Kubeconfig::read(root, path)?;
    let read = read.ok_or_else(|| {
        TargetError::new(
            "the discovery file",
            format!("{path} is not there"),
            "the path of a kubeconfig of the cluster",
        )
    })?;
    Ok(Target { endpoints: vec![read.server.clone()], pins: read.pins(), ..nothing() })
}

/// A target without any setting.
pub(super) const fn nothing() -> Target {
    Target {
        kind: Kind::Kubeadm,
        told_by: ToldBy::Arguments,
        endpoints: Vec::new(),
        pins: Vec::new(),
        bundle: None,
        is_unpinned_on_purpose: false,
        token: None,
        node_name: None,
        cri_socket: None,
        config_file: None,
        is_control_plane: false,
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Head {
    kind: String,
    api_version: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    kind: String,
    api_version: String,
    discovery: Option<Discovery>,
    node_registration: Option<NodeRegistration>,
    control_plane: Option<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Discovery {
    bootstrap_token: Option<BootstrapToken>,
    file: Option<DiscoveryFile>,
    tls_bootstrap_token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BootstrapToken {
    token: Option<String>,
    #[serde(rename = "apiServerEndpoint")]
    api_server_endpoint: Option<String>,
    #[serde(rename = "caCertHashes")]
    ca_cert_hashes: Option<Vec<String>>,
    #[serde(rename = "unsafeSkipCAVerification")]
    unsafe_skip_ca_verification: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DiscoveryFile {
    kube_config_path: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeRegistration {
    name: Option<String>,
    cri_socket: Option<String>,
}
