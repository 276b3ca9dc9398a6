//! Members of a tar archive, as a stream: header, bytes, padding.
//!
//! Plain, GNU long names and pax paths; links and devices are passed by. An archive that ends early is an error after the
//! members that were whole.
//!
//! The `tar` crate reads the blocks. Long names are put together here and not there: the crate keeps the whole of a name or of
//! pax records before it shows the member, however long its header says they are.

use std::io::{self, BufRead, BufReader, Read};

use ::tar::{Archive, EntryType, Header, PaxExtensions};

const BLOCK: usize = 512;
/// A path that is longer was not made by a person.
const PATH_BYTES_MAX: u64 = 64 * 1024;

/// Whether the bytes begin with a tar header.
pub(super) fn is_header(head: &[u8]) -> bool {
    head.get(..BLOCK).is_some_and(|block| {
        let header = Header::from_byte_slice(block);
        let mut counted = header.clone();
        counted.set_cksum();
        &block[257..262] == b"ustar" && header.cksum().is_ok_and(|sum| counted.cksum().ok() == Some(sum))
    })
}

/// Hands each file to `take`, until it wants no more.
pub(super) fn each(
    from: &mut dyn BufRead,
    mut take: impl FnMut(&str, &mut dyn BufRead) -> bool,
) -> io::Result<()> {
    let mut archive = Archive::new(from);
    let mut long_name: Option<String> = None;
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        match entry.header().entry_type() {
            kind @ (EntryType::GNULongName | EntryType::XHeader) => {
                let mut bytes = Vec::new();
                (&mut entry).take(PATH_BYTES_MAX).read_to_end(&mut bytes)?;
                let found = if kind == EntryType::XHeader { pax_path(&bytes) } else { Some(text(&bytes)) };
                long_name = found.or(long_name);
            }
            EntryType::Regular | EntryType::Continuous => {
                let path = long_name.take().unwrap_or_else(|| text(&entry.path_bytes()));
                if !take(&path, &mut BufReader::new(entry)) {
                    return Ok(());
                }
            }
            _ => long_name = None,
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The path among pax records. A record that is cut is none.
fn pax_path(bytes: &[u8]) -> Option<String> {
    let records = PaxExtensions::new(bytes).flatten();
    let mut paths = records.filter(|record| record.key_bytes() == b"path");
    paths.next().map(|record| String::from_utf8_lossy(record.value_bytes()).into_owned())
}
