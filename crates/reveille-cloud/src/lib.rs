//! What an adapter for a cloud is written on.
//!
//! ```text
//!  an adapter's client ─▶ http: Transport ─▶ Reply, or ExchangeError           credentials and their renewal are the adapter's
//!  an adapter's lister ─▶ interest: what is wanted · paging: whole or void · known: what did not change keeps its Arc
//!  an adapter's error  ─▶ failure: Failure
//!  an adapter's look   ─▶ report: Reading ─▶ ReadError
//!  an adapter's act    ─▶ report: Writing · steps: one outcome for several requests ─▶ Outcome
//!
//!  the program ─▶ provider: Provider, Project, Listing · for `init`: options, site, inventory ─▶ the adapter
//! ```
//!
//! An adapter supplies its requests, how its answers are read into the model's types, one [`failure::Failure`] (what its
//! service's refusals mean), and one [`provider::Provider`] (what the program wants of a cloud). In return no two adapters can
//! disagree about what a failed page, a lost answer or a mark that was taken away means to the engine. Nothing here knows a
//! cloud, decides, or retries. docs/internals/adding-a-cloud.md has the steps.

pub mod failure;
pub mod http;
pub mod interest;
pub mod inventory;
pub mod known;
pub mod limits;
pub mod options;
pub mod paging;
pub mod provider;
pub mod report;
pub mod site;
pub mod steps;
pub mod text;
pub mod tls;
