//! kubeadm's arguments, as operators have them in their scripts.

use std::io::ErrorKind;
use std::path::PathBuf;

use reveille_core::model::id::NodeName;
use secrecy::{ExposeSecret as _, SecretString};

use super::file::nothing;
use super::pins::pin;
use super::{Endpoint, Kind, Pin, Target, TargetError, Token, ToldBy, agent_config, file};
use crate::private;
use crate::root::Root;

const ENDPOINT: &str = "HOST:PORT";
const TOKEN: &str = "--token";
const HASH: &str = "--discovery-token-ca-cert-hash";
const CONFIG: &str = "--config";

/// The arguments of the command line; each may be missing.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// `--distribution`.
    pub distribution: Option<Kind>,
    /// Words without a flag: `HOST:PORT`, also after a pasted `kubeadm join`.
    pub words: Vec<String>,
    /// `--token`, or the environment variable that replaces it.
    pub token: Option<SecretString>,
    /// `--token-file`: a file with only the token.
    pub token_file: Option<PathBuf>,
    /// `--discovery-token-ca-cert-hash`, each once or several with commas.
    pub ca_cert_hashes: Vec<String>,
    /// `--discovery-token-unsafe-skip-ca-verification`.
    pub skip_ca_verification: bool,
    /// `--discovery-file`.
    pub discovery_file: Option<PathBuf>,
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--node-name`.
    pub node_name: Option<NodeName>,
    /// `--cri-socket`.
    pub cri_socket: Option<String>,
    /// `--control-plane`.
    pub is_control_plane: bool,
}

impl Arguments {
    /// The target in the arguments; `None` when they name no server.
    pub(super) fn target(&self, root: &Root) -> Result<Option<Target>, TargetError> {
        let endpoints = self.endpoints()?;
        let kind = self.kind(root);
        if kind != Kind::Kubeadm {
            return self.of_supervisor(kind, endpoints, root);
        }
        if let Some(config) = &self.config {
            if !endpoints.is_empty() {
                return Err(TargetError::new(
                    CONFIG,
                    "a file and a HOST:PORT are given; both say what is to be joined",
                    "one of the two",
                ));
            }
            let mut target = file::target(config, root)?;
            target.node_name = self.node_name.clone().or(target.node_name);
            target.cri_socket = self.cri_socket.clone().or(target.cri_socket);
            target.token = self.token(kind)?.or(target.token);
            return Ok(Some(target));
        }
        let mut target = match &self.discovery_file {
            Some(path) => {
                let path = path.display().to_string();
                // A path on the command line is the host's, as the operator's shell sees it.
                let mut target = file::of_discovery_file(&path, &Root::default())?;
                if !endpoints.is_empty() {
                    target.endpoints = endpoints;
                }
                target
            }
            None if endpoints.is_empty() => return Ok(None),
            None => Target { endpoints, ..nothing() },
        };
        target.pins.extend(self.pins()?);
        target.told_by = ToldBy::Arguments;
        target.is_unpinned_on_purpose = self.skip_ca_verification;
        target.token = self.token(kind)?;
        target.node_name = self.node_name.clone();
        target.cri_socket = self.cri_socket.clone();
        target.is_control_plane = self.is_control_plane;
        Ok(Some(target))
    }

    /// The distribution: as the arguments or the machine's files say; kubeadm where neither does, and where the words
    /// name kubeadm.
    pub fn kind(&self, root: &Root) -> Kind {
        let names_kubeadm = self.words.iter().any(|word| word == "kubeadm" || word.ends_with("/kubeadm"));
        let is_kubeadms = names_kubeadm || self.config.is_some() || self.discovery_file.is_some();
        match self.distribution {
            Some(kind) => kind,
            None if is_kubeadms => Kind::Kubeadm,
            None => agent_config::kind_of(root).unwrap_or_default(),
        }
    }

    /// The target of a k3s or RKE2 cluster in the arguments. Other settings of the agent are in its own files, which this
    /// does not change.
    fn of_supervisor(
        &self,
        kind: Kind,
        endpoints: Vec<Endpoint>,
        root: &Root,
    ) -> Result<Option<Target>, TargetError> {
        let foreign = [(CONFIG, self.config.is_some()), ("--discovery-file", self.discovery_file.is_some())];
        if let Some((place, _)) = foreign.into_iter().find(|(_, is_given)| *is_given) {
            let write = format!(
                "/etc/rancher/{kind}/config.yaml, which its agent reads by itself, and the server as HOST:PORT"
            );
            return Err(TargetError::new(place, format!("it is kubeadm's, and {kind} joins here"), write));
        }
        if self.is_control_plane {
            let write = format!("nothing: servers of {kind} are not joined here");
            return Err(TargetError::new("--control-plane", "only agents are joined here", write));
        }
        if endpoints.is_empty() {
            return Ok(None);
        }
        let told = agent_config::AgentConfig::read(kind, root)?;
        if let Some((flag, unit, value)) = told.fixed()
            && (flag != "server" || told.server()?.is_some_and(|(server, _)| !endpoints.contains(&server)))
        {
            let wrong = format!(
                "its ExecStart gives {value}, which goes before every file: what is joined cannot be said elsewhere"
            );
            let write =
                format!("nothing of it: take {value} out of the unit, and run systemctl daemon-reload");
            return Err(TargetError::new(unit, wrong, write));
        }
        // Without a given token, the one in the agent's configuration may do.
        let token = match self.token(kind)? {
            Some(token) => Some(token),
            None => told.token(root)?,
        };
        Ok(Some(Target {
            kind,
            told_by: ToldBy::Arguments,
            endpoints,
            pins: self.pins()?,
            bundle: token.as_ref().and_then(Token::bundle),
            is_unpinned_on_purpose: self.skip_ca_verification,
            token,
            node_name: self.node_name.clone(),
            cri_socket: self.cri_socket.clone(),
            ..nothing()
        }))
    }

    /// Each named server. Pasted words before it are ignored.
    fn endpoints(&self) -> Result<Vec<Endpoint>, TargetError> {
        let mut words = self.words.iter().map(String::as_str).peekable();
        words.next_if(|word| *word == "sudo");
        if words.next_if(|word| *word == "kubeadm" || word.ends_with("/kubeadm")).is_some() {
            words.next_if(|word| *word == "join");
        }
        words.map(|word| Endpoint::parse(ENDPOINT, word)).collect()
    }

    /// The given token, read from its file where it is in one.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the text is not a token of this distribution.
    pub fn token(&self, kind: Kind) -> Result<Option<Token>, TargetError> {
        let Some(path) = &self.token_file else {
            return self.token.as_ref().map(|token| Token::parse_for(kind, TOKEN, token)).transpose();
        };
        let name = path.display().to_string();
        let text = private::token_file(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                TargetError::new(&name, "it is not there", "the path of a file with nothing but the token")
            }
            ErrorKind::Other => TargetError::new(&name, &error, "the path of a file that you alone may read"),
            _ => super::kubeconfig::unreadable(&name, &error),
        })?;
        let text = SecretString::from(text);
        // Editors end a file with a line break.
        let token = Token::parse_for(kind, &name, &SecretString::from(text.expose_secret().trim()))?;
        Ok(Some(token))
    }

    /// The given pins.
    pub(super) fn pins(&self) -> Result<Vec<Pin>, TargetError> {
        let each = self.ca_cert_hashes.iter().flat_map(|written| written.split(','));
        each.filter(|text| !text.trim().is_empty()).map(|text| pin(HASH, text)).collect()
    }
}
