//! Arguments of `collect`, which fetches a machine's evidence through its agent.

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille collect w-3               fetch checks, logs and configuration, without secrets
  reveille collect w-3 --probe       run the checks on the machine and print their results

Asks the registration server on this host (`reveille run --listen`, same --state), which asks the machine's agent. The
machine is not changed. The newest 64 results are kept with the server's state; read them with `reveille diagnose FILE`.";

/// `collect`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Collect {
    /// Machine: its record, instance id, machine id, system UUID, or the name of its Node
    pub(crate) machine: String,
    /// Run the checks only
    #[arg(long)]
    pub(crate) probe: bool,
    /// Timeout
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = super::waits::seconds(5..=600))]
    pub(crate) within: u32,
}
