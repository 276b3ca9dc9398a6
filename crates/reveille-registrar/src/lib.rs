//! The registration server: who may join, as whom, with which plan, and why not.
//!
//! ```text
//!  TLS, WebSocket, long poll ─▶ server ─▶ Event ─▶ registry::Registry::step(now, event) ─▶ Effect ─▶ store, cluster, reply
//! ```
//!
//! `registry` is pure: invitations, machines and plans as values; time, random bytes and what the cluster says are arguments.
//! `server` moves frames and keeps connections within bounds. Nothing is answered with a bare status: every refusal and every
//! wait is a word of `reveille_wire::agent`, with what to do and when to ask again.

pub mod plans_file;
pub mod plans_watch;
pub mod registry;
pub mod server;
