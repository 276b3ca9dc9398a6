//! What the agent on a node decides, pure: events come in, effects go out, and nothing else happens.
//!
//! ```text
//!  ApiChecked, PeerAnswered ─▶ contact ─▶ verdict ──┐ (alone? ordered? the control plane?)
//!  PeerAsked, OrdersRead ───▶ answering ─▶ AnswerPeer│
//!  Found, WatchdogSet/Read ─▶ watchdog ─▶ armed, proved ──┼─▶ work: one act at a time ─▶ Record ─▶ Act ─▶ proof
//!  Inspected ───────────────▶ rejoin ──▶ rung, or why not ┘        (gates are asked again before each step)
//!                         State::step(now, event) -> Vec<Effect>
//! ```
//!
//! Besides, [`checkup`] turns what was read of a machine into an ordered list of checks, each with what to do.
//!
//! Three questions are answered here, and each wrong answer costs somebody a running machine:
//!
//! 1. *The API server does not answer me. Is it me?* [`verdict`] says so only when enough others have spoken, or when
//!    nobody at all does; peers that share this machine's zone share its fault, and are asked last.
//! 2. *May this machine be rebooted, and will it be?* [`safety`] says why not; the watchdog counts as armed when it was
//!    read back. An agent that cannot reboot says so ([`Report::CannotReboot`]), so that nobody takes it for fenced.
//! 3. *The node is gone, or its credentials are stale. What is the least that brings it back?* [`rejoin`] chooses a
//!    kubelet restart, a new token, or a reset, and never resets what is not proved stale.
//!
//! The process performs the effects with real files, sockets and units and answers with events, as the binary's driver does
//! for the engine; the simulator performs the same effects on its own world. There is no third way. So nothing here opens
//! a socket, reads a clock, holds a token or a key, or draws a random number: time, names and facts are arguments, and the
//! same events give the same bytes.
//!
//! Left out on purpose: stage reports, the connection to a server, and every word of how an
//! effect is carried out.

pub mod account;
mod answering;
pub mod checkup;
mod contact;
pub mod effect;
pub mod event;
pub mod invariants;
pub mod memory;
pub mod model;
pub mod peers;
pub mod rejoin;
pub mod safety;
pub mod sameness;
pub mod settings;
mod sight;
mod state;
mod steps;
pub mod verdict;
mod watchdog;
mod work;

pub use effect::{Effect, Report};
pub use event::Event;
pub use memory::Memory;
pub use settings::{Config, Settings};
pub use state::{Start, State};
