//! OpenStack as events in and effects out.
//!
//! ```text
//! clouds ─▶ client (Keystone behind it) ─▶ project ─┬─ list: CloudSnapshot, complete or void   ─▶ events
//!             catalog · refusal                     ├─ look: Answer, past every cache          ─▶ events
//!                                                   ├─ survey: the whole project, unfiltered, once
//!                                                   └─ act:  Call carried out, Outcome         ◀─ effects
//!           provider: all of this as the program knows a cloud
//!           instance · port · group · router · roles: the services' words ⇄ the model's
//! ```
//!
//! [`Project::connect`] logs in to one project; a [`Lister`] reads it over and over for the union of what rosters want
//! ([`Interest`]); [`Project::look`] answers the engine's questions; [`Project::perform`] makes its calls. Nothing here
//! decides, judges or retries, with one exception: a token that is refused is replaced once. What a failure means is
//! said in the engine's words ([`reveille_core::effect::ReadError`], [`reveille_core::effect::Outcome`]) and in one
//! sentence for people. No password and no token reaches a log, an error or a Debug output.

mod act;
mod catalog;
mod client;
mod clouds;
mod fetch;
mod filter;
mod group;
mod instance;
mod list;
mod paging;
mod port;
mod project;
mod provider;
mod query;
mod refusal;
pub mod rights;
mod roles;
mod router;
mod survey;

pub use catalog::CatalogError;
pub use client::LoginError;
pub use clouds::{CloudConfig, CloudEntry, ConfigError, Environment, list_clouds, list_clouds_in};
pub use list::Lister;
pub use project::{ConnectError, Project};
pub use provider::{OpenStack, OpenStackSite};
pub use refusal::Refusal;
pub use reveille_cloud::interest::Interest;
