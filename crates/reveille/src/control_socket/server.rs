//! Answers the reading commands of other processes.
//!
//! A question becomes a closure that the driver runs between two events, so that every answer describes one moment. A
//! socket that a killed process left behind is replaced: only the holder of the ledger's lock may listen.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reveille_wire::report::Report;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::{ASK_BYTES_MAX, WITHIN, path};
use crate::driver::Question;
use crate::view::ask::{Ask, Asked, Reply, answer};

/// The pause after a failed accept. Most often no descriptor is left, and the next try would fail at once too.
const ACCEPT_AGAIN: Duration = Duration::from_secs(1);

/// Writes into an answer what the program knows outside the engine.
pub(crate) type ReportExtension = Arc<dyn Fn(&mut Report) + Send + Sync>;

/// Listens until it is told to stop. A controller that cannot listen still runs, and the commands use a one-time look.
pub(crate) async fn serve(
    state_dir: PathBuf,
    questions: mpsc::Sender<Question>,
    extend: ReportExtension,
    mut stop: watch::Receiver<bool>,
) {
    let Some(path) = path(&state_dir) else {
        tracing::debug!(
            "the state folder's path is too long for a socket; commands beside us will look for themselves"
        );
        return;
    };
    let listener = match listen(&path) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(
                "cannot listen at {}: {error}; commands beside us will look for themselves",
                path.display()
            );
            return;
        }
    };
    let mut failing = false;
    loop {
        tokio::select! {
            accepted = accepted(listener.accept(), &mut failing) => {
                if let Some((stream, _)) = accepted {
                    let (questions, extend) = (questions.clone(), extend.clone());
                    tokio::spawn(async move {
                        // A client that went away, or sent an invalid question, gets no answer.
                        drop(timeout(WITHIN, exchange(stream, questions, &extend)).await);
                    });
                }
            }
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    drop(std::fs::remove_file(&path));
}

/// A connection, or `None` after a pause. A series of failures is logged once.
async fn accepted<T>(accepting: impl Future<Output = std::io::Result<T>>, failing: &mut bool) -> Option<T> {
    match accepting.await {
        Ok(connection) => {
            *failing = false;
            Some(connection)
        }
        Err(error) => {
            if !std::mem::replace(failing, true) {
                tracing::warn!("cannot take the connection of a command beside us: {error}");
            }
            sleep(ACCEPT_AGAIN).await;
            None
        }
    }
}

fn listen(path: &Path) -> std::io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn exchange(
    stream: UnixStream,
    questions: mpsc::Sender<Question>,
    extend: &ReportExtension,
) -> Option<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    BufReader::new(read.take(ASK_BYTES_MAX)).read_line(&mut line).await.ok()?;
    let ask: Ask = serde_json::from_str(&line).ok()?;
    let (sender, receiver) = oneshot::channel();
    let question: Question = Box::new(move |state, now| {
        // The client may have gone away meanwhile.
        drop(sender.send(answer(state, &ask, &Asked { now: Some(now), ..Asked::default() })));
    });
    questions.send(question).await.ok()?;
    let mut reply = receiver.await.ok()?;
    if let Reply::Report(report) = &mut reply {
        extend(report);
    }
    let mut reply = serde_json::to_vec(&reply).ok()?;
    reply.push(b'\n');
    write.write_all(&reply).await.ok()?;
    write.shutdown().await.ok()
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connections_that_cannot_be_taken_are_tried_once_a_second() {
        let (begun, mut failing) = (tokio::time::Instant::now(), false);
        for _ in 0..3 {
            let no_descriptor = std::io::Error::from_raw_os_error(24);
            assert_eq!(accepted::<()>(ready(Err(no_descriptor)), &mut failing).await, None);
            assert!(failing, "it is told once in a row");
        }
        assert_eq!(begun.elapsed().as_secs(), 3);
        assert_eq!(accepted(ready(Ok(7)), &mut failing).await, Some(7));
        assert_eq!((begun.elapsed().as_secs(), failing), (3, false));
    }
}
