//! This example measures how many records per second the ledger makes durable. A plain file that writes and fsyncs the
//! same bytes is the baseline.
//!
//! ```text
//!  cargo run --release -p reveille-record --example append_rate [DIRECTORY]
//! ```
//!
//! The fsync of the disk decides the absolute numbers, so only the ratio within one run counts. The ratio shows what
//! checksums, sequence numbers, batches and the check of the lock cost on top. The two rounds alternate, because other
//! load on the disk slows both.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use reveille_record::{Config, Holder, Ledger};

const ROUNDS: usize = 10;
/// An intent with its call takes about this many bytes as JSON.
const RECORD_BYTES: usize = 300;

fn ledger_round(
    ledger: &mut Ledger<String>,
    record: &String,
    batches: usize,
    in_batch: usize,
) -> Result<Duration, Box<dyn Error>> {
    let begun = Instant::now();
    for _ in 0..batches {
        for _ in 0..in_batch {
            ledger.append(record)?;
        }
        ledger.sync()?;
    }
    Ok(begun.elapsed())
}

fn plain_round(
    file: &mut std::fs::File,
    line: &str,
    batches: usize,
    in_batch: usize,
) -> Result<Duration, Box<dyn Error>> {
    let batch = line.repeat(in_batch);
    let begun = Instant::now();
    for _ in 0..batches {
        file.write_all(batch.as_bytes())?;
        file.sync_data()?;
    }
    Ok(begun.elapsed())
}

fn compare(place: &Path, batches: usize, in_batch: usize) -> Result<(), Box<dyn Error>> {
    let state = place.join(format!("append-rate-{}-{in_batch}", std::process::id()));
    let mut ledger = Ledger::open(&state, &Holder::this_process("append_rate", 0), Config::STANDARD)?.ledger;
    let mut file = OpenOptions::new().create(true).append(true).open(state.join("plain"))?;
    let record = "r".repeat(RECORD_BYTES);
    // A line of the ledger has this length: lead, checksum, two numbers, the record in quotes, newline.
    let line = format!("{}\n", "p".repeat(RECORD_BYTES + 45));
    let (mut ours, mut plain) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..ROUNDS {
        ours += ledger_round(&mut ledger, &record, batches, in_batch)?;
        plain += plain_round(&mut file, &line, batches, in_batch)?;
    }
    let records = (ROUNDS * batches * in_batch) as f64;
    let (ours, plain) = (records / ours.as_secs_f64(), records / plain.as_secs_f64());
    println!("{in_batch:>8}  {ours:>12.0}  {plain:>12.0}  {:>7.2}", ours / plain);
    drop(ledger);
    std::fs::remove_dir_all(state)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let place = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    println!("per sync   ledger, /s    plain file, /s    ratio");
    for (batches, in_batch) in [(100, 1), (50, 10), (20, 100), (5, 1_000)] {
        compare(Path::new(&place), batches, in_batch)?;
    }
    Ok(())
}
