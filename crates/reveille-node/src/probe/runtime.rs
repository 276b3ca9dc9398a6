//! Container runtimes: whether one listens, and what it reports over CRI.
//!
//! CRI is gRPC, which is HTTP/2 with five bytes before each message. The probe sends three requests without arguments,
//! and reads the answers by the numbers of their fields (k8s.io/cri-api, runtime/v1/api.proto). A full client would be
//! more code than the rest of the doctor.

use std::io::{self, ErrorKind};

use futures::future::join_all;
use reveille_agent::checkup::Reading;
use reveille_agent::checkup::facts::{Cri, Runtime, Socket, SocketSeen};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::Probe;
use super::protobuf::{message, messages, number, text};
use crate::root::Holding;

/// A program with a longer answer is not a runtime.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// The `grpc-status` of a method or service that the server does not offer.
const UNIMPLEMENTED: &str = "12";

/// Why a request has no answer.
enum Unanswered {
    /// The server does not offer it, or refuses it: its words.
    Says(String),
    /// No answer came in time.
    Silent,
    /// The connection broke.
    Broken(String),
}

impl Probe {
    /// The named runtime, or those at the usual sockets.
    pub(super) async fn runtime(&self, named: Option<&str>, usual: &[&'static str]) -> Runtime {
        let paths: Vec<&str> = match named {
            Some(named) => vec![named.strip_prefix("unix://").unwrap_or(named)],
            None => usual.to_vec(),
        };
        let seen = join_all(paths.iter().map(|path| self.socket(path))).await;
        let sockets = paths.iter().zip(seen);
        let sockets = sockets.map(|(path, seen)| Socket { path: (*path).to_owned(), seen }).collect();
        Runtime { sockets }
    }

    async fn socket(&self, path: &str) -> Reading<SocketSeen> {
        // The probe holds the socket until it has asked: the path of the handle leads to the file below the root, and to
        // no other.
        let held = self.root.hold(path);
        let connect = async { UnixStream::connect(held.as_ref().map_err(again)?.path()).await };
        match timeout(self.left(), connect).await {
            Err(_) => return Reading::Read(SocketSeen::Silent),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                return match error.kind() {
                    ErrorKind::NotFound | ErrorKind::NotADirectory => Reading::Read(SocketSeen::Absent),
                    ErrorKind::PermissionDenied => {
                        Reading::cannot_tell(format!("{path}: {error}; run it as root"))
                    }
                    _ => Reading::Read(SocketSeen::Refused(error.to_string())),
                };
            }
        }
        let at = held.as_ref().map(Holding::path).unwrap_or_default();
        let client = reqwest::Client::builder().unix_socket(at).http2_prior_knowledge().no_proxy();
        let client = match client.redirect(reqwest::redirect::Policy::none()).build() {
            Ok(client) => client,
            Err(error) => return Reading::cannot_tell(format!("no client could be made: {error}")),
        };
        let seen = match self.ask(&client, "Version").await {
            Ok(version) => SocketSeen::Cri(self.says(&client, &version).await),
            Err(Unanswered::Says(words)) => SocketSeen::NotCri(words),
            Err(Unanswered::Silent) => SocketSeen::Silent,
            Err(Unanswered::Broken(why)) => SocketSeen::NotCri(format!("it speaks no gRPC: {why}")),
        };
        Reading::Read(seen)
    }

    async fn says(&self, client: &reqwest::Client, version: &[u8]) -> Cri {
        let (status, config) = tokio::join!(self.ask(client, "Status"), self.ask(client, "RuntimeConfig"));
        let status = status.ok();
        let condition = |kind: &str| -> Option<Result<(), String>> {
            let status = message(status.as_ref()?, 1)?;
            let one = messages(status, 1).find(|one| text(one, 1) == kind)?;
            let why = || format!("{} {}", text(one, 3), text(one, 4)).trim().to_owned();
            Some(if number(one, 2) == 1 { Ok(()) } else { Err(why()) })
        };
        let driver = |config: Vec<u8>| {
            let linux = message(&config, 1)?;
            Some(if number(linux, 1) == 0 { "systemd" } else { "cgroupfs" }.to_owned())
        };
        Cri {
            version: format!("{} {}", text(version, 2), text(version, 3)),
            ready: condition("RuntimeReady"),
            network: condition("NetworkReady"),
            // Older runtimes do not offer this; the probe does not guess the setting from their configuration.
            cgroup_driver: config.ok().and_then(driver),
        }
    }

    /// One request without arguments.
    async fn ask(&self, client: &reqwest::Client, method: &str) -> Result<Vec<u8>, Unanswered> {
        let url = format!("http://localhost/runtime.v1.RuntimeService/{method}");
        let request = client
            .post(url)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            // An uncompressed message of zero bytes.
            .body(vec![0; 5]);
        let answer = async {
            let broken = |error: reqwest::Error| Unanswered::Broken(innermost(&error));
            let mut answer = request.send().await.map_err(broken)?;
            let header = |name: &str| {
                answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
            };
            // A refusal comes as headers only.
            if let Some(status) = header("grpc-status").filter(|status| status != "0") {
                let words = header("grpc-message").unwrap_or_default();
                let offered = if status == UNIMPLEMENTED { "not offered" } else { "refused" };
                return Err(Unanswered::Says(format!("{method} is {offered}: {words}")));
            }
            if header("content-type").is_none_or(|kind| !kind.starts_with("application/grpc")) {
                return Err(Unanswered::Broken(format!("it answers {} without gRPC", answer.status())));
            }
            let mut body = Vec::new();
            while let Some(piece) = answer.chunk().await.map_err(broken)? {
                if body.len() + piece.len() > ANSWER_BYTES_MAX {
                    return Err(Unanswered::Broken("its answer is too long".to_owned()));
                }
                body.extend_from_slice(&piece);
            }
            match body.split_at_checked(5) {
                Some((_, message)) => Ok(message.to_vec()),
                None => Err(Unanswered::Says(format!("{method} is answered with nothing"))),
            }
        };
        timeout(self.left(), answer).await.unwrap_or(Err(Unanswered::Silent))
    }
}

/// A copy of the error.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// The innermost cause, without the operations around it.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
