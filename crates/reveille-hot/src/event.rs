//! What can come in and what can go out: two closed lists.
//!
//! The caller that performs the effects watches, reads and prints; this module does none of it.

use reveille_core::model::time::Span;
use serde_json::Value;

use crate::kinds::Generation;
use crate::metrics::Scrape;
use crate::object::{Object, Resource};
use crate::verdict::{Subject, Verdict};

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A kind is watched from now on: changes that are not told did not happen.
    Watched(Resource),
    /// The watch of a kind lost its place, or there is none: changes may have been missed.
    Blind(Resource),
    /// A list has this object.
    Listed {
        /// Which.
        object: Object,
        /// Its generation.
        generation: u64,
        /// How old it is, on the API server's own clock.
        age: Option<Span>,
        /// What its generation counts.
        counts: Generation,
    },
    /// An object was written.
    Written(Object),
    /// An object is gone.
    Gone(Object),
    /// A version of an object that is followed, whole.
    Version(Object, Box<Value>),
    /// An object cannot be followed, or not any more.
    Unfollowable(Object, String),
    /// The object that was asked for beside this one: its cluster's.
    Beside(Object, Box<Value>),
    /// The API server's counts.
    Scraped(Box<Scrape>),
    /// Time has passed.
    Tick,
    /// The look is over: judge what there is.
    Over,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Watch this object whole and tell its versions.
    Follow(Object),
    /// Enough was seen of it.
    Unfollow(Object),
    /// Read `wanted`, and tell it as what stands beside `about`.
    ReadBeside {
        /// The hot object.
        about: Object,
        /// What to read.
        wanted: Object,
    },
    /// Something is hot.
    Opened(Box<Verdict>),
    /// More is known of it.
    Changed(Box<Verdict>),
    /// It is hot no more.
    Closed(Subject),
}
