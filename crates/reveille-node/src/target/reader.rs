//! Reads text files of configuration, and bounds what they have together.
//!
//! One [`Reader`] reads the files of one sort, one after the other: a folder with many files must not fill the memory.

use super::TargetError;
use super::kubeconfig::unreadable;
use crate::root::Root;

/// The size of all configuration of one kind: more than operators write, however many links to one long file a disk has.
const CONFIG_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Reads the configuration of one sort, and no more than there ever is.
#[derive(Default)]
pub(super) struct Reader {
    bytes: usize,
}

impl Reader {
    /// The text of a file; of a missing one none.
    pub(super) fn text(&mut self, root: &Root, path: &str) -> Result<String, TargetError> {
        let text = root.text(path).map_err(|error| unreadable(path, &error))?.unwrap_or_default();
        self.bytes += text.len();
        if self.bytes > CONFIG_BYTES_MAX {
            let what = format!("with those before it, it has more than {CONFIG_BYTES_MAX} bytes");
            return Err(TargetError::new(path, what, "remove what is no configuration"));
        }
        Ok(text)
    }
}
