//! The scenarios, in the order of what would hurt most if it were wrong.

mod network;

use std::process::ExitCode;

use reveille_tests::scenarios;

fn main() -> ExitCode {
    reveille_tests::runner::main(scenarios![network::a_machine_without_its_group_is_mended_and_joins])
}
