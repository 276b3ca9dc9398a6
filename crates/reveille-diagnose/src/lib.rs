//! Reads what machines left behind, and says which cause it proves.
//!
//! ```text
//!  catalogue/*.yaml ─▶ catalogue ───────────────┐ signs, marks, causes
//!                                                ▼
//!  bytes ─▶ sources ─▶ lines ─▶ scan ─▶ sightings ─▶ judge ─▶ Diagnosis
//!           unpack     one line,  literals first,     proofs and counter-proofs, roots before followers
//!           and name   comparable then patterns; tables ─▶ facts
//! ```
//!
//! A [`Reader`](scan::Reader) takes one source after another in bounded memory, whatever their size; [`judge::judge`]
//! weighs what it saw. A [`Judge`](log_evidence::Judge) does both for the controller and hands over types of the core.
//! What is known of failures is data: one file of the catalogue for each cause, with the lines that prove it and lines
//! that look like them and do not. Code here knows how lines, tables and archives are made, and no failure by name.
//!
//! Pure on purpose: no clock, no file system, no network. The caller opens the files. Threads look ahead in a long source where
//! the caller allows it, and do not change the result. Times in logs order lines of one source and are never compared across
//! sources: another machine's clock is not ours. Text is masked before it is kept, so that no finding can quote a secret.

pub mod catalogue;
mod examples;
pub mod explained;
pub mod finding;
pub mod judge;
pub mod lines;
pub mod log_evidence;
pub mod own;
pub mod page;
pub mod scan;
pub mod sources;
mod tables;

pub use catalogue::Catalogue;
pub use finding::{Confidence, Diagnosis, Finding, Quote, Unknown};
pub use judge::judge;
pub use log_evidence::Judge;
pub use scan::Reader;
