//! The registration server: it decides which machines may join, under which identity and with which plan, and tells each
//! refused machine why.
//!
//! ```text
//!  TLS, WebSocket, long poll ─▶ server ─▶ Event ─▶ registry::Registry::step(now, event) ─▶ Effect ─▶ store, cluster, reply
//! ```
//!
//! `registry` is pure: invitations, machines and plans are values; time, random bytes and what the cluster says are
//! arguments. `server` moves frames and bounds the number of connections. The server never answers with a bare status:
//! each refusal and each wait is a word of `reveille_wire::agent`, with what to do and when to ask again.

pub mod plans_file;
pub mod plans_watch;
pub mod registry;
pub mod server;
