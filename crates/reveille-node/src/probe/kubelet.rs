//! The kubelet: its configuration, its unit and health, the cluster of its kubeconfig, and its certificate.

use reveille_agent::checkup::Reading;
use reveille_agent::checkup::facts::{ClientCertificate, ConfigSeen, Joined, KubeletConfig, Unit};
use serde::Deserialize;
use tokio_rustls::rustls;

use rustls::RootCertStore;
use rustls::pki_types::UnixTime;
use rustls::server::WebPkiClientVerifier;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::Probe;
use crate::root::Root;
use crate::target::kubeconfig::Kubeconfig;
use crate::target::{KUBELET_CONFIG, documents};

/// The length of an unhealthy healthz answer that is shown.
const HEALTH_CHARACTERS_MAX: usize = 200;
/// The length of the answer that is read.
const HEALTH_BYTES_MAX: usize = 1024;

/// The addresses at which the kubelet listens; its defaults where its configuration names none.
#[derive(Clone, Debug)]
pub(super) struct Listens {
    pub(super) address: String,
    pub(super) port: u16,
    pub(super) health_address: String,
    pub(super) health_port: u16,
}

impl Default for Listens {
    fn default() -> Self {
        let (any, own) = ("0.0.0.0".to_owned(), "127.0.0.1".to_owned());
        Self { address: any, port: 10250, health_address: own, health_port: 10248 }
    }
}

/// The kubelet's configuration, and the addresses at which it listens.
pub(super) fn config(root: &Root) -> Reading<(ConfigSeen, Listens)> {
    let text = match root.text(KUBELET_CONFIG) {
        Ok(Some(text)) => text,
        Ok(None) => return Reading::Read((ConfigSeen::Absent, Listens::default())),
        Err(error) => return Reading::cannot_tell(format!("{KUBELET_CONFIG}: {error}")),
    };
    let read = match documents::<Config>(&text) {
        Ok(read) => read,
        Err(error) => {
            return Reading::Read((
                ConfigSeen::Broken(format!("{KUBELET_CONFIG}: {error}")),
                Listens::default(),
            ));
        }
    };
    let Some(config) = read.into_iter().find(|one| one.kind == "KubeletConfiguration") else {
        let wrong = format!("{KUBELET_CONFIG} holds no KubeletConfiguration");
        return Reading::Read((ConfigSeen::Broken(wrong), Listens::default()));
    };
    let usual = Listens::default();
    let listens = Listens {
        address: config.address.unwrap_or(usual.address),
        port: config.port.unwrap_or(usual.port),
        health_address: config.healthz_bind_address.unwrap_or(usual.health_address),
        health_port: config.healthz_port.unwrap_or(usual.health_port),
    };
    let config = KubeletConfig {
        fails_on_swap: config.fail_swap_on.unwrap_or(true),
        cgroup_driver: config.cgroup_driver.unwrap_or_else(|| "cgroupfs".to_owned()),
        evicts_at: config.eviction_hard.unwrap_or_default().into_iter().collect(),
    };
    Reading::Read((ConfigSeen::There(config), listens))
}

/// The cluster of the kubelet's kubeconfig.
pub(super) fn joined(root: &Root, path: &str) -> Reading<Joined> {
    let text = match root.text(path) {
        Ok(Some(text)) => text,
        Ok(None) => return Reading::Read(Joined::Nothing),
        Err(error) => return Reading::cannot_tell(format!("{path}: {error}")),
    };
    if text.trim().is_empty() {
        return Reading::Read(Joined::Broken(format!("{path} is empty")));
    }
    match Kubeconfig::parse(root, &text) {
        Ok(read) => Reading::Read(Joined::To {
            server: read.server.to_string(),
            pins: read.pins().iter().map(ToString::to_string).collect(),
        }),
        Err(error) => Reading::Read(Joined::Broken(format!("{path}: {error}"))),
    }
}

/// The kubelet's certificate, before any server was asked whether it accepts it.
pub(super) fn certificate(read: &Kubeconfig, of: &str) -> Option<ClientCertificate> {
    let client = read.client.as_ref()?;
    let chain = client.certificates();
    let own = chain.first()?;
    let (_, parsed) = X509Certificate::from_der(own).ok()?;
    let common_name = parsed.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
    let not_before_s = parsed.validity().not_before.timestamp();
    Some(ClientCertificate {
        path: client.certificate_path.clone().unwrap_or_else(|| of.to_owned()),
        common_name: common_name.unwrap_or_default().to_owned(),
        not_before_s,
        not_after_s: parsed.validity().not_after.timestamp(),
        is_of_authority: is_of_authority(read, not_before_s),
        has_key: client.key_pem().is_some(),
        is_accepted: Reading::cannot_tell("it was not asked"),
    })
}

/// Whether one of the kubeconfig's CAs signed the certificate. The check uses a time within the certificate's dates;
/// other code checks the dates.
fn is_of_authority(read: &Kubeconfig, not_before_s: i64) -> Reading<bool> {
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(read.authorities.iter().cloned());
    let chain = read.client.as_ref().map(crate::target::kubeconfig::Client::certificates).unwrap_or_default();
    let [own, between @ ..] = chain.as_slice() else {
        return Reading::cannot_tell("there is no certificate");
    };
    if taken == 0 {
        return Reading::cannot_tell("its kubeconfig holds no authority");
    }
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = match WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build() {
        Ok(verifier) => verifier,
        Err(error) => return Reading::cannot_tell(error.to_string()),
    };
    let within_s = u64::try_from(not_before_s).unwrap_or_default() + 1;
    let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(within_s));
    match verifier.verify_client_cert(own, between, at) {
        Ok(_) => Reading::Read(true),
        Err(rustls::Error::InvalidCertificate(
            rustls::CertificateError::UnknownIssuer | rustls::CertificateError::BadSignature,
        )) => Reading::Read(false),
        Err(error) => Reading::cannot_tell(error.to_string()),
    }
}

impl Probe {
    /// The kubelet's unit, and the answer of its health endpoint.
    pub(super) async fn kubelet_service(
        &self,
        health_at: Option<&(String, u16)>,
        unit: &str,
    ) -> (Reading<Option<Unit>>, Reading<(u16, String)>) {
        tokio::join!(self.kubelet_unit(unit), self.kubelet_health(health_at))
    }

    async fn kubelet_health(&self, health_at: Option<&(String, u16)>) -> Reading<(u16, String)> {
        let Some((address, port)) = health_at.filter(|_| self.asks_system) else {
            return Reading::cannot_tell("its healthz is switched off");
        };
        let endpoint = crate::target::Endpoint { host: address.clone(), port: *port };
        match healthz(&endpoint, self.left()).await {
            Ok(said) => Reading::Read(said),
            Err(error) => Reading::cannot_tell(format!("{endpoint}: {}", super::runtime::innermost(&error))),
        }
    }
}

/// The status and first words. A user of the machine can listen on this port before the kubelet does, send any amount of
/// text, and name another place, which root may ask and the user may not: no redirect is followed.
pub(super) async fn healthz(
    endpoint: &crate::target::Endpoint,
    within: std::time::Duration,
) -> reqwest::Result<(u16, String)> {
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let client = client.timeout(within).build()?;
    let mut answer = client.get(format!("http://{endpoint}/healthz")).send().await?;
    let status = answer.status().as_u16();
    let mut said = Vec::new();
    while said.len() < HEALTH_BYTES_MAX
        && let Some(part) = answer.chunk().await?
    {
        said.extend_from_slice(&part[..part.len().min(HEALTH_BYTES_MAX - said.len())]);
    }
    Ok((status, String::from_utf8_lossy(&said).trim().chars().take(HEALTH_CHARACTERS_MAX).collect()))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    kind: String,
    fail_swap_on: Option<bool>,
    cgroup_driver: Option<String>,
    address: Option<String>,
    port: Option<u16>,
    healthz_bind_address: Option<String>,
    healthz_port: Option<u16>,
    eviction_hard: Option<std::collections::BTreeMap<String, String>>,
}
