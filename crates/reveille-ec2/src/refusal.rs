//! How AWS words a refusal, in its two dialects.
//!
//! EC2: `<Response><Errors><Error><Code/><Message/></Error></Errors><RequestID/></Response>`. Auto Scaling and STS:
//! `<ErrorResponse><Error>…</Error><RequestId/></ErrorResponse>`. A proxy in between: HTML, of which only the status is of use. A
//! code means the same in every service, so this is the one module that knows codes.

use std::fmt;

use reqwest::StatusCode;
use reveille_cloud::failure::{Ending, Failure};
use reveille_cloud::http::Reply;
use reveille_cloud::text::{bounded, message};
use reveille_core::effect::ReadErrorKind;
use reveille_core::model::id::RequestId;
use reveille_core::model::time::Span;
use serde::Deserialize;

use crate::actions::Action;
use crate::reply::handle;

const CODE_MAX_BYTES: usize = 80;

/// A negative answer, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// The code, such as `InvalidInstanceID.NotFound`; empty where the answer is not AWS's own.
    pub code: String,
    /// In its words, cleaned and shortened.
    pub message: String,
    /// The action that the caller lacks the right to, where that is why.
    pub lacks: Option<String>,
    /// Not before this long, when it said so.
    pub retry_after: Option<Span>,
    /// Its operator's handle on this answer.
    pub request: Option<RequestId>,
}

#[derive(Deserialize)]
struct Body {
    #[serde(rename = "Errors")]
    errors: Option<Errors>,
    #[serde(rename = "Error")]
    error: Option<Fault>,
    #[serde(rename = "RequestID", alias = "RequestId")]
    request: Option<String>,
}

#[derive(Deserialize)]
struct Errors {
    #[serde(rename = "Error")]
    error: Option<Fault>,
}

#[derive(Deserialize)]
struct Fault {
    #[serde(rename = "Code", default)]
    code: String,
    #[serde(rename = "Message", default)]
    message: String,
}

impl Refusal {
    /// Reads an answer that is not a success. `action` is what was asked for, as policies name it.
    pub(crate) fn read(reply: &Reply, action: &str) -> Self {
        let text = String::from_utf8_lossy(&reply.body);
        let body = quick_xml::de::from_str::<Body>(&text).ok();
        let request = body.as_ref().and_then(|body| body.request.as_deref());
        let request = request.map(handle);
        let fault = body.and_then(|body| body.error.or(body.errors.and_then(|errors| errors.error)));
        let (code, said) = fault.map_or_else(Default::default, |fault| (fault.code, fault.message));
        let mut refusal = Self {
            status: reply.status,
            code: bounded(&message(&code), CODE_MAX_BYTES).to_owned(),
            message: message(plain(&said)),
            lacks: None,
            retry_after: reply.retry_after,
            request,
        };
        if refusal.says_forbidden() {
            refusal.lacks = Some(action.to_owned());
        }
        refusal
    }

    /// A success that is not the answer to this change.
    pub(crate) fn unclear(action: &Action) -> Self {
        Self {
            status: StatusCode::OK,
            code: String::new(),
            message: format!("this is no {} that says that it was done", action.answer()),
            lacks: None,
            retry_after: None,
            request: None,
        }
    }

    /// True when the caller may not do this.
    pub(crate) fn says_forbidden(&self) -> bool {
        matches!(self.code.as_str(), "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException")
    }

    /// True for the codes that mean "later". What they answer was not carried out.
    pub(crate) fn says_throttled(&self) -> bool {
        let codes = [
            "RequestLimitExceeded",
            "Throttling",
            "ThrottlingException",
            "ThrottledException",
            "RequestThrottled",
            "RequestThrottledException",
            "TooManyRequestsException",
            "SlowDown",
            "EC2ThrottledException",
            "PriorRequestNotComplete",
            "BandwidthLimitExceeded",
        ];
        codes.contains(&self.code.as_str()) || (self.code.is_empty() && self.status.as_u16() == 429)
    }

    /// True when the credentials themselves were not accepted; others may be.
    pub(crate) fn says_unknown_caller(&self) -> bool {
        let codes = [
            "AuthFailure",
            "InvalidClientTokenId",
            "ExpiredToken",
            "ExpiredTokenException",
            "RequestExpired",
            "SignatureDoesNotMatch",
            "InvalidSignatureException",
            "IncompleteSignature",
            "UnrecognizedClientException",
            "MissingAuthenticationToken",
            "InvalidToken",
        ];
        codes.contains(&self.code.as_str()) || self.says_clock()
    }

    /// True for the codes by which a clock that is wrong may show.
    pub(crate) fn says_clock(&self) -> bool {
        let codes = [
            "RequestExpired",
            "RequestTimeTooSkewed",
            "RequestInTheFuture",
            "SignatureDoesNotMatch",
            "InvalidSignatureException",
            "AuthFailure",
        ];
        codes.contains(&self.code.as_str())
    }

    /// True when the service itself says that this thing does not exist. A malformed id is no such thing: it is a mistake.
    pub(crate) fn says_absent(&self) -> bool {
        self.code.ends_with(".NotFound")
    }

    /// True when a limit or quota is the reason.
    pub(crate) fn says_limit(&self) -> bool {
        let codes = [
            "RulesPerSecurityGroupLimitExceeded",
            "RouteLimitExceeded",
            "SecurityGroupsPerInterfaceLimitExceeded",
            "InstanceLimitExceeded",
            "InsufficientInstanceCapacity",
            "InsufficientCapacity",
            "InsufficientHostCapacity",
            "VcpuLimitExceeded",
            "SecurityGroupsPerInstanceLimitExceeded",
        ];
        codes.contains(&self.code.as_str())
    }

    /// True when the thing is in a state in which this cannot be: read again, then decide again.
    pub(crate) fn says_moved(&self) -> bool {
        let codes = [
            "IncorrectInstanceState",
            "IncorrectState",
            "InvalidStateTransition",
            "ScalingActivityInProgress",
            "ScalingActivityInProgressFault",
        ];
        codes.contains(&self.code.as_str())
    }

    /// True when it may be that nothing was done, or that something was: the service itself went wrong.
    pub(crate) fn is_of_the_service(&self) -> bool {
        let codes = ["InternalError", "InternalFailure", "ServiceUnavailable", "Unavailable"];
        self.status.is_server_error() || codes.contains(&self.code.as_str())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.lacks, self.code.as_str()) {
            (Some(action), code) => write!(f, "{code}: the credentials lack the right {action}")?,
            (None, "") => write!(f, "{}", self.status)?,
            (None, code) => write!(f, "{code}")?,
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        match &self.request {
            Some(request) => write!(f, " (request {request})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

/// The message without the encoded part, which only a principal with other rights can decode.
fn plain(text: &str) -> &str {
    text.split("Encoded authorization failure message").next().unwrap_or_default()
}

impl Failure for Refusal {
    fn read_kind(&self) -> ReadErrorKind {
        match self {
            _ if self.says_throttled() => ReadErrorKind::Throttled,
            _ if self.says_forbidden() => ReadErrorKind::Forbidden,
            _ if self.says_unknown_caller() => ReadErrorKind::Unauthorized,
            _ if self.is_of_the_service() || self.code.is_empty() => ReadErrorKind::Unavailable,
            _ => ReadErrorKind::Malformed,
        }
    }

    fn retry_after(&self) -> Option<Span> {
        self.retry_after
    }

    fn ending(&self) -> Ending {
        match self {
            _ if self.says_throttled() => Ending::NotDone(self.retry_after),
            _ if self.says_limit() => Ending::Limit(None),
            _ if self.says_moved() => Ending::Moved,
            _ if self.says_forbidden() || self.says_unknown_caller() => Ending::Denied,
            _ if self.is_of_the_service() || self.status.is_success() => Ending::Unknown,
            // Not AWS's own words: something in between did not let it through.
            _ if self.code.is_empty() => Ending::NotDone(self.retry_after),
            _ => Ending::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, body: &str) -> Refusal {
        let status = StatusCode::from_u16(status).unwrap();
        let reply = Reply { status, body: body.as_bytes().to_vec(), ..Reply::default() };
        Refusal::read(&reply, "ec2:DescribeInstances")
    }

    fn ec2(status: u16, code: &str, message: &str) -> Refusal {
        refusal(
            status,
            &format!(
                "<?xml version=\"1.0\"?>\n<Response><Errors><Error><Code>{code}</Code><Message>{message}\
            </Message></Error></Errors><RequestID>r-1</RequestID></Response>"
            ),
        )
    }

    #[test]
    fn both_dialects_are_understood_and_html_is_a_status() {
        let scaling = "<ErrorResponse xmlns=\"http://autoscaling.amazonaws.com/doc/2011-01-01/\"><Error><Type>Sender</Type>\
            <Code>ValidationError</Code><Message>No such group.</Message></Error><RequestId>r-2</RequestId></ErrorResponse>";
        let cases = [
            (
                ec2(400, "InvalidInstanceID.NotFound", "The instance ID 'i-1' does not exist"),
                "InvalidInstanceID.NotFound: The instance ID 'i-1' does not exist (request r-1)",
            ),
            (refusal(400, scaling), "ValidationError: No such group (request r-2)"),
            (refusal(502, "<html><body>bad gateway</body></html>"), "502 Bad Gateway"),
            (refusal(500, ""), "500 Internal Server Error"),
        ];
        for (refusal, shown) in cases {
            assert_eq!(refusal.to_string(), shown);
        }
    }

    /// XML can write any character. What AWS says stands in a sentence of ours, which is one line of a log.
    #[test]
    fn words_of_a_refusal_forge_no_line() {
        let forged = "r&#10;2026-01-01 ERROR forged";
        let response = |id: &str, code: &str, said: &str| {
            format!(
                "<Response><Errors><Error><Code>{code}</Code><Message>{said}</Message></Error></Errors>\
                 <RequestID>{id}</RequestID></Response>"
            )
        };
        for body in [
            response(forged, "X", "m"),
            response("r", forged, "m"),
            response("r", "X", forged),
            response("r", "X\u{1b}[2K", "m"),
            response("r", "X", "a \u{202e}b"),
        ] {
            let text = refusal(400, &body).to_string();
            let is_plain = |c: char| !reveille_core::model::hidden::is_hidden(c);
            assert!(text.chars().all(is_plain), "{text:?}");
        }
    }

    #[test]
    fn a_missing_right_is_named_and_the_encoded_message_is_left_out() {
        let said = ec2(
            403,
            "UnauthorizedOperation",
            "You are not authorized to perform this operation. \
            Encoded authorization failure message: abc123SECRET",
        );
        assert_eq!(
            said.to_string(),
            "UnauthorizedOperation: the credentials lack the right ec2:DescribeInstances: \
            You are not authorized to perform this operation (request r-1)"
        );
    }

    #[test]
    fn a_code_has_one_meaning() {
        assert!(ec2(503, "RequestLimitExceeded", "x").says_throttled());
        assert!(ec2(400, "InvalidInstanceID.NotFound", "x").says_absent());
        assert!(!ec2(400, "InvalidInstanceID.Malformed", "x").says_absent());
        assert!(!refusal(404, "<html>").says_absent());
        assert!(ec2(400, "RouteLimitExceeded", "x").says_limit());
        assert!(ec2(401, "AuthFailure", "x").says_unknown_caller());
        assert!(ec2(500, "InternalError", "x").is_of_the_service());
    }
}
