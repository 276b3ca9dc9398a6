//! What an adapter for a cloud is written on.
//!
//! ```text
//!  an adapter's client ─▶ http: Transport ─▶ Reply, or ExchangeError           credentials and their renewal are the adapter's
//!  an adapter's lister ─▶ interest: what is wanted · paging: whole or void · known: what did not change keeps its Arc
//!  an adapter's look   ─▶ report: Reading ─▶ ReadError
//!  an adapter's act    ─▶ report: Writing · steps: one outcome for several requests ─▶ Outcome
//! ```
//!
//! An adapter supplies its requests, how its answers are read into the model's types, and one [`report::Failure`]: what its
//! service's refusals mean. In return no two adapters can disagree about what a failed page, a lost answer or a mark that was
//! taken away means to the engine. Nothing here knows a cloud, decides, or retries.

pub mod http;
pub mod interest;
pub mod known;
pub mod limits;
pub mod paging;
pub mod report;
pub mod steps;
pub mod text;
pub mod tls;
