//! How fast a log is scanned on one core with the whole catalogue: `cargo xtask bench scan`.
//!
//! ```text
//!  made-up log (one line in 10,000 of interest) ─┬▶ newline count      the limit
//!                                                ├▶ RegexSet by line   what one would write first
//!                                                └▶ Reader             ours
//! ```
//!
//! All three in one run on the same bytes. Memory is the peak of this process less the log itself, which is made piece by
//! piece and never held whole. No assertion: figures are read by people.

use std::fmt::Write as _;
use std::io::{self, BufReader, Read};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use reveille_diagnose::scan::Scanner;
use reveille_diagnose::{Catalogue, Reader, judge};

/// Bytes that are made once and repeated.
const PIECE_BYTES: usize = 8 << 20;
/// Repetitions for the whole scan: a gibibyte.
const TIMES: usize = 128;
/// `RegexSet` is slow enough that a piece of it tells the rate.
const SET_BYTES: usize = 4 << 20;

fn main() {
    let piece = piece();
    let gibibytes = |bytes: usize, took: Duration| bytes as f64 / f64::from(1 << 30) / took.as_secs_f64();
    let total = PIECE_BYTES * TIMES;
    println!("{} MiB of mixed log, one line in 10,000 of interest", total >> 20);

    let begun = Instant::now();
    let newlines: usize = (0..TIMES).map(|_| memchr::memchr_iter(b'\n', &piece).count()).sum();
    println!(
        "newline count           {:>7.2} GiB/s   {newlines} lines: the limit",
        gibibytes(total, begun.elapsed())
    );

    let catalogue = Catalogue::built_in().unwrap_or_default();
    let patterns: Vec<String> = catalogue
        .signals
        .iter()
        .flat_map(|signal| &signal.says)
        .map(|phrase| {
            format!(
                "(?i-u){}",
                phrase.literals.iter().map(|word| regex::escape(word)).collect::<Vec<_>>().join("|")
            )
        })
        .collect();
    if let Ok(set) = regex::bytes::RegexSetBuilder::new(&patterns).size_limit(1 << 30).build() {
        let begun = Instant::now();
        let hits: usize =
            piece[..SET_BYTES].split(|byte| *byte == b'\n').filter(|line| set.is_match(line)).count();
        println!(
            "RegexSet, line by line  {:>7.2} GiB/s   {} patterns (their required words alone), {hits} lines hit in {} MiB",
            gibibytes(SET_BYTES, begun.elapsed()),
            patterns.len(),
            SET_BYTES >> 20
        );
    }

    let Ok(scanner) = Scanner::new(&catalogue) else { return };
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    for jobs in [NonZeroUsize::MIN, cores] {
        let mut reader = Reader::new(&scanner).with_jobs(jobs);
        let begun = Instant::now();
        let repeated = Repeated { piece: &piece, at: 0, left: total };
        let read = reader.lines("made-up", BufReader::with_capacity(1 << 16, repeated));
        let took = begun.elapsed();
        let findings = judge(&reader).findings;
        println!(
            "reveille diagnose       {:>7.2} GiB/s   --jobs {jobs}: {} lines, {} findings, first {}, {:.1} s{}",
            gibibytes(total, took),
            reader.seen().lines,
            findings.len(),
            findings.first().map_or("nothing", |finding| finding.cause.as_str()),
            took.as_secs_f64(),
            if read.is_err() { ", and an error" } else { "" },
        );
    }
    if let Some(peak) = peak_kib() {
        println!(
            "memory                  {:>7.1} MiB at its peak, {} MiB of it the made-up piece",
            peak as f64 / 1024.0,
            PIECE_BYTES >> 20
        );
    }
}

/// The same piece again and again, as a file would be read.
struct Repeated<'p> {
    piece: &'p [u8],
    at: usize,
    left: usize,
}

impl Read for Repeated<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.piece[self.at..];
        let count = buffer.len().min(rest.len()).min(self.left);
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at = (self.at + count) % self.piece.len();
        self.left -= count;
        Ok(count)
    }
}

/// Lines as a kubelet, containerd, etcd, systemd, Rancher's agent and a kernel write them on a machine that is well.
fn piece() -> Vec<u8> {
    const INTEREST: u64 = 10_000;
    let mut text = String::with_capacity(PIECE_BYTES + 512);
    let mut dice: u64 = 42;
    let mut number: u64 = 0;
    while text.len() < PIECE_BYTES {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (r, s) = (dice >> 33, (dice >> 20) % 60);
        number += 1;
        let written = if number.is_multiple_of(INTEREST) {
            writeln!(
                text,
                "Nov 21 01:00:{s:02} w-1 kubelet[811]: E1121 01:00:{s:02}.000001     811 reflector.go:140] Failed to watch *v1.Node: Get \"https://10.0.0.9:6443/api/v1/nodes\": dial tcp 10.0.0.9:6443: i/o timeout"
            )
        } else {
            match r % 8 {
                0 | 1 => writeln!(
                    text,
                    "Nov 21 01:00:{s:02} w-1 kubelet[811]: I1121 01:00:{s:02}.{r:06}     811 kubelet.go:2205] \"SyncLoop (PLEG): event for pod\" pod=\"kube-system/coredns-{r}\" event={{ID:{r} Type:ContainerStarted Data:{dice:x}}}"
                ),
                2 => writeln!(
                    text,
                    "time=\"2024-11-21T01:00:{s:02}.{r:09}Z\" level=info msg=\"StartContainer for \\\"{dice:x}\\\" returns successfully\""
                ),
                3 => writeln!(
                    text,
                    "{{\"level\":\"info\",\"ts\":\"2024-11-21T01:00:{s:02}.123Z\",\"caller\":\"mvcc/hash.go:137\",\"msg\":\"storing new hash\",\"hash\":{r},\"revision\":{dice}}}"
                ),
                4 => writeln!(
                    text,
                    "Nov 21 01:00:{s:02} w-1 systemd[1]: run-containerd-runc-k8s.io-{dice:x}-runc.mount: Deactivated successfully."
                ),
                5 => writeln!(
                    text,
                    "[{r:>9}.{s:06}] IPv6: ADDRCONF(NETDEV_CHANGE): veth{r:x}: link becomes ready"
                ),
                6 => writeln!(
                    text,
                    "2024-11-21T01:00:{s:02}.123456789Z stdout F 10.244.1.{s} - - [21/Nov/2024:01:00:{s:02} +0000] \"GET /healthz HTTP/1.1\" 200 2 \"-\" \"kube-probe/1.30\""
                ),
                _ => writeln!(
                    text,
                    "I1121 01:00:{s:02}.{r:06}       1 trace.go:236] Trace[{r}]: \"Update\" accept:application/json,audit-id:{dice:x},client:10.0.0.{s},resource:leases (21-Nov-2024 01:00:{s:02}) (total time: {r}ms)"
                ),
            }
        };
        if written.is_err() {
            break;
        }
    }
    text.truncate(PIECE_BYTES);
    text.into_bytes()
}

fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
