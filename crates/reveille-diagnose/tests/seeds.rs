//! Every seed of the fuzz targets of this crate, through the same bodies and without libFuzzer: what fuzzing found once stays
//! fixed. `cargo xtask fuzz` looks for more.

#[path = "../../../fuzz/bodies/case.rs"]
mod case;
#[path = "../../../fuzz/bodies/catalogue.rs"]
mod catalogue;
#[path = "../../../fuzz/bodies/known.rs"]
mod known;
#[path = "../../../fuzz/bodies/lines.rs"]
mod lines;
#[path = "../../../fuzz/bodies/seeds.rs"]
mod seeds;
#[path = "../../../fuzz/bodies/shown.rs"]
mod shown;
#[path = "../../../fuzz/bodies/sources.rs"]
mod sources;

#[test]
fn sources_use_bounded_memory_and_show_no_terminal_controls() {
    seeds::play("sources", sources::run);
}

#[test]
fn lines_give_same_causes_in_any_chunks_without_secrets() {
    seeds::play("lines", lines::run);
}

#[test]
fn a_catalogue_is_refused_with_its_place_or_can_be_looked_for() {
    seeds::play("catalogue", catalogue::run);
}

#[test]
fn a_case_file_is_read_or_is_a_text() {
    seeds::play("case", case::run);
}
