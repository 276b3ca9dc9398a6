//! The interface to the file system: the dozen operations that the ledger uses, and their real implementation.
//!
//! `store` reaches files only through [`Disk`] and [`Tail`]. So a test can end the process or the power between any two
//! operations, and check the promises of the ledger. The real operations add only the mode of new files: records hold
//! console excerpts, so only the owner may read them.
//!
//! Not here: retries. An fsync that failed is never tried again, because the kernel may have dropped the pages.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Largest file that is read: more than a hundred times a segment of 8 MiB, whose checkpoint may be larger than that.
const READ_MAX_BYTES: u64 = 1 << 30;

/// One directory, whose files are addressed by name.
pub(crate) trait Disk: Send {
    /// All names in it.
    fn names(&self) -> io::Result<Vec<String>>;
    /// A whole file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// A new, empty file; an older one of that name is emptied.
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Tail>>;
    /// Gives a file another name and replaces the file that had this name.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a name.
    fn remove(&mut self, name: &str) -> io::Result<()>;
    /// Makes names durable: creations, renames, removals.
    fn sync_names(&mut self) -> io::Result<()>;
}

/// The end of one file.
pub(crate) trait Tail: Send {
    /// Writes all of it at the end; an error leaves any part of it there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file to this many bytes.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
    /// Makes content and length durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// A directory of the operating system.
#[derive(Debug)]
pub(crate) struct RealDisk {
    directory: PathBuf,
    /// The open directory of a writer, which makes names durable. A process without a free descriptor between a rename
    /// and its sync cannot tell what is durable, and has to close the ledger. So the directory stays open.
    open: Option<File>,
}

impl RealDisk {
    /// For a process that only reads.
    pub(crate) const fn at(directory: PathBuf) -> Self {
        Self { directory, open: None }
    }

    /// For a process that writes.
    pub(crate) fn open(directory: PathBuf) -> io::Result<Self> {
        let open = Some(File::open(&directory)?);
        Ok(Self { directory, open })
    }
}

/// Follows no link in the place of a file of ours: who may write the directory, and no other one, would have us write elsewhere.
pub(crate) const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// The content of a regular file. A pipe in its place would hold up a start, and every command that reads, until a process wrote
/// into it; a device may have no end.
pub(crate) fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    read_bounded(path, READ_MAX_BYTES)
}

/// The same of one that is not to be longer than this.
pub(crate) fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    if metadata.len() > bytes_max {
        let why = format!("it has {} bytes, and at most {bytes_max} are read", metadata.len());
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Makes `directory` and its missing parents, for the owner only, and durably.
pub(crate) fn make_directory(directory: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| !path.exists()).collect();
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    for path in missing {
        sync_directory(path.parent().unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

/// Makes the names in `directory` durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}

impl Disk for RealDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            // The ledger writes only UTF-8 names, so another name is not a file of the ledger.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        read_regular(&self.directory.join(name))
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn Tail>> {
        // A new file also opens in append mode, so that after a cut the next write goes to the new end.
        let path = self.directory.join(name);
        let mut open = OpenOptions::new();
        let file = open.create(true).append(true).mode(0o600).custom_flags(NO_LINK).open(path)?;
        file.set_len(0)?;
        Ok(Box::new(RealTail { file }))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.directory.join(name))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        match &self.open {
            Some(open) => open.sync_all(),
            None => sync_directory(&self.directory),
        }
    }
}

struct RealTail {
    file: File,
}

impl Tail for RealTail {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        // fdatasync makes the length durable as well; the timestamps are not worth a second write.
        self.file.sync_data()
    }
}
