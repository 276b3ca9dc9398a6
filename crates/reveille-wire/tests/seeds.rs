//! Runs every seed of this crate's fuzz targets through the same code without libFuzzer, so that a bug that fuzzing found
//! once stays fixed. `cargo xtask fuzz` searches for more.

#[path = "../../../fuzz/bodies/agent.rs"]
mod agent;
#[path = "../../../fuzz/bodies/recording.rs"]
mod recording;
#[path = "../../../fuzz/bodies/roster.rs"]
mod roster;
#[path = "../../../fuzz/bodies/seeds.rs"]
mod seeds;

#[test]
fn a_roster_is_refused_with_a_reason_or_read() {
    seeds::play("roster", roster::run);
}

#[test]
fn what_is_read_of_a_recording_can_be_written_and_read_again() {
    seeds::play("recording", recording::run);
}

#[test]
fn what_a_peer_sends_is_read_or_refused_without_quoting_it() {
    seeds::play("agent", agent::run);
}
