//! The socket on which a running controller answers the reading commands, from its present state.
//!
//! ```text
//!  reveille why X ─▶ DIR/control.sock ─▶ {"ask":"why","machine":"X"}\n ─▶ driver, between two events ─▶ Reply\n
//! ```
//!
//! A controller knows more than a one-time look: what it has watched without a gap and since when, and its targeted
//! reads. The socket accepts only questions; nothing can be changed through it. It belongs to the user that runs the
//! controller. Question and answer are one line each, both with a size limit, and each step has a deadline. A command
//! without an answer runs a one-time look.

pub(crate) mod client;
pub(crate) mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest question, bytes.
const ASK_BYTES_MAX: u64 = 64 << 10;
/// The longest answer, bytes: a status report of fifty thousand machines has some twenty megabytes.
const REPLY_BYTES_MAX: u64 = 256 << 20;
/// The longest for one whole exchange.
pub(crate) const WITHIN: Duration = Duration::from_secs(10);
/// The longest path of a socket that every system accepts.
const PATH_BYTES_MAX: usize = 100;

/// The socket of a roster's controller; `None` when the path of the state folder is too long for a socket.
fn path(state_dir: &Path) -> Option<PathBuf> {
    let path = state_dir.join("control.sock");
    (path.as_os_str().len() <= PATH_BYTES_MAX).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::ask::{Ask, Reply};
    use reveille_core::engine::{Start, State};
    use reveille_core::model::id::Fence;
    use tokio::sync::{mpsc, watch};

    fn state() -> State {
        let file = "{apiVersion: reveille.dev/v1alpha1, kind: Roster, metadata: {name: prod}, spec: {\
            clouds: [{name: os, openstack: {cloud: prod}}], \
            pools: [{name: w, cloud: os, owned: {tag: k8s-cluster=prod}}]}}";
        let origin = reveille_wire::roster::Origin { name: "r", dir: Path::new(""), home: None };
        let checked = reveille_wire::roster::read(file, &origin).unwrap().remove(0);
        State::new(checked.roster, Start { fence: Fence(1), acting: true })
    }

    /// Adds facts from outside the engine.
    fn extend() -> server::ReportExtension {
        std::sync::Arc::new(|report| {
            if let reveille_wire::report::Report::StatusReport(status) = report {
                status.next.push("added by the program".to_owned());
            }
        })
    }

    #[tokio::test]
    async fn socket_question_is_answered_and_no_listener_is_no_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(client::ask(directory.path(), &Ask::Status).await.is_none(), "no controller listens yet");
        let (questions, mut asked) = mpsc::channel::<crate::driver::Question>(4);
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(server::serve(directory.path().to_owned(), questions, extend(), stopped));
        let state = state();
        let answering = async {
            while let Some(question) = asked.recv().await {
                question(&state, reveille_core::model::time::Time::from_ms(5));
            }
        };
        let asking = async {
            let mut reply = None;
            for _ in 0..100 {
                reply = client::ask(directory.path(), &Ask::Why { machine: "x".to_owned(), timeline: false })
                    .await;
                if reply.is_some() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert!(matches!(reply, Some(Reply::Unread(_))), "nothing was read yet: {reply:?}");
            let Some(Reply::Report(report)) = client::ask(directory.path(), &Ask::Status).await else {
                panic!("a status report was asked for");
            };
            let reveille_wire::report::Report::StatusReport(status) = *report else {
                panic!("it is no status report")
            };
            assert_eq!(status.next.last().map(String::as_str), Some("added by the program"));
        };
        tokio::select! {
            () = answering => {}
            () = asking => {}
        }
        stop.send_replace(true);
        serving.await.unwrap();
        assert!(!directory.path().join("control.sock").exists(), "the socket goes with its server");
    }
}
