//! What the provider tells a machine about its plans for it: read from the machine's metadata service, on EC2.
//!
//! ```text
//!  an operator named it, or sys_vendor: Amazon EC2? ─neither─▶ nothing is asked
//!      └─ PUT token (IMDSv2) ─▶ rebalance · spot/instance-action · scheduled events ─▶ [Notice]
//! ```
//!
//! A rebalance recommendation comes through the metadata service and EventBridge, and not through EC2's API; an
//! interruption and a scheduled event come through all. EC2 answers 404 for "none". The probe never asks for the
//! machine's role and its credentials.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, StatusCode};
use reveille_agent::checkup::Reading;
use reveille_core::model::hosting::{Notice, NoticeKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Probe;
use crate::root::Root;

/// The address of EC2's metadata service.
const OF_EC2: &str = "http://169.254.169.254";
/// AWS's own variable for another address: on a machine with only IPv6, `http://[fd00:ec2::254]`.
const ELSEWHERE: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
/// The machine's vendor, by its firmware.
const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";
/// EC2's vendor name, on all machines of recent years. Older machines, which run on Xen, are not asked.
const EC2: &str = "Amazon EC2";
const REBALANCE: &str = "events/recommendations/rebalance";
const SPOT: &str = "spot/instance-action";
const SCHEDULED: &str = "events/maintenance/scheduled";
/// The lifetime of a token, in seconds: as long as one read needs it.
const TOKEN_LIVES_S: &str = "60";
/// An answer is a few hundred bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The number of a machine's events that are reported.
const EVENTS_MAX: usize = 16;
/// The length of a provider's text that is shown.
const TEXT_CHARACTERS_MAX: usize = 200;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rebalance {
    notice_time: String,
}

#[derive(Deserialize)]
struct SpotAction {
    action: String,
    time: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Scheduled {
    code: String,
    #[serde(default)]
    not_before: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    state: Option<String>,
}

/// One connection to the metadata service, with its token.
struct Session<'a> {
    http: Client,
    at: &'a str,
    token: String,
}

/// The address of the metadata service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Metadata {
    /// No metadata service.
    #[default]
    Nowhere,
    /// EC2's own address, where the firmware says that the machine is EC2's.
    OfEc2,
    /// The address that an operator named.
    At(String),
}

impl Metadata {
    /// The address in the environment (`AWS_EC2_METADATA_SERVICE_ENDPOINT`), or else EC2's own.
    pub fn of_environment() -> Self {
        let named = std::env::var(ELSEWHERE).unwrap_or_default();
        match named.trim().trim_end_matches('/') {
            "" => Self::OfEc2,
            at => Self::At(at.to_owned()),
        }
    }

    /// The announcements; `None` where the provider has no notices that we read. Each request has this time limit.
    pub(crate) async fn announced(&self, root: &Root, within: Duration) -> Reading<Option<Vec<Notice>>> {
        let at = match (self, root.text(VENDOR)) {
            (Self::At(at), _) => at,
            (Self::OfEc2, Ok(Some(vendor))) if vendor.trim() == EC2 => OF_EC2,
            (Self::Nowhere, _) | (Self::OfEc2, Ok(_)) => return Reading::Read(None),
            (Self::OfEc2, Err(error)) => return Reading::cannot_tell(format!("{VENDOR}: {error}")),
        };
        match notices(at, within).await {
            Ok(notices) => Reading::Read(Some(notices)),
            Err(why) => Reading::cannot_tell(format!("the metadata service of the machine: {why}")),
        }
    }
}

impl Probe {
    /// The announcements.
    pub(super) async fn announced(&self) -> Reading<Option<Vec<Notice>>> {
        self.metadata.announced(&self.root, self.left()).await
    }
}

async fn notices(at: &str, within: Duration) -> Result<Vec<Notice>, String> {
    let session = Session::open(at, within).await?;
    let mut notices = Vec::new();
    if let Some(told) = session.get::<Rebalance>(REBALANCE).await? {
        notices.push(notice(NoticeKind::Rebalance, &format!("recommended at {}", told.notice_time), None));
    }
    if let Some(told) = session.get::<SpotAction>(SPOT).await? {
        let text = format!("EC2 takes it back: {}", told.action);
        notices.push(notice(NoticeKind::Interruption, &text, Some(&told.time)));
    }
    let events = session.get::<Vec<Scheduled>>(SCHEDULED).await?.unwrap_or_default();
    let is_open = |event: &&Scheduled| event.state.as_deref().is_none_or(|state| state == "active");
    notices.extend(events.iter().filter(is_open).take(EVENTS_MAX).map(|event| {
        let text = if event.description.is_empty() { &event.code } else { &event.description };
        notice(kind(&event.code), text, event.not_before.as_deref())
    }));
    Ok(notices)
}

impl<'a> Session<'a> {
    async fn open(at: &'a str, within: Duration) -> Result<Self, String> {
        // The service belongs to this machine: the client uses no proxy and follows no redirect.
        let client = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(within);
        let http = client.build().map_err(said)?;
        let asked = http.put(format!("{at}/latest/api/token"));
        let sent = asked.header("x-aws-ec2-metadata-token-ttl-seconds", TOKEN_LIVES_S).send();
        let answer = sent.await.map_err(said)?;
        if answer.status() != StatusCode::OK {
            return Err(format!("it answers {} when a token is asked for", answer.status()));
        }
        let token = String::from_utf8(read(answer).await?).map_err(|_| "its token is no text".to_owned())?;
        Ok(Self { http, at, token })
    }

    /// `None`: EC2 has nothing of this kind.
    async fn get<T: DeserializeOwned>(&self, what: &str) -> Result<Option<T>, String> {
        let asked = self.http.get(format!("{}/latest/meta-data/{what}", self.at));
        let answer = asked.header("x-aws-ec2-metadata-token", &self.token).send().await.map_err(said)?;
        match answer.status() {
            StatusCode::OK => {
                let body = read(answer).await?;
                let told = serde_json::from_slice(&body);
                told.map(Some).map_err(|_| format!("what it says of {what} cannot be read"))
            }
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(format!("it answers {status} to {what}")),
        }
    }
}

async fn read(mut answer: reqwest::Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(said)? {
        if body.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err(format!("an answer of more than {ANSWER_BYTES_MAX} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The error's words, without the address, which says nothing.
fn said(error: reqwest::Error) -> String {
    if error.is_timeout() { "no answer in time".to_owned() } else { error.without_url().to_string() }
}

fn kind(code: &str) -> NoticeKind {
    match code {
        "instance-reboot" | "system-reboot" => NoticeKind::Reboot,
        "instance-stop" => NoticeKind::Stop,
        "instance-retirement" => NoticeKind::Retire,
        _ => NoticeKind::Maintenance,
    }
}

fn notice(kind: NoticeKind, text: &str, not_before: Option<&str>) -> Notice {
    Notice { kind, not_before: not_before.map(plain), text: plain(text) }
}

/// The characters that a terminal may show.
fn plain(text: &str) -> Arc<str> {
    text.chars().filter(|c| !c.is_control()).take(TEXT_CHARACTERS_MAX).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// A metadata service with these answers at these paths, for a client with its token, and 404 elsewhere.
    async fn serve(told: &'static [(&'static str, &'static str)]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    if stream.read_exact(&mut byte).await.is_err() {
                        break;
                    }
                    asked.push(byte[0]);
                }
                let asked = String::from_utf8(asked).unwrap().to_lowercase();
                let path = asked.split(' ').nth(1).unwrap_or_default();
                let has_token = asked.contains("x-aws-ec2-metadata-token: a-token");
                let found = told.iter().find(|(known, _)| path == format!("/latest/meta-data/{known}"));
                let (status, body) = match found {
                    _ if asked.starts_with("put /latest/api/token ") => ("200 OK", "a-token"),
                    _ if !has_token => ("401 Unauthorized", ""),
                    Some((_, body)) => ("200 OK", *body),
                    None => ("404 Not Found", ""),
                };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await.ok();
            }
        });
        at
    }

    async fn announced(vendor: &str, at: &Metadata) -> Reading<Option<Vec<Notice>>> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sys/class/dmi/id")).unwrap();
        fs::write(folder.path().join(VENDOR.trim_start_matches('/')), vendor).unwrap();
        let probe = Probe {
            within: Duration::from_millis(600),
            metadata: at.clone(),
            ..Probe::of_folder(Root::new(folder.path()))
        };
        probe.announced().await
    }

    #[tokio::test]
    async fn what_ec2_announces_is_told_and_what_is_over_is_not() {
        let at = serve(&[
            (REBALANCE, r#"{"noticeTime": "2026-11-23T08:22:00Z"}"#),
            (SPOT, r#"{"action": "terminate", "time": "2026-11-23T08:24:00Z"}"#),
            (
                SCHEDULED,
                r#"[{"Code": "system-reboot", "NotBefore": "21 Jan 2027 09:00:43 GMT", "Description": "scheduled\u001b[2J reboot",
                     "State": "active"}, {"Code": "instance-stop", "Description": "[Completed]", "State": "completed"}]"#,
            ),
        ])
        .await;
        let Reading::Read(Some(notices)) = announced("QEMU\n", &Metadata::At(at)).await else {
            panic!("it is EC2's")
        };
        let told: Vec<String> = notices.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "rebalance: recommended at 2026-11-23T08:22:00Z",
                "interruption: EC2 takes it back: terminate, not before 2026-11-23T08:24:00Z",
                "reboot: scheduled[2J reboot, not before 21 Jan 2027 09:00:43 GMT",
            ]
        );
    }

    #[tokio::test]
    async fn nothing_is_nothing_and_what_was_not_read_is_not_nothing() {
        let quiet = serve(&[(SCHEDULED, "[]")]).await;
        assert_eq!(announced("QEMU", &Metadata::At(quiet)).await, Reading::Read(Some(Vec::new())));
        assert_eq!(
            announced("QEMU", &Metadata::OfEc2).await,
            Reading::Read(None),
            "no other provider's metadata is read"
        );
        assert_eq!(announced("Amazon EC2", &Metadata::Nowhere).await, Reading::Read(None));
        let torn = serve(&[(REBALANCE, "<html>")]).await;
        assert!(matches!(announced("QEMU", &Metadata::At(torn)).await, Reading::CannotTell(_)));
        // The socket is bound, so that no other test gets the port, and never listens.
        let silent = TcpSocket::new_v4().unwrap();
        silent.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let gone = format!("http://{}", silent.local_addr().unwrap());
        assert!(matches!(announced("QEMU", &Metadata::At(gone)).await, Reading::CannotTell(_)));
    }
}
