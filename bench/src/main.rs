//! Measures what the engine costs: per event, per fault, per machine, and when nothing happens.
//!
//! One process, one thread, one run: each figure is printed beside the limit it is held to, and ratios compare sizes
//! within this run, because machines differ and this one may be busy. Times are medians of several rounds. Nothing here
//! fails on a slow machine; whoever reads the table judges.

mod cloud_service;
mod cycle;
mod engine;
mod fleet;

#[global_allocator]
static ALLOCATOR: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

fn main() {
    println!("engine, one core, release build\n");
    engine::cost_per_event();
    engine::reaction();
    engine::memory();
    engine::idle();
    if let Err(error) = cycle::per_cycle() {
        eprintln!("the cycle could not be measured: {error}");
        std::process::exit(1);
    }
}
