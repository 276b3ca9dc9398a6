//! The meaning of a server's answers: cluster-info, its version, its date, the reason of a failed handshake.
//!
//! Pure: an answer comes in, a fact goes out. The words of a foreign server are cut to a few on one line.

use std::time::SystemTime;

use reveille_agent::checkup::Reading;
use reveille_agent::checkup::facts::{Node, Request};
use reveille_agent::checkup::server::{
    Api as ApiSeen, Certificate, ClusterInfo, Server, Signature, Verified,
};
use serde::Deserialize;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{self, CertificateError};

use super::epoch_s;
use crate::api::{Answer, ApiError};
use crate::certificate::Presented;
use crate::discovery::is_signed;
use crate::target::Target;
use crate::target::kubeconfig::Kubeconfig;

/// The result of one server.
pub(super) struct OfServer {
    pub(super) server: Server,
    pub(super) node: Reading<Option<Node>>,
    pub(super) requests: Reading<Vec<Request>>,
    pub(super) is_accepted: Reading<bool>,
}

/// The length of a foreign server's words that is shown.
const WORDS_MAX: usize = 160;

pub(super) fn certificate(der: &CertificateDer<'_>) -> Certificate {
    let Presented { subject, issuer, not_before_s, not_after_s, key, names, .. } = Presented::read(der);
    let pin = key.map(|key| key.to_string());
    Certificate { subject, issuer, not_before_s, not_after_s, pin, names }
}

pub(super) fn cluster_info(
    answer: &Answer,
    target: &Target,
) -> (Reading<ClusterInfo>, Vec<CertificateDer<'static>>) {
    let malformed = |why: String| (Reading::Read(ClusterInfo::Malformed(why)), Vec::new());
    match answer.status {
        200 => {}
        404 if is_of_kubernetes(answer) => return (Reading::Read(ClusterInfo::Absent), Vec::new()),
        401 | 403 if is_of_kubernetes(answer) => {
            return (Reading::Read(ClusterInfo::Forbidden(message(answer))), Vec::new());
        }
        status => {
            return (
                Reading::cannot_tell(format!("it answers {status}: {}", words(&answer.body))),
                Vec::new(),
            );
        }
    }
    let data = match serde_json::from_slice::<ConfigMap>(&answer.body) {
        Ok(map) => map.data,
        Err(_) => return (Reading::cannot_tell(format!("it answers: {}", words(&answer.body))), Vec::new()),
    };
    let Some(text) = data.get("kubeconfig") else { return malformed("it holds no kubeconfig".to_owned()) };
    let read = match Kubeconfig::of_answer(text) {
        Ok(read) => read,
        Err(error) => return malformed(error.to_string()),
    };
    if read.authorities.is_empty() {
        return malformed("its kubeconfig holds no certificate of an authority".to_owned());
    }
    const PREFIX: &str = "jws-kubeconfig-";
    let ids = || data.keys().filter_map(|key| key.strip_prefix(PREFIX)).map(str::to_owned).collect();
    let signature = match &target.token {
        None => Signature::NoToken,
        Some(token) => match data.get(&format!("{PREFIX}{}", token.id())) {
            None => Signature::Missing(ids()),
            Some(signature) if is_signed(text, signature, token) => Signature::Good,
            Some(_) => Signature::Wrong,
        },
    };
    (Reading::Read(ClusterInfo::There(signature)), read.authorities)
}

/// Why a handshake with the trusted CA failed.
pub(super) fn unverified(failure: &rustls::Error) -> Verified {
    let rustls::Error::InvalidCertificate(why) = failure else { return Verified::No(failure.to_string()) };
    match why {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Verified::WrongName
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Verified::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Verified::NotYet,
        CertificateError::UnknownIssuer | CertificateError::BadSignature => Verified::OtherAuthority,
        other => Verified::No(other.to_string()),
    }
}

pub(super) fn api(version: &Result<Answer, ApiError>, live: &Result<Answer, ApiError>) -> Reading<ApiSeen> {
    let answer = match version {
        Ok(answer) => answer,
        Err(ApiError::Silent { .. }) => return Reading::Read(ApiSeen::Silent),
        Err(error) => return Reading::cannot_tell(error.to_string()),
    };
    let said = match serde_json::from_slice::<Version>(&answer.body) {
        Ok(version) if answer.status == 200 => ApiSeen::Is(version.git_version),
        _ if is_of_kubernetes(answer) => ApiSeen::Refuses(answer.status, message(answer)),
        _ => ApiSeen::Else(answer.status, words(&answer.body)),
    };
    Reading::Read(match (said, live) {
        // The answer names the unhealthy part, one line for each.
        (ApiSeen::Is(_), Ok(live)) if live.status >= 500 => {
            let text = String::from_utf8_lossy(&live.body);
            let failed = text.lines().filter(|line| line.starts_with("[-]")).collect::<Vec<_>>().join("; ");
            ApiSeen::Refuses(live.status, words(failed.as_bytes()))
        }
        (said, _) => said,
    })
}

/// The server's clock minus ours.
pub(super) fn offset(answer: &Answer) -> Reading<i64> {
    let Some(date) = &answer.date else { return Reading::cannot_tell("its answer has no date") };
    match httpdate::parse_http_date(date) {
        Ok(theirs) => Reading::Read(epoch_s(theirs) - epoch_s(SystemTime::now())),
        Err(_) => Reading::cannot_tell(format!("its answer has no date but \"{}\"", words(date.as_bytes()))),
    }
}

fn is_of_kubernetes(answer: &Answer) -> bool {
    serde_json::from_slice::<Status>(&answer.body).is_ok_and(|status| status.kind == "Status")
}

pub(super) fn message(answer: &Answer) -> String {
    let status = serde_json::from_slice::<Status>(&answer.body).map(|status| status.message);
    words(status.as_deref().map_or(&answer.body, str::as_bytes))
}

/// The first words of a foreign server, on one line.
pub(super) fn words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS_MAX);
    plain.collect::<String>().trim().to_owned()
}

#[derive(Deserialize)]
struct ConfigMap {
    data: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    git_version: String,
}

#[derive(Deserialize)]
struct Status {
    kind: String,
    #[serde(default)]
    message: String,
}

/// The body of an answer, or the words of a refusal.
pub(super) fn body<T>(
    asked: Result<Answer, ApiError>,
    of: impl FnOnce(u16, &[u8]) -> Option<Result<T, serde_json::Error>>,
) -> Reading<T> {
    match asked {
        Err(error) => Reading::cannot_tell(error.to_string()),
        Ok(answer) => match of(answer.status, &answer.body) {
            Some(read) => read.into(),
            None => Reading::cannot_tell(format!(
                "the API server answers {}: {}",
                answer.status,
                message(&answer)
            )),
        },
    }
}
