//! Requests to the API server for other adapters that keep their objects there: Rancher's records, hot objects.
//!
//! A [`Wish`] is a request whose path and body the calling adapter wrote; the result is the body, or why there is none. The
//! request goes through the same `session` as all others here. So it has the session's credentials, its deadline, its bound on
//! the body, and one new login after a 401. This module repeats nothing and interprets nothing: the caller knows what the paths
//! mean and which of them it may request.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderValue};

use crate::cluster::Cluster;
use crate::failure::{Failure, Reached};
use crate::session::Question;

/// A request whose path and body another adapter wrote.
pub struct Wish {
    /// `GET`, `POST`, `PUT`, `DELETE`.
    pub method: http::Method,
    /// Path and query.
    pub target: String,
    /// JSON to send along.
    pub body: Option<Vec<u8>>,
    /// The object's name, when it is about one: only a 404 that repeats it counts as "does not exist".
    pub about: Option<String>,
    /// Everything, from the first byte sent to the last one read, ends by then.
    pub within: Duration,
}

/// An answer.
pub struct Granted {
    /// The body, whole.
    pub body: Vec<u8>,
    /// The server's `Date`.
    pub date: Option<String>,
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// As a clause.
    pub cause: String,
    /// The API server itself says that the object is not there.
    pub missing: bool,
    /// What it answered with; `None` where no answer came.
    pub code: Option<u16>,
    /// Whether a change may have been made all the same: it was sent, and no answer says that it was refused.
    pub may_have_happened: bool,
}

impl Cluster {
    /// Sends a request that another adapter wrote, once.
    ///
    /// # Errors
    /// When there is no complete answer, or it is a refusal.
    pub async fn ask(&self, wish: Wish) -> Result<Granted, Denied> {
        let built = http::Request::builder()
            .method(wish.method)
            .uri(wish.target)
            .header(ACCEPT, HeaderValue::from_static("application/json"))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(wish.body.unwrap_or_default());
        let ask = built.map_err(|error| Denied {
            cause: format!("the request is not valid: {error}"),
            missing: false,
            code: None,
            may_have_happened: false,
        })?;
        let question = Question { ask, within: wish.within, about: wish.about };
        let mut body = Vec::new();
        match self.inner().session.read(question, &mut body).await {
            Ok(headers) => {
                let date = headers.get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
                Ok(Granted { body, date })
            }
            Err(failure) => Err(denied(&failure)),
        }
    }
}

fn denied(failure: &Failure) -> Denied {
    let (code, may_have_happened) = match failure.reached {
        Reached::NotSent => (None, false),
        Reached::Unanswered | Reached::TooLong => (None, true),
        // The server gave up on it, or something in between did; or its answer broke off.
        Reached::Answered { code, .. } => (Some(code), matches!(code, 200..=299 | 500..=502 | 504..=599)),
    };
    Denied { cause: failure.cause.clone(), missing: failure.is_missing(), code, may_have_happened }
}

#[cfg(test)]
mod tests {
    use reveille_core::effect::ReadErrorKind;

    use super::*;

    #[test]
    fn what_was_sent_and_not_refused_may_have_happened() {
        let of = |reached| denied(&Failure::new(ReadErrorKind::Unavailable, reached, "x")).may_have_happened;
        assert!(!of(Reached::NotSent) && of(Reached::Unanswered));
        for (code, expected) in [
            (200, true),
            (400, false),
            (403, false),
            (409, false),
            (429, false),
            (500, true),
            (503, false),
            (504, true),
        ] {
            assert_eq!(of(Reached::Answered { code, missing: false }), expected, "{code}");
        }
    }
}
