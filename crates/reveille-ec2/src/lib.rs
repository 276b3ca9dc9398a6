//! EC2 as events in and effects out.
//!
//! ```text
//! config ─▶ account ─▶ client (credentials, signatures, retries of reads) ─┬─ list: CloudSnapshot, complete or void ─▶ events
//!             bridge · endpoint · refusal                                  ├─ look: Answer, past every cache        ─▶ events
//!                                                                          └─ act:  Call carried out, Outcome       ◀─ effects
//!           provider · site: all of this as the program knows a cloud
//!           instance · status · scaling · interface · group · table: EC2's words ⇄ the model's
//! ```
//!
//! [`Account::connect`] finds one account in one region; a [`Lister`] reads it over and over for the union of what rosters
//! want ([`Interest`]); [`Account::look`] answers the engine's questions; [`Account::perform`] makes its calls. Nothing here
//! decides or judges, with one exception: that EC2 denies an instance is not believed at once ([`doubt`]). Reads are asked again
//! a few times, as AWS asks of its callers; changes never. No key and no token reaches a log, an error or a Debug output.

mod account;
mod act;
mod actions;
mod bridge;
mod client;
mod console;
mod credentials;
mod doubt;
mod endpoint;
mod fetch;
mod filter;
mod group;
mod hosting;
mod instance;
mod interface;
mod list;
mod paging;
mod policy;
mod provider;
mod query;
mod query_protocol;
mod refusal;
mod reply;
mod scaling;
mod site;
mod status;
mod survey;
mod table;
#[cfg(test)]
mod tests;
mod trial;

pub use account::{Account, ConnectError, Ec2Config};
pub use credentials::CredentialError;
pub use instance::{cluster_mark, cluster_of};
pub use list::Lister;
pub use policy::policy;
pub use provider::Ec2;
pub use refusal::Refusal;
pub use reveille_cloud::interest::Interest;
pub use site::Ec2Site;
pub use trial::Trial;
