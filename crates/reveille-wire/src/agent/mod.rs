//! The border between an agent on a machine and the registration server: frames, answers, refusals and plans.
//!
//! ```text
//!  agent                                                            server
//!    │  GET  /v1/ping                       (nobody need say who)     │   Ping: is this a Reveille at all, and which?
//!    │  POST /v1/enrol    token + CSR ──────────────────────────────▶ │   Enrolled: a certificate of its own, or a Refused
//!    │  GET  /v1/session  certificate, WebSocket ═══════════════════▶ │   one Numbered<AgentFrame> to a message,
//!    │  POST /v1/poll     the same frames where no upgrade gets by ─▶ │   and Numbered<ServerFrame> back
//!    │  POST /v1/renew    certificate + CSR ────────────────────────▶ │   Enrolled again
//! ```
//!
//! JSON throughout, one number for the version of the protocol ([`PROTOCOL`]), which is also the first part of each path. What
//! is added within a version is a new kind of frame or a new field, and whoever does not know it passes it over: an agent and a
//! server of different ages work together. Two things are never passed over, because there an unknown word is an order that
//! would be half obeyed: the steps of a plan, and what an enrolment asks for ([`plan::Step`], [`enrol::Enrol`]).
//!
//! Everything is bounded before it is kept: a frame by [`AGENT_FRAME_BYTES_MAX`] and [`SERVER_FRAME_BYTES_MAX`], a text by its
//! type ([`text::Text`]), a list by [`text::List`]. Evidence, which is larger, travels in numbered parts. A refusal and a wait
//! are one closed list ([`reason::Reason`]), each with its HTTP status, a sentence, what to do, and when to ask again.
//!
//! Not here: sockets, certificates, digests, and any decision. A machine's stamp of time is text ([`text::Word`]); it is shown
//! and never subtracted.

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

/// The protocol that is spoken. Another number means another path and other frames.
pub const PROTOCOL: u32 = 1;
/// What [`Ping::product`] says when the other side is one of ours.
pub const PRODUCT: &str = "reveille";
/// Longest frame from an agent, and longest body of its requests, bytes.
pub const AGENT_FRAME_BYTES_MAX: usize = 256 << 10;
/// Longest frame to an agent, bytes: a plan with its files is in it.
pub const SERVER_FRAME_BYTES_MAX: usize = 1 << 20;
/// Longest that a poll is held back when there is nothing to say, seconds. Under the idle limit of common proxies (30 s).
pub const POLL_HOLD_S: u32 = 25;
/// Most frames in one poll or its answer.
pub const POLL_FRAMES_MAX: usize = 64;

/// Paths of the server.
pub mod path {
    /// Who is there?
    pub const PING: &str = "/v1/ping";
    /// A token for a certificate.
    pub const ENROL: &str = "/v1/enrol";
    /// A certificate for a newer one.
    pub const RENEW: &str = "/v1/renew";
    /// The connection that stays, as a WebSocket.
    pub const SESSION: &str = "/v1/session";
    /// The same by requests that are held back.
    pub const POLL: &str = "/v1/poll";
}

#[cfg(test)]
mod tests;
