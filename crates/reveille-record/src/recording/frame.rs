//! One frame: sixteen bytes that hold its length and its checksums, then bytes of the segment's zstd stream.
//!
//! ```text
//!  "RVLF"  length (u32, little endian)  CRC-32 of the bytes  CRC-32 of these first twelve  │ bytes …
//! ```
//!
//! The length has a checksum of its own. So the reader tells a frame that is cut short (normal at the end) from a length
//! that was changed (damage).

/// First line of a segment.
pub(crate) const PREFACE: &[u8; 16] = b"reveille-tape 1\n";
/// Bytes of a frame before its content.
pub(crate) const HEAD_BYTES: usize = 16;
const MAGIC: &[u8; 4] = b"RVLF";

/// What the bytes at one place of a segment are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// A frame with this content.
    Whole(&'a [u8]),
    /// The end of a segment whose last frame was not written completely.
    CutShort,
    /// Bytes that were changed, and the check that failed.
    Damaged(&'static str),
}

/// Makes the frame around these bytes of the stream.
pub(crate) fn write(content: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEAD_BYTES + content.len());
    frame.extend_from_slice(MAGIC);
    frame.extend_from_slice(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
    frame.extend_from_slice(&crc32fast::hash(content).to_le_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_le_bytes());
    frame.extend_from_slice(content);
    frame
}

/// Reads the frame at the beginning of these bytes.
pub(crate) fn read(bytes: &[u8]) -> Found<'_> {
    let Some((head, rest)) = bytes.split_at_checked(HEAD_BYTES) else { return Found::CutShort };
    let number = |from: usize| {
        let mut four = [0; 4];
        four.copy_from_slice(&head[from..from + 4]);
        u32::from_le_bytes(four)
    };
    if &head[..4] != MAGIC {
        return Found::Damaged("no frame begins here");
    }
    if number(12) != crc32fast::hash(&head[..12]) {
        return Found::Damaged("the checksum of its head does not fit");
    }
    let length = usize::try_from(number(4)).unwrap_or(usize::MAX);
    let Some(content) = rest.get(..length) else { return Found::CutShort };
    if number(8) != crc32fast::hash(content) {
        return Found::Damaged("its checksum does not fit its content");
    }
    Found::Whole(content)
}
