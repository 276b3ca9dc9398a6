//! Any bytes as each thing that agents and servers send each other: refused with a place, or read and written the same again.
//!
//! ```text
//!  bytes ─▶ agent::read::<T> ─┬▶ T ─▶ JSON ─▶ T, the same
//!                             └▶ BadFrame, short, without control characters
//! ```

use std::fmt::Debug;

use reveille_wire::agent::poll::{Poll, Polled};
use reveille_wire::agent::{
    AGENT_FRAME_BYTES_MAX, AgentFrame, Enrol, Enrolled, Numbered, Ping, Refused, Renew,
    SERVER_FRAME_BYTES_MAX, ServerFrame, read,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One try.
pub(crate) fn run(bytes: &[u8]) {
    one::<Numbered<AgentFrame>>(bytes, AGENT_FRAME_BYTES_MAX);
    one::<Numbered<ServerFrame>>(bytes, SERVER_FRAME_BYTES_MAX);
    one::<Poll>(bytes, AGENT_FRAME_BYTES_MAX);
    one::<Polled>(bytes, SERVER_FRAME_BYTES_MAX);
    one::<Enrol>(bytes, AGENT_FRAME_BYTES_MAX);
    one::<Enrolled>(bytes, SERVER_FRAME_BYTES_MAX);
    one::<Renew>(bytes, AGENT_FRAME_BYTES_MAX);
    one::<Ping>(bytes, AGENT_FRAME_BYTES_MAX);
    one::<Refused>(bytes, SERVER_FRAME_BYTES_MAX);
}

fn one<T: DeserializeOwned + Serialize + PartialEq + Debug>(bytes: &[u8], bytes_max: usize) {
    match read::<T>(bytes, bytes_max) {
        Ok(value) => {
            let Ok(written) = serde_json::to_vec(&value) else { panic!("what was read cannot be written") };
            // Replaced control characters take more room: the reader's own bound is not asked here.
            match read::<T>(&written, usize::MAX) {
                Ok(again) => assert_eq!(again, value, "what was written is read as something else"),
                Err(bad) => panic!("what was written cannot be read: {bad}"),
            }
        }
        Err(bad) => {
            assert!(!bad.place.is_empty() && !bad.what.is_empty(), "refused without a reason");
            assert!(!bad.to_string().contains(char::is_control), "a refusal that could move a cursor");
        }
    }
}
