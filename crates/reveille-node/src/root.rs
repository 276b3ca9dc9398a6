//! Where the machine's files are: below `/`, or below a folder that a test laid out as one.
//!
//! Every path that is read or written on the node is named as it is on a machine and goes through here. A link inside
//! is followed within the root, as it would be on the machine itself: `kubelet-client-current.pem` is one. Reading has a
//! bound, and "it is not there" is told apart from "it could not be read".

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// No file that is read whole here is longer.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A link that leads to more links than this leads round in a circle.
const LINKS_MAX: usize = 16;

/// Where the machine's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl Root {
    /// The machine below this folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// True when it is this machine's own.
    pub fn is_this_machines(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where the machine's file of that name is. Links on the way are not looked at.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// As [`Root::at`], with links at its end followed within the root.
    pub fn real(&self, path: impl AsRef<Path>) -> PathBuf {
        let mut at = path.as_ref().to_owned();
        for _ in 0..LINKS_MAX {
            match fs::read_link(self.at(&at)) {
                Ok(to) if to.is_absolute() => at = to,
                Ok(to) => at = at.parent().unwrap_or(Path::new("/")).join(to),
                Err(_) => break,
            }
        }
        self.at(at)
    }

    /// The whole file; `None` when it is not there.
    ///
    /// # Errors
    ///
    /// It is there and cannot be read, or is longer than anything that belongs there.
    pub fn bytes(&self, path: impl AsRef<Path>) -> io::Result<Option<Vec<u8>>> {
        let file = match fs::File::open(self.real(path)) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::other(format!("it is longer than {FILE_BYTES_MAX} bytes")));
        }
        Ok(Some(bytes))
    }

    /// The whole file as text; bytes that are none are replaced.
    ///
    /// # Errors
    ///
    /// As [`Root::bytes`].
    pub fn text(&self, path: impl AsRef<Path>) -> io::Result<Option<String>> {
        let bytes = self.bytes(path)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// It is there, or may not be looked at: what cannot be told of a file that protects a machine counts as there.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        !matches!(self.at(path).symlink_metadata(), Err(error) if is_absent(&error))
    }

    /// The names in a folder, in order; `None` when it is not there.
    ///
    /// # Errors
    ///
    /// It is there and cannot be listed.
    pub fn names(&self, path: impl AsRef<Path>) -> io::Result<Option<Vec<String>>> {
        let entries = match fs::read_dir(self.real(path)) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(Some(names))
    }
}

/// The system said that there is nothing of that name.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_followed_within_the_root_and_not_there_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        fs::create_dir_all(root.at("/var/lib/kubelet/pki")).unwrap();
        fs::write(root.at("/var/lib/kubelet/pki/one.pem"), "one").unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, root.at(name)).unwrap();
        link("/var/lib/kubelet/pki/one.pem", "/var/lib/kubelet/pki/current.pem");
        link("one.pem", "/var/lib/kubelet/pki/beside.pem");
        link("round.pem", "/var/lib/kubelet/pki/round.pem");
        let text = |name: &str| root.text(format!("/var/lib/kubelet/pki/{name}.pem"));
        assert_eq!(text("current").unwrap().as_deref(), Some("one"));
        assert_eq!(text("beside").unwrap().as_deref(), Some("one"));
        assert_eq!(text("gone").unwrap(), None);
        assert!(text("round").is_err(), "a circle is not \"not there\"");
        assert_eq!(root.names("/var/lib/kubelet").unwrap(), Some(vec!["pki".to_owned()]));
        assert_eq!(root.names("/nowhere").unwrap(), None);
        assert!(root.text("/var/lib/kubelet").is_err(), "a folder is no file");
    }
}
