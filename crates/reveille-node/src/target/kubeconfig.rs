//! A kubelet's kubeconfig: the server, its CAs, and the credentials.
//!
//! Only the content of a kubelet's file is read: one context, a certificate and key in files or in the text, or a token.
//! The caller reads the named files. A key is in a type that hides itself.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::{Endpoint, TargetError, documents};
use crate::certificate::Presented;
use crate::pin::Pin;
use crate::root::Root;

const AS_KUBEADM: &str = "a kubeconfig as kubeadm writes it";

/// The current context of a kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    /// The API server's address.
    pub server: Endpoint,
    /// The certificates of the trusted CAs, DER.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The token for the server.
    pub token: Option<SecretString>,
    /// The client certificate and key for the server.
    pub client: Option<Client>,
}

/// A client certificate and its key.
#[derive(Clone, Debug)]
pub struct Client {
    /// The path of the certificate; `None` when the kubeconfig contains it.
    pub certificate_path: Option<String>,
    /// The path of the key; `None` when the kubeconfig contains it.
    pub key_path: Option<String>,
    /// The certificate and the text around it, as PEM; `None` when its file does not exist.
    certificate_pem: Option<SecretString>,
    key_pem: Option<SecretString>,
}

impl Kubeconfig {
    /// Reads a kubeconfig of the machine; `None` when it does not exist.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not a kubeconfig.
    pub fn read(root: &Root, path: &str) -> Result<Option<Self>, TargetError> {
        let text = root.text(path).map_err(|error| unreadable(path, &error))?;
        text.map(|text| Self::parse(root, &text).map_err(|error| error.within(path))).transpose()
    }

    /// Reads the text of a kubeconfig; the files that it names are the machine's.
    ///
    /// # Errors
    ///
    /// The text is not a kubeconfig, or a file that it needs cannot be read.
    pub fn parse(root: &Root, text: &str) -> Result<Self, TargetError> {
        let file = documents::<File>(text)?.into_iter().next();
        let file = file.ok_or_else(|| TargetError::new("the file", "it is empty", AS_KUBEADM))?;
        let missing = |field: &str| TargetError::new(field, "it is missing", AS_KUBEADM);
        let (cluster, user) = match file.contexts.iter().find(|one| one.name == file.current_context) {
            Some(one) => (
                file.clusters.iter().find(|cluster| cluster.name == one.context.cluster),
                file.users.iter().find(|user| user.name == one.context.user),
            ),
            // The kubeconfig in a cluster-info has one cluster, no context and no user.
            None if file.contexts.is_empty() => (file.clusters.first(), None),
            None => return Err(missing("current-context")),
        };
        let cluster = &cluster.ok_or_else(|| missing("clusters"))?.cluster;
        let server = Endpoint::of_file("clusters[].cluster.server", &cluster.server)?;
        let user = user.map(|user| &user.user);
        Ok(Self {
            server,
            authorities: authorities(root, cluster)?,
            token: user.and_then(|user| user.token.as_deref()).map(SecretString::from),
            client: user.map(|user| client(root, user)).transpose()?.flatten(),
        })
    }

    /// Reads a kubeconfig that a server sent. The server is not trusted yet: a path in the text leads nowhere. So no file
    /// of this machine is read for it, and the server does not learn which files exist.
    ///
    /// # Errors
    ///
    /// The text is not a kubeconfig, or names a file.
    pub fn of_answer(text: &str) -> Result<Self, TargetError> {
        Self::parse(&Root::new("/dev/null"), text)
    }

    /// The pins of the kubeconfig's CAs.
    pub fn pins(&self) -> Vec<Pin> {
        self.authorities.iter().filter_map(|der| Presented::read(der).key).collect()
    }
}

impl Client {
    /// The certificates, the client's own first, DER; none when the file does not exist or holds none.
    pub fn certificates(&self) -> Vec<CertificateDer<'static>> {
        let pem = self.certificate_pem.as_ref().map_or("", |pem| pem.expose_secret());
        CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok).collect()
    }

    /// The key, PEM.
    pub const fn key_pem(&self) -> Option<&SecretString> {
        self.key_pem.as_ref()
    }

    /// True when the named files exist.
    pub const fn is_whole(&self) -> bool {
        self.certificate_pem.is_some() && self.key_pem.is_some()
    }
}

fn authorities(root: &Root, cluster: &Cluster) -> Result<Vec<CertificateDer<'static>>, TargetError> {
    let (field, pem) = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => {
            let field = "clusters[].cluster.certificate-authority-data";
            (field, decoded(field, data)?)
        }
        (None, Some(path)) => {
            let bytes = root.bytes(path).map_err(|error| unreadable(path, &error))?;
            let pem = bytes.ok_or_else(|| TargetError::new(path, "it is not there", AS_KUBEADM))?;
            ("clusters[].cluster.certificate-authority", pem)
        }
        (None, None) => return Ok(Vec::new()),
    };
    CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(|_| {
        TargetError::new(
            field,
            "it holds no certificate as PEM",
            "the cluster's CA, as /etc/kubernetes/pki/ca.crt has it",
        )
    })
}

fn client(root: &Root, user: &User) -> Result<Option<Client>, TargetError> {
    let part = |field: &str, data: &Option<String>, path: &Option<String>| match (data, path) {
        (Some(data), _) => decoded(field, data).map(|bytes| Some(text(bytes))),
        (None, Some(path)) => {
            let bytes = root.bytes(path).map_err(|error| unreadable(path, &error))?;
            Ok(bytes.map(text))
        }
        (None, None) => Ok(None),
    };
    let User { client_certificate, client_certificate_data, client_key, client_key_data, .. } = user;
    if client_certificate.is_none() && client_certificate_data.is_none() {
        return Ok(None);
    }
    Ok(Some(Client {
        certificate_pem: part(
            "users[].user.client-certificate-data",
            client_certificate_data,
            client_certificate,
        )?,
        key_pem: part("users[].user.client-key-data", client_key_data, client_key)?,
        certificate_path: client_certificate.clone().filter(|_| client_certificate_data.is_none()),
        key_path: client_key.clone().filter(|_| client_key_data.is_none()),
    }))
}

fn decoded(field: &str, data: &str) -> Result<Vec<u8>, TargetError> {
    let data: String = data.chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD.decode(data).map_err(|_| TargetError::new(field, "it is not base64", AS_KUBEADM))
}

fn text(bytes: Vec<u8>) -> SecretString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

pub(crate) fn unreadable(path: &str, error: &io::Error) -> TargetError {
    let write =
        if error.kind() == io::ErrorKind::PermissionDenied { "run it as root" } else { "look at the file" };
    TargetError::new(path, format!("it cannot be read: {error}"), write)
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    clusters: Vec<NamedCluster>,
    #[serde(default)]
    contexts: Vec<NamedContext>,
    #[serde(default)]
    users: Vec<NamedUser>,
    #[serde(default)]
    current_context: String,
}

#[derive(Deserialize)]
struct NamedCluster {
    #[serde(default)]
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    #[serde(default)]
    server: String,
    certificate_authority: Option<String>,
    certificate_authority_data: Option<String>,
}

#[derive(Deserialize)]
struct NamedContext {
    #[serde(default)]
    name: String,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    #[serde(default)]
    cluster: String,
    #[serde(default)]
    user: String,
}

#[derive(Deserialize)]
struct NamedUser {
    #[serde(default)]
    name: String,
    user: User,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    token: Option<String>,
    client_certificate: Option<String>,
    client_certificate_data: Option<String>,
    client_key: Option<String>,
    client_key_data: Option<String>,
}
