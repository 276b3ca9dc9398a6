//! What `reveille diagnose --jobs N` gains: one long log, and a folder of many, each read with one job and with two.
//!
//! ```text
//!  made-up log ─▶ one file, and as many bytes in many ─▶ reveille diagnose --jobs 1, --jobs 2, in turns ─▶ medians
//! ```
//!
//! The shipped program, a process for each round, files in the cache of the kernel: what is measured is the program and not a
//! disk. Rounds alternate, because a machine that is busy now may be idle in a minute.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::process::program;

/// Bytes of the long log.
const BYTES: usize = 512 << 20;
/// Bytes of the many together: of each the first mebibyte is read line by line, which is ten times slower.
const MANY_BYTES: usize = 128 << 20;
const FILES: usize = 64;
const ROUNDS: usize = 5;
const JOBS: [&str; 2] = ["1", "2"];
/// So many lines are made once and written again and again.
const LINES: u64 = 50_000;

/// Measures both.
pub(crate) fn jobs() -> Result<(), Box<dyn Error>> {
    println!("`reveille diagnose` on {} MiB of made-up log, {ROUNDS} rounds in turns", BYTES >> 20);
    let (program, folder) = (program()?, tempfile::tempdir()?);
    let (one, many) = (folder.path().join("long.log"), folder.path().join("many"));
    let piece = piece();
    written(&one, &piece, BYTES)?;
    fs::create_dir(&many)?;
    for number in 0..FILES {
        written(&many.join(format!("{number:03}.log")), &piece, MANY_BYTES / FILES)?;
    }
    for (what, path) in [("one long log", &one), ("a folder of 64", &many)] {
        let mut took = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (jobs, took) in JOBS.iter().zip(&mut took) {
                took.push(timed(&program, path, jobs)?);
            }
        }
        let [alone, together] = took.map(median);
        println!(
            "  {what:<16} --jobs 1 {:6.2} s   --jobs 2 {:6.2} s   {:.2} times as fast",
            alone.as_secs_f64(),
            together.as_secs_f64(),
            alone.as_secs_f64() / together.as_secs_f64()
        );
    }
    println!();
    Ok(())
}

fn timed(program: &Path, path: &Path, jobs: &str) -> Result<Duration, Box<dyn Error>> {
    let mut command = Command::new(program);
    command.args(["diagnose", "--jobs", jobs]).arg(path).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let status = command.status()?;
    // Findings are its answer to the lines of interest.
    if status.code() != Some(1) {
        return Err(format!("it ended with {status}").into());
    }
    Ok(begun.elapsed())
}

fn median(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took[took.len() / 2]
}

/// Whole pieces and the beginning of one more.
fn written(path: &Path, piece: &[u8], bytes: usize) -> std::io::Result<()> {
    let mut file = fs::File::create(path)?;
    let mut left = bytes;
    while left > 0 {
        let part = &piece[..left.min(piece.len())];
        file.write_all(part)?;
        left -= part.len();
    }
    Ok(())
}

/// Lines of a machine that is well, and one in 10,000 of one that cannot reach its API server.
fn piece() -> Vec<u8> {
    let mut text = String::new();
    for number in 0..LINES {
        let (second, id) = (number % 60, number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let line = match number % 5 {
            _ if number % 10_000 == 9_999 => format!(
                "Nov 21 01:00:{second:02} w-1 kubelet[811]: E1121 01:00:{second:02}.000001     811 reflector.go:140] Failed to watch \
                 *v1.Node: Get \"https://10.0.0.9:6443/api/v1/nodes\": dial tcp 10.0.0.9:6443: i/o timeout"
            ),
            0 => format!(
                "Nov 21 01:00:{second:02} w-1 kubelet[811]: I1121 01:00:{second:02}.{number:06}     811 kubelet.go:2205] \
                 \"SyncLoop (PLEG): event for pod\" pod=\"kube-system/coredns-{number}\" event={{Data:{id:x}}}"
            ),
            1 => format!(
                "time=\"2024-11-21T01:00:{second:02}Z\" level=info msg=\"StartContainer for \\\"{id:x}\\\" returns successfully\""
            ),
            2 => format!(
                "Nov 21 01:00:{second:02} w-1 systemd[1]: run-containerd-runc-k8s.io-{id:x}-runc.mount: Deactivated successfully."
            ),
            3 => format!(
                "[{number:>9}.{second:06}] IPv6: ADDRCONF(NETDEV_CHANGE): veth{id:x}: link becomes ready"
            ),
            _ => format!(
                "2024-11-21T01:00:{second:02}.1Z stdout F 10.244.1.{second} - - \"GET /healthz HTTP/1.1\" 200 2 \"-\" \"kube-probe/1.30\""
            ),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text.into_bytes()
}
