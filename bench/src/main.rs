//! Measures what the engine costs: per event, per fault, per machine, when nothing happens, and per simulated day.
//!
//! One process, one thread, one run: each figure is printed beside the limit it is held to, and ratios compare sizes
//! within this run, because machines differ and this one may be busy. Times are medians of several rounds. Nothing here
//! fails on a slow machine. One ratio fails on any: ten times the faults may cost twelve times as much (`reaction`).

mod agents;
mod burst;
mod cloud_service;
mod cluster_service;
mod cost;
mod cycle;
mod diagnose;
mod driver;
mod ec2;
mod ec2_service;
mod engine;
mod fleet;
mod hot;
mod http_service;
mod process;
mod reaction;
mod sim;

#[global_allocator]
static ALLOCATOR: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

/// One part of the benchmark, for a developer who works on that part.
type Part = (&'static str, fn() -> Result<(), Box<dyn std::error::Error>>);

const PARTS: [Part; 11] = [
    ("event", || printed(engine::cost_per_event)),
    ("reaction", || {
        reaction::to_nodes_not_ready();
        burst::at_default_limits()
    }),
    ("memory", || printed(engine::memory)),
    ("idle", || printed(engine::idle)),
    ("sim", || printed(sim::machine_days)),
    ("cycle", cycle::per_cycle),
    ("ec2", ec2::per_cycle),
    ("diagnose", diagnose::jobs),
    ("hot", || printed(hot::detector)),
    ("agents", || agents::storm(5_000)),
    ("process", || process::quiet(10_000, 40.0)),
];

/// A part that measures in this process and cannot fail.
fn printed(measure: fn()) -> Result<(), Box<dyn std::error::Error>> {
    measure();
    Ok(())
}

fn main() -> std::process::ExitCode {
    if agents::was_server() {
        return std::process::ExitCode::SUCCESS;
    }
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = wanted.iter().find(|name| PARTS.iter().all(|(known, _)| known != name)) {
        eprintln!("no part {unknown}; there are: {}", PARTS.map(|(name, _)| name).join(" "));
        return std::process::ExitCode::from(2);
    }
    let build = if cfg!(debug_assertions) { "development" } else { "release" };
    println!("one core, {build} build\n");
    for (name, measure) in PARTS {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        if let Err(error) = measure() {
            eprintln!("{name}: {error}");
            return std::process::ExitCode::FAILURE;
        }
    }
    std::process::ExitCode::SUCCESS
}
