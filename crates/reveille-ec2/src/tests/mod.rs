//! The adapter against answers as AWS gives them, over real sockets: connecting, sending, listing, surveying, looking, acting,
//! rights.
//!
//! They live in the crate because the credential chain can only be given another environment from within.

mod chain;
mod changes;
mod fake;
mod listing;
mod machines;
mod queries;
mod rights;
mod sending;
mod surveying;
mod words;
