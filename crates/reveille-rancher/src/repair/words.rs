//! A repair's journal and its end, in words: for a person who reads what was done, and for the simulator that runs it.
//!
//! What an act is called stands beside the acts. Programs read the same things as data.

use super::{Closing, End, Line, Outcome, Path};

impl Path {
    /// As it is typed.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Evict => "evict",
            Self::Mend => "mend",
        }
    }
}

impl Outcome {
    /// How an act ended.
    pub fn words(&self) -> String {
        match self {
            Self::Accepted => "done".to_owned(),
            Self::AlreadySo => "was so already".to_owned(),
            Self::Moved => "not done: the object is another one, or was written meanwhile".to_owned(),
            Self::Refused { why } => format!("refused: {why}"),
            Self::Failed { why } => format!("not done: {why}"),
            Self::Unknown { why } => format!("may have been done: {why}"),
        }
    }
}

impl Closing {
    /// In two words, for a count.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::HandedOver => "handed over",
            Self::Mended => "mended",
            Self::PutBack => "put back",
            Self::Abandoned => "abandoned",
        }
    }

    /// What is so by then.
    pub const fn words(&self) -> &'static str {
        match self {
            Self::HandedOver => "its Node and its records are gone, and an operator registers it again",
            Self::Mended => "its record is whole, and its plan came",
            Self::PutBack => "it went wrong, and its record is as it was",
            Self::Abandoned => "a person gave it up",
        }
    }
}

impl End {
    /// Why nothing more comes.
    pub fn words(&self) -> String {
        match self {
            Self::Closed(how) => format!("over: {}", how.words()),
            Self::Stopped { why, changed: true } => format!("stops: {why}; what was done stays"),
            Self::Stopped { why, changed: false } => format!("stops: {why}; nothing was changed"),
        }
    }
}

impl Line {
    /// What it keeps.
    pub fn words(&self) -> String {
        match self {
            Self::Begun { order, node_uid, ips, .. } => {
                let ips: Vec<&str> = ips.iter().map(String::as_str).collect();
                let (way, node, cluster) = (order.path.word(), &order.node, &order.cluster);
                format!("begun: {way} {node} of cluster {cluster} (uid {node_uid}, {})", ips.join(" "))
            }
            Self::Intent { number, what, .. } => format!("intent {number}: {}", what.words()),
            Self::Ended { number, outcome } => format!("outcome of {number}: {}", outcome.words()),
            Self::Closed { how } => format!("closed: {}", how.words()),
        }
    }
}
