//! What the agent on a node decides, as pure code: events come in, effects go out, and nothing else happens.
//!
//! ```text
//!  ApiChecked, PeerAnswered ─▶ contact ─▶ verdict ──┐ (alone? ordered? the control plane?)
//!  PeerAsked, OrdersRead ───▶ answering ─▶ AnswerPeer│
//!  Found, WatchdogSet/Read ─▶ watchdog ─▶ armed, proved ──┼─▶ work: one act at a time ─▶ Record ─▶ Act ─▶ proof
//!  Inspected ───────────────▶ rejoin ──▶ repair step, or why not ┘        (gates are asked again before each step)
//!                         State::step(now, event) -> Vec<Effect>
//! ```
//!
//! The module [`checkup`] also turns the facts of a machine into an ordered list of checks, each with advice.
//!
//! This crate answers three questions, and each wrong answer stops a running machine:
//!
//! 1. *The API server does not answer this machine. Is this machine the cause?* [`verdict`] says so only when enough
//!    peers have answered, or when no peer answers. Peers in the zone of this machine share its faults, and the agent
//!    asks them last.
//! 2. *May this machine be rebooted, and will the reboot work?* [`safety`] gives the reasons against it. The watchdog
//!    counts as armed only once the agent has read it back. An agent that cannot reboot says so
//!    ([`Report::CannotReboot`]), so that no controller takes its machine for fenced.
//! 3. *The Node is gone, or its credentials are stale. What is the smallest repair?* [`rejoin`] chooses a kubelet
//!    restart, a new token, or a reset. It resets only what is proved stale.
//!
//! The process performs the effects with real files, sockets and units and answers with events, as the binary's driver
//! does for the engine. The simulator performs the same effects on its own world. There is no third way. So this crate
//! opens no socket, reads no clock, holds no token or key, and draws no random number: time, names and facts are
//! arguments. The same events give the same bytes.
//!
//! Left out on purpose: stage reports, the connection to a server, and how an effect is carried out.

pub mod account;
mod answering;
pub mod checkup;
mod contact;
pub mod effect;
pub mod event;
pub mod invariants;
pub mod memory;
pub mod model;
mod observation;
pub mod peers;
pub mod rejoin;
pub mod safety;
pub mod sameness;
pub mod settings;
mod state;
mod step_context;
mod steps;
pub mod verdict;
mod watchdog;

pub use effect::{Effect, Report};
pub use event::Event;
pub use memory::Memory;
pub use settings::{Config, Settings};
pub use state::{Start, State};
