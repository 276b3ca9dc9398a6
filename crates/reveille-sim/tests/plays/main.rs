//! Every scenario of the library is played: each expectation holds, and the page is the one that was recorded.
//!
//! After a change that is meant, `REVEILLE_BLESS=1` writes the pages again; their difference is what a reviewer reads.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail by panicking")]
#![allow(unreachable_pub, reason = "one test binary, several files")]

mod annotations;
mod can_fail;
mod library;
mod page;
mod refusals;
