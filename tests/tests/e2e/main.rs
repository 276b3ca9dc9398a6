//! The scenarios, in the order of what would hurt most if it were wrong.

mod network;
mod pauses;

use std::process::ExitCode;

use reveille_tests::scenarios;

fn main() -> ExitCode {
    reveille_tests::runner::main(scenarios![
        network::a_machine_without_its_group_is_mended_and_joins,
        network::only_missing_pod_rules_come_back_and_wider_ones_count,
        network::stale_routes_go_missing_ones_come_back_foreign_ones_stay,
        network::every_port_is_looked_at_and_what_cannot_be_mended_is_not_tried,
        network::a_group_that_does_not_stick_is_given_up_after_its_tries,
        network::an_unreachable_node_is_nudged_and_leftovers_are_cleaned,
        network::a_full_router_is_foreseen_and_not_called_in_vain,
        pauses::a_pause_by_command_or_annotation_holds_and_its_end_lets_go,
    ])
}
