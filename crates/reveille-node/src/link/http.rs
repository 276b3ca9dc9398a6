//! One request over one connection, and the meaning of its answer.
//!
//! An answer of the server is JSON with the header `server: reveille`. Any other answer comes from a proxy or another
//! server and is reported as that: its status, its name, its content type and its beginning, with secrets masked.

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, SERVER, VIA};
use hyper::{Method, Request, Response, StatusCode};
use reveille_core::diagnose::console::mask_secrets;
use reveille_wire::agent::reason::Answered;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{PRODUCT, Reason, Refused, SERVER_FRAME_BYTES_MAX, Secret, read};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::{ANSWER_WITHIN, Link, LinkError};
use crate::pin::Pin;

/// A connection; it ends when this value is dropped.
pub(super) struct Line {
    link: Link,
    sender: SendRequest<Full<Bytes>>,
    driven: AbortHandle,
    upgraded: bool,
    /// The pin by which the server of this connection was known.
    pub(super) known_by: Pin,
}

impl Drop for Line {
    fn drop(&mut self) {
        // An upgraded connection belongs to its session by now.
        if !self.upgraded {
            self.driven.abort();
        }
    }
}

impl Line {
    pub(super) const fn new(
        link: Link,
        sender: SendRequest<Full<Bytes>>,
        driven: AbortHandle,
        known_by: Pin,
    ) -> Self {
        Self { link, sender, driven, upgraded: false, known_by }
    }

    pub(super) async fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, LinkError> {
        let request = self.request(Method::GET, path, Bytes::new())?;
        let answer = self.send(request, ANSWER_WITHIN).await?;
        self.value(answer).await
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &mut self,
        path: &str,
        token: Option<&Secret>,
        body: &impl Serialize,
        within: std::time::Duration,
    ) -> Result<T, LinkError> {
        let bytes = serde_json::to_vec(body).map_err(|error| self.link.broken(error))?;
        let mut request = self.request(Method::POST, path, bytes.into())?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = token {
            let header = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            // A text that no header can hold is not a token of ours.
            let mut header = header.map_err(|_| LinkError::refused(Reason::TokenUnknown))?;
            header.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, header);
        }
        let answer = self.send(request, within).await?;
        self.value(answer).await
    }

    /// Asks for an upgrade. Returns the upgraded answer, or the reason why there is none.
    pub(super) async fn upgrade(
        &mut self,
        path: &str,
        headers: &[(HeaderName, String)],
    ) -> Result<Response<Incoming>, LinkError> {
        let mut request = self.request(Method::GET, path, Bytes::new())?;
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).map_err(|error| self.link.broken(error))?;
            request.headers_mut().insert(name, value);
        }
        let answer = self.send(request, ANSWER_WITHIN).await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.upgraded = true;
            return Ok(answer);
        }
        match self.value::<serde_json::Value>(answer).await {
            Ok(_) => Err(LinkError::refused(Reason::UpgradeRequired)),
            Err(error) => Err(error),
        }
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, LinkError> {
        let built = Request::builder().method(method).uri(path).header(HOST, self.link.server.to_string());
        built.body(Full::new(body)).map_err(|error| self.link.broken(error))
    }

    async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
        within: std::time::Duration,
    ) -> Result<Response<Incoming>, LinkError> {
        let sent = timeout(within, self.sender.send_request(request)).await;
        sent.map_err(|_| self.link.late("the answer", within))?.map_err(|error| self.link.broken(error))
    }

    async fn value<T: DeserializeOwned>(&self, answer: Response<Incoming>) -> Result<T, LinkError> {
        let (head, body) = answer.into_parts();
        let bytes = timeout(ANSWER_WITHIN, self.collected(body))
            .await
            .map_err(|_| self.link.late("the answer", ANSWER_WITHIN))??;
        if header(&head.headers, &SERVER) == PRODUCT {
            if head.status.is_success()
                && let Ok(value) = read(&bytes, SERVER_FRAME_BYTES_MAX)
            {
                return Ok(value);
            }
            if let Ok(refused) = read::<Refused>(&bytes, SERVER_FRAME_BYTES_MAX) {
                return Err(LinkError::Refused(Box::new(refused)));
            }
        }
        let answered = Answered {
            status: head.status.as_u16(),
            server: Word::cut(header(&head.headers, &SERVER)),
            content_type: Word::cut(header(&head.headers, &CONTENT_TYPE)),
            begins: beginning(&bytes),
        };
        Err(LinkError::refused(wrong_server(answered, head.headers.contains_key(VIA))))
    }

    /// All of a body. What came is put together as it comes: each chunk has a buffer and a record of its own, and a body of one
    /// byte to a chunk would take a hundred times its length.
    async fn collected(&self, mut body: Incoming) -> Result<Vec<u8>, LinkError> {
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            if let Ok(part) = frame.map_err(|error| self.link.broken(error))?.into_data() {
                if part.len() > SERVER_FRAME_BYTES_MAX - bytes.len() {
                    return Err(self.link.broken("it is longer than any answer"));
                }
                bytes.extend_from_slice(&part);
            }
        }
        Ok(bytes)
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The beginning of a foreign answer, as text that can be shown.
pub(super) fn beginning(bytes: &[u8]) -> Word {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(2048)]);
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Word::cut(&mask_secrets(&one_line))
}

/// Tells a proxy from another server: only a gateway reports that it cannot reach its upstream.
pub(super) fn wrong_server(answered: Answered, has_via: bool) -> Reason {
    let name = answered.server.to_ascii_lowercase();
    let proxies =
        ["squid", "envoy", "haproxy", "varnish", "bluecoat", "zscaler", "cloudflare", "awselb", "traefik"];
    let by_name = proxies.iter().any(|proxy| name.contains(proxy));
    let by_status = matches!(answered.status, 407 | 502 | 504 | 511);
    if has_via || by_name || by_status {
        Reason::ProxyAnswered(answered)
    } else {
        Reason::NotReveille(answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_and_another_server_are_told_apart() {
        let answered =
            |status, server: &str| Answered { status, server: Word::cut(server), ..Answered::default() };
        let code = |answered, via| wrong_server(answered, via).code();
        assert_eq!(code(answered(200, "nginx"), false), "NOT_REVEILLE");
        assert_eq!(code(answered(502, "nginx"), false), "PROXY_ANSWERED");
        assert_eq!(code(answered(407, ""), false), "PROXY_ANSWERED");
        assert_eq!(code(answered(403, "squid/6.1"), false), "PROXY_ANSWERED");
        assert_eq!(code(answered(200, "nginx"), true), "PROXY_ANSWERED");
    }

    #[test]
    fn how_a_foreign_answer_begins_is_one_masked_line() {
        let begins = beginning(b"<html>\r\n\x1b[2J <p>password=hunter2 </p>");
        assert!(
            begins.starts_with("<html>") && !begins.contains("hunter2") && !begins.contains('\u{1b}'),
            "{begins}"
        );
    }
}
