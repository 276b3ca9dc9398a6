//! The protocol between an agent on a machine and the registration server: frames, answers, refusals and plans.
//!
//! ```text
//!  agent                                                            server
//!    │  GET  /v1/ping                       (no credentials)          │   Ping: is this a Reveille at all, and which?
//!    │  POST /v1/enrol    token + CSR ──────────────────────────────▶ │   Enrolled: a certificate of its own, or a Refused
//!    │  GET  /v1/session  certificate, WebSocket ═══════════════════▶ │   one Numbered<AgentFrame> to a message,
//!    │  POST /v1/poll     the same frames where no upgrade gets by ─▶ │   and Numbered<ServerFrame> back
//!    │  POST /v1/renew    certificate + CSR ────────────────────────▶ │   Enrolled again
//! ```
//!
//! All bodies are JSON. One number is the version of the protocol ([`PROTOCOL`]), and it is also the first part of each path. A
//! change within a version adds a kind of frame or a field, and a reader skips what it does not know. So an agent and a server
//! of different versions work together. Two things are never skipped: the steps of a plan, and the request of an enrolment
//! ([`plan::Step`], [`enrol::Enrol`]). A reader that skipped an unknown word there would carry out only half of an order.
//!
//! The reader checks limits before it keeps anything: a frame by [`AGENT_FRAME_BYTES_MAX`] and
//! [`SERVER_FRAME_BYTES_MAX`], a text by its type ([`text::Text`]), a list by [`text::List`]. Evidence, which is larger,
//! travels in numbered parts. Refusals and waits are one closed list ([`reason::Reason`]), each with its HTTP status, a
//! sentence, what to do, and when to ask again.
//!
//! Not here: sockets, certificates, digests, and any decision. A machine's time stamp is text ([`text::Word`]), which is
//! shown and never subtracted.

pub mod allowed;
pub mod enrol;
pub mod frame;
pub mod identity;
pub mod peer;
pub mod plan;
pub mod poll;
pub mod read;
pub mod reason;
mod refused;
pub mod text;
pub mod words;

pub use enrol::{Enrol, Enrolled, Ping, Renew};
pub use frame::{AgentFrame, Numbered, ServerFrame};
pub use identity::{Facts, Identity};
pub use plan::{JoinOrder, Plan, Step};
pub use poll::{Poll, Polled};
pub use read::{BadFrame, read};
pub use reason::Reason;
pub use refused::Refused;
pub use text::{List, Secret, Text, Word};
pub use words::{Distribution, Role, StageWord, Verb};

/// The version of the protocol. Another version has another path and other frames.
pub const PROTOCOL: u32 = 1;
/// The value of [`Ping::product`] from a Reveille server.
pub const PRODUCT: &str = "reveille";
/// Longest frame from an agent, and longest body of its requests, bytes.
pub const AGENT_FRAME_BYTES_MAX: usize = 256 << 10;
/// Longest frame to an agent, bytes: a plan with its files is in it.
pub const SERVER_FRAME_BYTES_MAX: usize = 1 << 20;
/// The longest that the server holds a poll without an answer, seconds. It is below the idle limit of common proxies (30 s).
pub const POLL_HOLD_S: u32 = 25;
/// Most frames in one poll or its answer.
pub const POLL_FRAMES_MAX: usize = 64;

/// Paths of the server.
pub mod path {
    /// What the server is.
    pub const PING: &str = "/v1/ping";
    /// A certificate for a token.
    pub const ENROL: &str = "/v1/enrol";
    /// A new certificate for an old one.
    pub const RENEW: &str = "/v1/renew";
    /// The session as a WebSocket.
    pub const SESSION: &str = "/v1/session";
    /// The session by long polls.
    pub const POLL: &str = "/v1/poll";
}

#[cfg(test)]
mod tests;
