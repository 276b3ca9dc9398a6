//! What one agent asks another: do you reach the API server? One fixed request, one short answer.
//!
//! ```text
//!  GET /v1/api HTTP/1.1        over TLS 1.3, both with the certificates that the registration server gave them
//!  {"api":"answers","age_s":3}
//! ```
//!
//! The answer is what the machine saw itself and how long ago, by its own clock between two of its own readings. Nothing else can
//! be asked, and nothing can be ordered.

use serde::{Deserialize, Serialize};

use super::text::Word;

/// All that is ever sent by who asks. No name of a host is in it: whom it is for, the certificate says.
pub const REQUEST: &[u8] = b"GET /v1/api HTTP/1.1\r\nhost: peer\r\nconnection: close\r\n\r\n";
/// Longest answer, its head included, bytes.
pub const ANSWER_BYTES_MAX: usize = 1024;

/// What a machine saw of the API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saw {
    /// `answers`, `silent`, or `cannot-tell`; a word that is not known says nothing.
    pub api: Word,
    /// How long ago, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u32>,
}

impl Saw {
    /// It answered.
    pub const ANSWERS: &'static str = "answers";
    /// It did not.
    pub const SILENT: &'static str = "silent";
    /// Nobody looked yet.
    pub const CANNOT_TELL: &'static str = "cannot-tell";
}
