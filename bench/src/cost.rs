//! What a cycle of an adapter costs: calls and bytes by the service's own count, time by the median of several rounds.
//!
//! Processor time is this thread's own, so a cycle must run on the thread that asks.

use std::error::Error;
use std::time::{Duration, Instant};

use super::cycle::thread_cpu;
use super::http_service::HttpService;

/// What a cycle costs.
pub(crate) struct Cost {
    pub(crate) calls: f64,
    pub(crate) bytes: f64,
    pub(crate) cpu: Duration,
    wall: Duration,
}

impl Cost {
    /// Does it once to warm up, and then so many times.
    pub(crate) async fn of(
        service: &HttpService,
        rounds: u32,
        mut cycle: impl AsyncFnMut() -> Result<(), Box<dyn Error>>,
    ) -> Result<Self, Box<dyn Error>> {
        cycle().await?;
        service.take_counts();
        let mut spent = Vec::new();
        for _ in 0..rounds {
            let (cpu, wall) = (thread_cpu(), Instant::now());
            cycle().await?;
            spent.push((thread_cpu().saturating_sub(cpu), wall.elapsed()));
        }
        let (calls, bytes) = service.take_counts();
        spent.sort_unstable();
        let (cpu, wall) = spent.get(spent.len() / 2).copied().unwrap_or_default();
        let rounds = f64::from(rounds);
        Ok(Self { calls: calls as f64 / rounds, bytes: bytes as f64 / rounds, cpu, wall })
    }

    /// As a line of the table.
    pub(crate) fn print(&self, name: &str) {
        println!(
            "  {name:<22} {:5.1} calls {:8.2} MB {:8.1} ms of processor {:8.1} ms of wall",
            self.calls,
            self.bytes / 1e6,
            self.cpu.as_secs_f64() * 1e3,
            self.wall.as_secs_f64() * 1e3
        );
    }
}
