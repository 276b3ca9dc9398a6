//! The scenarios, in the order of what would hurt most if it were wrong.

mod access;
mod alone;
mod calm;
mod crashes;
mod diagnosing;
mod doctoring;
mod hot;
mod instances;
mod invited;
mod joining;
mod machines;
mod network;
mod onnode;
mod pauses;
mod rancher;
mod sources;
mod surviving;
mod taken;
mod troubled;
mod without_cloud;

use std::process::ExitCode;

use reveille_tests::runner::Scenario;
use reveille_tests::scenario;

fn main() -> ExitCode {
    let agreed = match Scenario::agreed() {
        Ok(agreed) => agreed,
        Err(why) => {
            eprintln!("the agreed scenarios: {why:#}");
            return ExitCode::FAILURE;
        }
    };
    let written = [
        scenario!(network::a_machine_without_its_group_is_mended_and_joins, 20),
        scenario!(network::only_missing_pod_rules_come_back_and_wider_ones_count, 20),
        scenario!(network::stale_routes_go_missing_ones_come_back_foreign_ones_stay, 25),
        scenario!(sources::empty_node_list_costs_no_machine, 100).with_fleet(),
        scenario!(sources::empty_or_broken_server_list_costs_nothing, 100).with_fleet(),
        scenario!(machines::a_neighbour_cluster_of_a_like_name_is_not_touched, 55),
        scenario!(machines::broken_servers_are_replaced_until_the_same_fault_returns, 150),
        scenario!(machines::first_boot_without_network_is_replaced_silent_one_rebooted, 90),
        scenario!(doctoring::the_doctor_names_first_what_is_wrong_with_a_real_node, 90),
        scenario!(diagnosing::what_real_programs_say_when_they_fail_is_told_by_its_cause, 200),
        scenario!(joining::real_join_counts_and_cloud_controllers_deletion_is_told, 120),
        scenario!(joining::unapproved_request_is_told_and_blocks_replacement, 120),
        scenario!(invited::an_invited_machine_joins_and_its_agent_keeps_its_node, 120),
        scenario!(invited::the_engine_asks_the_agent_before_it_asks_the_cloud, 150),
        scenario!(surviving::invited_machines_join_although_processes_die, 150),
        scenario!(onnode::a_join_ends_when_its_node_stays_or_says_why_it_does_not, 180).alone(),
        scenario!(troubled::a_join_outlives_its_clusters_trouble, 150).alone(),
        scenario!(taken::cloud_controller_deletes_node_until_it_knows_its_machine, 80),
        scenario!(taken::the_aws_controller_takes_a_node_until_ec2_knows_its_instance, 100),
        scenario!(instances::instance_gets_its_group_back_and_ended_one_is_cleaned_up, 120),
        scenario!(instances::instance_unknown_to_ec2_yet_is_told_and_not_replaced, 150),
        scenario!(instances::facts_that_ec2_leaves_out_cost_no_machine, 120),
        scenario!(instances::a_survey_of_ec2_gives_a_roster_that_a_roll_takes_at_once, 20),
        scenario!(sources::a_frozen_or_dead_api_server_stops_all_acts, 90),
        scenario!(sources::expired_tokens_absent_keystone_and_throttling_are_survived, 75),
        scenario!(hot::fighting_writers_and_empty_writes_are_found, 40),
        scenario!(rancher::both_ways_of_mending_a_record_survive_a_kill_at_each_step, 65),
        scenario!(rancher::a_machine_that_holds_etcd_leaves_it_before_its_node_goes, 35),
        scenario!(rancher::kill_at_any_step_removes_etcd_member_once_and_before_node, 55),
        scenario!(rancher::storm_in_management_cluster_is_told_with_its_machine, 40),
        scenario!(rancher::faulty_records_are_found_and_sound_ones_are_not, 10),
        scenario!(crashes::a_kill_around_network_calls_neither_repeats_nor_loses_one, 30),
        scenario!(crashes::a_kill_around_deletions_neither_repeats_nor_loses_one, 70),
        scenario!(without_cloud::cluster_without_cloud_is_told_by_nodes_and_claims, 90),
        scenario!(network::every_port_is_read_and_what_cannot_be_repaired_is_not_tried, 30),
        scenario!(network::a_group_that_does_not_stick_is_given_up_after_its_tries, 45),
        scenario!(network::an_unreachable_node_is_nudged_and_leftovers_are_cleaned, 60),
        scenario!(network::a_full_router_is_foreseen_and_not_called_in_vain, 60),
        scenario!(pauses::a_pause_by_command_or_annotation_holds_and_its_end_lets_go, 40),
        scenario!(alone::a_second_controller_observes_until_the_first_has_ended, 70),
        scenario!(access::missing_role_is_told_given_where_allowed_and_never_guessed, 60),
        scenario!(calm::healthy_project_costs_four_reads_a_cycle, 65).alone(),
    ];
    reveille_tests::runner::main(&[&written[..], &agreed].concat())
}
