//! How a service words a refusal, in its several dialects.
//!
//! Nova: `{"itemNotFound": {"code", "message"}}`. Neutron: `{"NeutronError": {"type", "message"}}`, and in old gateways plain
//! text. Keystone and its middleware: `{"error": {"title", "message"}}`. A gateway in between: HTML, of which only the status is
//! of use. The adapter believes an absence only from the service itself: a load balancer's 404 page can mean that the balancer
//! lost the service, not that the machine is gone.

use std::fmt;

use reqwest::StatusCode;
use reveille_cloud::failure::{Ending, Failure};
use reveille_cloud::http::Reply;
use reveille_cloud::text::message;
use reveille_core::effect::ReadErrorKind;
use reveille_core::model::id::RequestId;
use reveille_core::model::time::Span;
use serde_json::Value;

use crate::catalog::Service;

/// A negative answer, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// Who was asked.
    asked: Service,
    /// Whose dialect the answer is in; `None` where something in between answered.
    by: Option<Service>,
    /// The fault's name: `itemNotFound`, `RouterNotFound`, `OverQuota`. Only where the service itself answered.
    pub fault: Option<String>,
    /// In its words, cleaned and shortened.
    pub message: String,
    /// Not before this long, when it said so.
    pub retry_after: Option<Span>,
    /// Its operator's handle on this answer.
    pub request: Option<RequestId>,
}

impl Refusal {
    /// Reads an answer of this service that is not a success.
    pub(crate) fn read(reply: &Reply, asked: Service) -> Self {
        let (by, fault, said) = match serde_json::from_slice::<Value>(&reply.body) {
            Ok(body) => read_json(&body),
            Err(_) => (None, None, read_plain(&reply.body)),
        };
        Self {
            status: reply.status,
            asked,
            by,
            fault,
            message: message(&said),
            retry_after: reply.retry_after,
            request: reply.request.clone(),
        }
    }

    /// A success that is not the service's own answer to a change.
    pub(crate) fn unclear(reply: &Reply, asked: Service) -> Self {
        let message = "this is not how the service answers a change that it took".to_owned();
        Self { message, ..Self::read(reply, asked) }
    }

    /// True when the service itself says that this thing does not exist.
    pub(crate) fn says_absent(&self) -> bool {
        let fault = self.fault.as_deref().unwrap_or("");
        self.status == StatusCode::NOT_FOUND
            && self.by == Some(self.asked)
            && match self.asked {
                Service::Compute => fault == "itemNotFound",
                // Its router's own 404, for a path that is no path.
                Service::Network => fault.ends_with("NotFound") && fault != "HTTPNotFound",
                Service::Identity => true,
            }
    }

    /// True for the statuses that mean "later".
    pub(crate) fn says_throttled(&self) -> bool {
        matches!(self.status.as_u16(), 413 | 429 | 498)
    }

    /// True when a limit or quota is the reason, in any release's words.
    pub(crate) fn says_limit(&self) -> bool {
        let fault = self.fault.as_deref().unwrap_or("");
        let limits = ["OverQuota", "RoutesExhausted", "AddressPairsExhausted", "AllowedAddressPairExhausted"];
        let words = ["quota exceeded", "exceeds the maximum", "exceeded for resources"];
        let text = self.message.to_ascii_lowercase();
        matches!(self.status.as_u16(), 400 | 403 | 409)
            && (limits.contains(&fault) || words.iter().any(|word| text.contains(word)))
    }

    /// The number in the words, where there is exactly what looks like one: `… exceeds the maximum 30.`
    pub(crate) fn number(&self) -> Option<u32> {
        self.message
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
            .filter(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()))
            .filter_map(|word| word.parse().ok())
            .next_back()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status.canonical_reason() {
            Some(reason) => write!(f, "{} {reason}", self.status.as_u16())?,
            None => write!(f, "{}", self.status.as_u16())?,
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        match &self.request {
            Some(request) => write!(f, " ({request})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

impl Failure for Refusal {
    fn read_kind(&self) -> ReadErrorKind {
        match self.status {
            _ if self.says_throttled() => ReadErrorKind::Throttled,
            StatusCode::UNAUTHORIZED => ReadErrorKind::Unauthorized,
            StatusCode::FORBIDDEN => ReadErrorKind::Forbidden,
            StatusCode::NOT_FOUND => ReadErrorKind::Unavailable,
            status if status.is_server_error() => ReadErrorKind::Unavailable,
            _ => ReadErrorKind::Malformed,
        }
    }

    fn retry_after(&self) -> Option<Span> {
        self.retry_after
    }

    fn ending(&self) -> Ending {
        match self.status.as_u16() {
            200..=299 => Ending::Unknown,
            _ if self.says_limit() => Ending::Limit(self.number()),
            412 => Ending::Moved,
            // Nova's conflict is with the present state of the instance. That can be a lock, which a user lifts again.
            409 if self.asked == Service::Compute => Ending::Moved,
            // Of the credential, not of the thing: a quota's 403 is told apart above.
            401 | 403 => Ending::Denied,
            408 | 413 | 429 | 498 | 503 => Ending::NotDone(self.retry_after),
            // Not from the service: a proxy on the way answered and did not pass the request on.
            404 if !self.says_absent() => Ending::NotDone(None),
            501 => Ending::Refused,
            500.. => Ending::Unknown,
            300..=399 => Ending::NotDone(None),
            _ => Ending::Refused,
        }
    }
}

fn read_json(body: &Value) -> (Option<Service>, Option<String>, String) {
    let Some((name, inner)) = body.as_object().and_then(|object| object.iter().next()) else {
        return (None, None, String::new());
    };
    let said = |key: &str| inner.get(key).and_then(Value::as_str).map(str::to_owned);
    let message = said("message").or_else(|| inner.as_str().map(str::to_owned)).unwrap_or_default();
    let (by, fault) = match name.as_str() {
        "NeutronError" => (Some(Service::Network), said("type")),
        // Its middleware speaks alike; only Keystone itself has looked for the thing.
        "error" if message.starts_with("Could not find ") => (Some(Service::Identity), said("title")),
        "error" => (None, said("title")),
        other if inner.get("message").is_some() => (Some(Service::Compute), Some(other.to_owned())),
        _ => (None, None),
    };
    (by, fault, message)
}

fn read_plain(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if text.starts_with('<') { String::new() } else { text.lines().next().unwrap_or("").to_owned() }
}

#[cfg(test)]
mod tests {
    use reveille_cloud::report::Place;

    use super::*;

    fn refusal_of(service: Service, status: u16, body: &str, retry_after: Option<Span>) -> Refusal {
        let status = StatusCode::from_u16(status).unwrap();
        let body = body.as_bytes().to_vec();
        Refusal::read(&Reply { status, retry_after, body, ..Reply::default() }, service)
    }

    fn refusal(status: u16, body: &str) -> Refusal {
        refusal_of(Service::Compute, status, body, None)
    }

    #[test]
    fn every_dialect_is_understood() {
        let cases = [
            (
                404,
                r#"{"itemNotFound": {"code": 404, "message": "Instance a could not be found."}}"#,
                "404 Not Found: Instance a could not be found",
            ),
            (
                409,
                r#"{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['router_route'].", "detail": ""}}"#,
                "409 Conflict: Quota exceeded for resources: ['router_route']",
            ),
            (
                401,
                r#"{"error": {"code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication."}}"#,
                "401 Unauthorized: The request you have made requires authentication",
            ),
            (498, "Rate Limit Exceeded\nmore", "498: Rate Limit Exceeded"),
            (503, "<html><body>no backend</body></html>", "503 Service Unavailable"),
            (500, "", "500 Internal Server Error"),
            (
                400,
                r#"{"NeutronError": "plain words\u001b[0m here"}"#,
                "400 Bad Request: plain words [0m here",
            ),
        ];
        for (status, body, shown) in cases {
            assert_eq!(refusal(status, body).to_string(), shown);
        }
    }

    #[test]
    fn only_the_service_itself_can_say_that_something_is_not_there() {
        let nova = r#"{"itemNotFound": {"code": 404, "message": "x"}}"#;
        let neutron = r#"{"NeutronError": {"type": "RouterNotFound", "message": "x", "detail": ""}}"#;
        let gateway = r#"{"error": {"title": "Not Found", "message": "no route"}}"#;
        assert!(refusal_of(Service::Compute, 404, nova, None).says_absent());
        assert!(refusal_of(Service::Network, 404, neutron, None).says_absent());
        let keystone =
            r#"{"error": {"code": 404, "title": "Not Found", "message": "Could not find user: u-1."}}"#;
        assert!(refusal_of(Service::Identity, 404, keystone, None).says_absent());
        assert!(!refusal_of(Service::Identity, 404, gateway, None).says_absent());
        for (service, body) in [
            (Service::Compute, neutron),
            (Service::Network, nova),
            (Service::Compute, gateway),
            (Service::Network, gateway),
            (Service::Network, r#"{"NeutronError": {"type": "HTTPNotFound", "message": "x"}}"#),
            (Service::Compute, "<html>404</html>"),
            (Service::Compute, ""),
        ] {
            assert!(!refusal_of(service, 404, body, None).says_absent(), "{body}");
        }
        assert!(!refusal_of(Service::Compute, 500, nova, None).says_absent());
    }

    #[test]
    fn both_ages_of_the_route_limit_are_one_condition() {
        let old = refusal(
            400,
            r#"{"NeutronError": {"type": "RoutesExhausted", "message": "Unable to complete operation for 0a1b2c3d-1111-2222-3333-444455556666. The number of routes exceeds the maximum 30.", "detail": ""}}"#,
        );
        let new = refusal(
            409,
            r#"{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['router_route'].", "detail": ""}}"#,
        );
        assert!(old.says_limit() && new.says_limit());
        assert_eq!(old.number(), Some(30));
        assert_eq!(new.number(), None);
        let nova = refusal(
            403,
            r#"{"forbidden": {"code": 403, "message": "Quota exceeded for cores: Requested 4, but already used 20 of 20 cores"}}"#,
        );
        assert!(nova.says_limit());
        let policy = refusal(
            403,
            r#"{"forbidden": {"code": 403, "message": "Policy doesn't allow it to be performed."}}"#,
        );
        assert!(!policy.says_limit());
    }

    #[test]
    fn a_status_has_one_meaning_for_reads() {
        use ReadErrorKind::{Forbidden, Malformed, Throttled, Unauthorized, Unavailable};
        let reading = Place::new("openstack", "project prod").listing("list servers");
        let cases = [
            (401, Unauthorized),
            (403, Forbidden),
            (413, Throttled),
            (429, Throttled),
            (498, Throttled),
            (500, Unavailable),
            (503, Unavailable),
            (404, Unavailable),
            (400, Malformed),
            (302, Malformed),
        ];
        for (status, kind) in cases {
            let error = reading.failed(&refusal_of(Service::Compute, status, "", Some(Span::from_s(9))));
            assert_eq!((error.kind, error.retry_after), (kind, Some(Span::from_s(9))), "{status}");
        }
    }

    #[test]
    fn a_status_has_one_meaning_for_writes() {
        let nova = |fault: &str, text: &str| format!(r#"{{"{fault}": {{"code": 0, "message": "{text}"}}}}"#);
        let neutron = |fault: &str, text: &str| {
            format!(r#"{{"NeutronError": {{"type": "{fault}", "message": "{text}", "detail": ""}}}}"#)
        };
        let (compute, network) = (Service::Compute, Service::Network);
        let cases = [
            (compute, 409, nova("conflictingRequest", "Instance a is locked"), "changed"),
            (
                compute,
                409,
                nova("conflictingRequest", "Cannot 'reboot' while in vm_state stopped"),
                "changed",
            ),
            (compute, 404, nova("itemNotFound", "no"), "refused"),
            (compute, 404, "<html>".to_owned(), "failed"),
            (compute, 403, nova("forbidden", "Policy doesn't allow it"), "denied"),
            (compute, 403, nova("forbidden", "Quota exceeded for cores"), "limit"),
            (compute, 500, nova("computeFault", "Unexpected API Error"), "unknown"),
            (compute, 501, nova("notImplemented", "no"), "refused"),
            (compute, 503, String::new(), "failed"),
            (compute, 504, String::new(), "unknown"),
            (network, 429, String::new(), "failed"),
            (network, 498, String::new(), "failed"),
            (network, 412, neutron("RevisionNumberConstraintFailed", "x"), "changed"),
            (network, 409, neutron("OverQuota", "x"), "limit"),
            (network, 400, neutron("RoutesExhausted", "exceeds the maximum 30."), "limit"),
            (network, 400, neutron("InvalidRoutes", "the nexthop is not connected"), "refused"),
            (network, 409, neutron("AddressPairAndPortSecurityRequired", "x"), "refused"),
            (network, 401, String::new(), "denied"),
        ];
        for (service, status, body, begins) in cases {
            let writing = Place::new("openstack", "project prod").writing("do it");
            let outcome = writing.failed(&refusal_of(service, status, &body, None));
            assert!(outcome.to_string().starts_with(begins), "{status} {body}: {outcome}");
        }
    }
}
