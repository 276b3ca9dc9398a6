//! `collect`: a machine's evidence, by order.

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille collect w-3               its doctor's bundle, without secrets: checks, logs, configuration
  reveille collect w-3 --probe       does its API server answer, and what do its checks say

Asks the server of `reveille run --listen` on this host, with the same --state, which asks the machine's agent. Nothing is
changed on the machine. What came is kept beside the server's state, the newest 64, and `reveille diagnose FILE` reads it.";

/// `collect`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Collect {
    /// The machine: its record, instance id, machine id, system UUID, or the name of its node
    pub(crate) machine: String,
    /// Only its checks, in a line each
    #[arg(long)]
    pub(crate) probe: bool,
    /// Longest to wait for it, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u32).range(5..=600))]
    pub(crate) within: u32,
}
