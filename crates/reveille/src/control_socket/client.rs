//! Asks a running controller.

use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{REPLY_BYTES_MAX, WITHIN, path};
use crate::view::ask::{Ask, Reply};

/// Asks the controller; `None` when no controller listens, or it does not answer in time, or its answer is unreadable.
pub(crate) async fn ask(state_dir: &Path, ask: &Ask) -> Option<Reply> {
    let exchange = async {
        let mut stream = UnixStream::connect(path(state_dir)?).await.ok()?;
        let mut line = serde_json::to_vec(ask).ok()?;
        line.push(b'\n');
        stream.write_all(&line).await.ok()?;
        let mut reply = Vec::new();
        stream.take(REPLY_BYTES_MAX).read_to_end(&mut reply).await.ok()?;
        serde_json::from_slice(&reply).ok()
    };
    timeout(WITHIN, exchange).await.ok().flatten()
}
