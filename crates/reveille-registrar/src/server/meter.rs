//! Counts the incoming frames of a session's WebSocket before any other code reads them, whatever their content.
//!
//! ```text
//!  bytes ─▶ heads of frames ─▶ one of the allowance for each ─▶ the library, which puts messages together
//! ```
//!
//! A fragment without content, a ping, a pong: each is six bytes and work for both sides. None of them ever becomes a
//! message, so no code above this module would count it. An agent sends one frame for each message and few pongs; more
//! than twice of that ends the session. This module reads only the heads of frames. The library finds errors in them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// The burst of frames: twice the number of messages that the registry takes.
const BURST: u32 = 240;
/// The interval of further frames.
const EACH: Duration = Duration::from_millis(50);

/// More frames came than the limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more frames than are taken")]
pub(super) struct TooManyFrames;

impl TooManyFrames {
    /// True when a connection ended because of this limit.
    pub(super) fn is_why(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

/// A stream whose incoming frames are counted.
pub(super) struct Metered<S> {
    inner: S,
    heads: Heads,
    /// The time when the whole burst is available again.
    free_at: Instant,
}

impl<S> Metered<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, heads: Heads::default(), free_at: Instant::now() }
    }

    /// Uses this many frames.
    fn spend(&mut self, now: Instant, frames: u32) -> Result<(), TooManyFrames> {
        self.free_at = self.free_at.max(now) + EACH * frames;
        if self.free_at <= now + EACH * BURST { Ok(()) } else { Err(TooManyFrames) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.inner).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {}
            other => return other,
        }
        let frames = self.heads.count(&buffer.filled()[before..]);
        Poll::Ready(self.spend(Instant::now(), frames).map_err(io::Error::other))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// The longest head: two bytes, a length of eight, a mask of four (RFC 6455 §5.2).
const HEAD_BYTES_MAX: usize = 14;

/// The position of the last byte in the stream of frames.
#[derive(Debug, Default)]
struct Heads {
    head: [u8; HEAD_BYTES_MAX],
    have: usize,
    /// Bytes of the frame's content that have not arrived yet.
    content: u64,
}

impl Heads {
    /// The number of frames whose heads end within these bytes.
    fn count(&mut self, mut bytes: &[u8]) -> u32 {
        let mut frames = 0_u32;
        while let Some((first, rest)) = bytes.split_first() {
            if self.content > 0 {
                let skipped = usize::try_from(self.content).unwrap_or(usize::MAX).min(bytes.len());
                self.content -= skipped as u64;
                bytes = &bytes[skipped..];
                continue;
            }
            self.head[self.have] = *first;
            self.have += 1;
            bytes = rest;
            if let Some(content) = self.content_of() {
                (self.have, self.content) = (0, content);
                frames = frames.saturating_add(1);
            }
        }
        frames
    }

    /// The length of the content, when the head is complete.
    fn content_of(&self) -> Option<u64> {
        if self.have < 2 {
            return None;
        }
        let length_bytes = match self.head[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask_bytes = if self.head[1] & 0x80 == 0 { 0 } else { 4 };
        if self.have < 2 + length_bytes + mask_bytes {
            return None;
        }
        let long = self.head[2..2 + length_bytes].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Some(if length_bytes == 0 { u64::from(self.head[1] & 0x7f) } else { long })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A masked text frame of so many bytes.
    fn frame(length: usize) -> Vec<u8> {
        let mut bytes = match length {
            0..126 => vec![0x81, 0x80 | length as u8],
            126..0x1_0000 => [vec![0x81, 0xfe], (length as u16).to_be_bytes().to_vec()].concat(),
            _ => [vec![0x81, 0xff], (length as u64).to_be_bytes().to_vec()].concat(),
        };
        bytes.extend([1, 2, 3, 4]);
        bytes.resize(bytes.len() + length, 0x81);
        bytes
    }

    #[test]
    fn frames_are_counted_however_they_are_long_and_cut() {
        let lengths = [0, 1, 125, 126, 127, 300, 0, 0xffff, 0x1_0000, 70_000, 0, 5];
        let stream: Vec<u8> = lengths.into_iter().flat_map(frame).collect();
        for cut in [1, 2, 3, 7, 13, 1000, stream.len()] {
            let mut heads = Heads::default();
            let counted: u32 = stream.chunks(cut).map(|part| heads.count(part)).sum();
            assert_eq!(counted, 12, "cut into {cut}");
        }
        let mut heads = Heads::default();
        let unmasked = [0x81, 1, b'a', 0x89, 0];
        assert_eq!(heads.count(&unmasked), 2);
        assert_eq!(heads.count(&[0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), 1);
        assert_eq!(heads.count(&[0; 1000]), 0, "and one that never ends is one");
    }

    #[tokio::test]
    async fn frames_above_the_allowed_rate_end_the_connection() {
        let (mut there, here) = tokio::io::duplex(1 << 20);
        let mut here = Metered::new(here);
        let mut now = Instant::now();
        assert_eq!(here.spend(now, BURST), Ok(()));
        for _ in 0..1000 {
            now += EACH;
            assert_eq!(here.spend(now, 1), Ok(()));
        }
        assert_eq!(here.spend(now, 1), Err(TooManyFrames));
        let mut here = Metered::new(here.inner);
        let many = usize::try_from(2 * BURST).unwrap();
        there.write_all(&frame(0).repeat(many)).await.unwrap();
        let error = here.read(&mut [0; 1 << 16]).await.unwrap_err();
        assert!(TooManyFrames::is_why(&error), "{error}");
    }
}
