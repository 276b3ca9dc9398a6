//! Evidence and probes by order: what the doctor would find on this machine, for the controller.
//!
//! ```text
//!  order ─▶ facts, checks ─┬─ probe ──────────────▶ done: does the API server answer, and every check in a line
//!                          └─ logs ─▶ bundle ─▶ base64 ─▶ part 0, part 1, … ─▶ done          link ends ─▶ all of it ends
//! ```
//!
//! The agent works on one order at a time. It is bounded in bytes: logs are shortened until everything fits, and left out
//! when they never fit. It is bounded in time: by the order's limit, and never longer than the agent's own. It is bounded
//! in pace, which stays below what the server takes from one machine. Parts wait for the link one by one, so a slow link
//! costs memory once. Secrets are removed as the doctor removes them, and also the agent's own key and invitation. The
//! agent changes nothing on the machine, and an order cannot name a file.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reveille_agent::checkup::{self, Check, Facts};
use reveille_core::diagnose::console::mask_secrets;
use reveille_wire::agent::frame::{Done, Ended, EvidencePart, Order};
use reveille_wire::agent::text::{Tail, Word};
use reveille_wire::agent::{AgentFrame, Secret, Verb};
use reveille_wire::report::{Document, Report};
use secrecy::SecretString;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use super::{AbortOnDrop, Setup};
use crate::bundle::{self, Contents};
use crate::inspect::Inspector;
use crate::known::{Known, key_lines};
use crate::logs::Log;
use crate::private;
use crate::probe::Probe;
use crate::report;
use crate::root::Root;
use crate::target::{Target, Token};

/// The longest time for an order, whatever the order says.
const WITHIN_MOST: Duration = Duration::from_secs(120);
/// The largest packed bundle of one order.
const BUNDLE_BYTES_MAX: usize = 2 << 20;
/// The size of each log in the bundle; the next smaller size while the bundle is too large.
const LOG_BYTES: [usize; 3] = [1 << 20, 128 << 10, 0];
/// The pause between two parts: it leaves a fifth of the rate that the server takes in the long run to all other frames.
const PACE: Duration = Duration::from_millis(125);

/// The task that collects evidence.
pub(super) struct Collector {
    root: Root,
    folder: PathBuf,
    invitation: Option<Secret>,
    parts: mpsc::Sender<AgentFrame>,
    /// Held as long as work for an order goes on: also by the thread that packs, which cannot be stopped.
    free: Arc<Semaphore>,
    under_way: Option<(u64, AbortOnDrop)>,
}

/// What one order is carried out with.
struct Collecting {
    root: Root,
    inspector: Option<Arc<Inspector>>,
    own: Vec<SecretString>,
    parts: mpsc::Sender<AgentFrame>,
    ends: Instant,
    permit: Arc<OwnedSemaphorePermit>,
}

/// A bundle that fits.
struct Packed {
    bytes: Vec<u8>,
    note: &'static str,
}

impl Collector {
    pub(super) fn new(setup: &Setup, parts: mpsc::Sender<AgentFrame>) -> Self {
        Self {
            root: setup.root.clone(),
            folder: setup.folder.clone(),
            invitation: setup.invitation.clone(),
            parts,
            free: Arc::new(Semaphore::new(1)),
            under_way: None,
        }
    }

    /// Begins an order, or returns why not.
    pub(super) fn begin(
        &mut self,
        order: &Order,
        inspector: Option<Arc<Inspector>>,
    ) -> Result<(), &'static str> {
        if self.under_way.as_ref().is_some_and(|(id, task)| *id == order.id && !task.0.is_finished()) {
            return Ok(());
        }
        let permit = Arc::clone(&self.free).try_acquire_owned();
        let permit = permit.map_err(|_| "it collects for another order, and does one at a time")?;
        let within = Duration::from_secs(u64::from(order.within_s)).min(WITHIN_MOST);
        let collecting = Collecting {
            root: self.root.clone(),
            inspector,
            own: self.own_secrets(),
            parts: self.parts.clone(),
            ends: Instant::now() + within,
            permit: Arc::new(permit),
        };
        let order = order.clone();
        let task: JoinHandle<()> = tokio::spawn(collecting.carry_out(order.clone()));
        self.under_way = Some((order.id, AbortOnDrop(task)));
        Ok(())
    }

    /// No receiver waits for the evidence any more.
    pub(super) fn stop(&mut self) {
        self.under_way = None;
    }

    /// The agent's own keys and invitation: no log should hold them, and a bundle must not.
    fn own_secrets(&self) -> Vec<SecretString> {
        let keys = private::key_files(&self.folder).filter_map(|path| {
            let key = std::fs::read_to_string(path).ok()?;
            Some(SecretString::from(key_lines(&key)))
        });
        let invitation = self.invitation.as_ref().map(|token| SecretString::from(token.expose()));
        keys.chain(invitation).collect()
    }
}

impl Collecting {
    async fn carry_out(self, order: Order) {
        let worked = timeout_at(self.ends, async {
            match order.verb {
                Verb::CollectEvidence => self.collect(order.id).await,
                _ => self.probe().await,
            }
        });
        let (outcome, tail) = worked
            .await
            .unwrap_or_else(|_| (Ended::Failed, "it took longer than the caller wanted to wait".to_owned()));
        let done = Done { id: order.id, outcome, tail: Tail::cut(&mask_secrets(&tail)) };
        // If no task takes the frame, the link is gone, and no server waits for it.
        self.parts.send(AgentFrame::Done(done)).await.ok();
    }

    /// The cluster that the machine is to join, from its plan or else from its files.
    fn aim(&self) -> Option<Target> {
        match &self.inspector {
            Some(inspector) => Some(inspector.target().clone()),
            None => Target::of_machine(&self.root).ok().flatten(),
        }
    }

    async fn look(&self) -> (Probe, Facts, Vec<Check>) {
        let probe = if self.root.is_this_machines() {
            Probe::of_this_machine()
        } else {
            Probe::of_folder(self.root.clone())
        };
        let facts = probe.facts(Ok(self.aim().as_ref())).await;
        let checks = checkup::checkup(&facts);
        (probe, facts, checks)
    }

    /// Asks whether the API server answers, and what the doctor would report.
    async fn probe(&self) -> (Ended, String) {
        let asked = async {
            match &self.inspector {
                None => Err("no plan was given to this machine yet: no API server is known".to_owned()),
                Some(inspector) => inspector.check_api().await.map_err(|unanswered| unanswered.why),
            }
        };
        let (answered, (_, _, checks)) = tokio::join!(asked, self.look());
        let (outcome, first) = match answered {
            Ok(answer) => (Ended::Done, format!("the API server answers {}", answer.status)),
            Err(why) => (Ended::Failed, why),
        };
        let lines = checks.iter().map(|check| format!("\n{check}"));
        (outcome, std::iter::once(first).chain(lines).collect())
    }

    async fn collect(&self, id: u64) -> (Ended, String) {
        let failed = |why: String| (Ended::Failed, why);
        let (probe, facts, checks) = self.look().await;
        let token = match &self.inspector {
            Some(inspector) => inspector.token().await,
            None => None,
        };
        let (root, own, of_join) = (self.root.clone(), self.own.clone(), token.clone());
        let known = tokio::task::spawn_blocking(move || Known::of_machine(&root, of_join.as_ref(), &own));
        let probe = probe.knowing(known.await.unwrap_or_default());
        let logs = probe.logs_within(&[], LOG_BYTES[0] as u64).await;
        let told = Report::DoctorReport(Box::new(report::report(&facts, &checks, &logs)));
        let json = match Document::from(told).to_json() {
            Ok(json) => json,
            Err(error) => return failed(format!("the report cannot be written: {error}")),
        };
        let work = Work {
            root: self.root.clone(),
            token,
            own: self.own.clone(),
            facts,
            json,
            verdict: report::verdict(&checks),
            logs,
        };
        let permit = Arc::clone(&self.permit);
        // Masking megabytes takes longer than the link may stay unattended.
        let packing = tokio::task::spawn_blocking(move || {
            let packed = work.pack();
            drop(permit);
            packed
        });
        let Packed { bytes, note } = match packing.await {
            Ok(Ok(packed)) => packed,
            Ok(Err(error)) => return failed(format!("it cannot be packed: {error}")),
            Err(_) => return failed("packing it broke off, which is a fault of ours".to_owned()),
        };
        let sent = self.send(id, &bytes).await;
        match sent {
            Some(parts) => (Ended::Done, format!("{} bytes in {parts} parts{note}", bytes.len())),
            None => failed(format!("{} bytes are more than is taken", bytes.len())),
        }
    }

    /// Sends all parts. Returns their number, or none where there are too many.
    async fn send(&self, id: u64, bytes: &[u8]) -> Option<usize> {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let sha256 = Word::cut(&format!("sha256:{hex}"));
        let parts = EvidencePart::cut(id, &STANDARD.encode(bytes), &sha256)?;
        let of = parts.len();
        for part in parts {
            // The task that dropped the other end ends this task, too.
            self.parts.send(AgentFrame::Evidence(part)).await.ok()?;
            sleep(PACE).await;
        }
        Some(of)
    }
}

/// The work of packing, outside of the link's task.
struct Work {
    root: Root,
    token: Option<Token>,
    own: Vec<SecretString>,
    facts: Facts,
    json: String,
    verdict: String,
    logs: Vec<Log>,
}

impl Work {
    /// Packs as much of the logs as fits.
    fn pack(&self) -> io::Result<Packed> {
        let notes = ["", ", logs shortened", ", logs left out"];
        let mut bytes = Vec::new();
        for (log_bytes, note) in LOG_BYTES.into_iter().zip(notes) {
            let logs: Vec<Log> = self.logs.iter().map(|log| log.end(log_bytes)).collect();
            bytes = bundle::pack(&Contents {
                root: &self.root,
                token: self.token.as_ref(),
                own: &self.own,
                facts: &self.facts,
                report_json: &self.json,
                verdict: &self.verdict,
                logs: &logs,
            })?;
            if bytes.len() <= BUNDLE_BYTES_MAX {
                return Ok(Packed { bytes, note });
            }
        }
        Err(io::Error::other(format!("{} bytes without any log", bytes.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(id: u64) -> Order {
        Order { id, verb: Verb::CollectEvidence, within_s: 600 }
    }

    #[tokio::test]
    async fn evidence_collection_ends_with_link_and_frees_next_order() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("var/log/kubelet.log");
        std::fs::create_dir_all(log.parent().unwrap()).unwrap();
        let noise: Vec<String> = (0..60_000).map(|_| format!("kubelet {:x}\n", fastrand::u64(..))).collect();
        std::fs::write(log, noise.concat()).unwrap();
        let setup = Setup::of_test(folder.path());
        let (parts, mut sent) = mpsc::channel(1);
        let mut collector = Collector::new(&setup, parts);
        collector.begin(&order(1), None).unwrap();
        let Some(AgentFrame::Evidence(first)) = sent.recv().await else { panic!("no part") };
        assert!(first.part == 0 && first.of > 3, "{} parts", first.of);
        // A link that takes no more frames: only the collector waits for it, and the agent goes on.
        assert_eq!(collector.begin(&order(1), None), Ok(()), "the same order again is the same one");
        assert!(collector.begin(&order(2), None).is_err(), "one at a time");
        collector.stop();
        let freed = Arc::clone(&collector.free).acquire_owned();
        drop(tokio::time::timeout(Duration::from_secs(30), freed).await.unwrap());
        let of_first = std::iter::from_fn(|| sent.try_recv().ok()).count();
        assert!(of_first <= 1, "what was under way, and no more: {of_first}");
        collector.begin(&order(2), None).unwrap();
        let Some(AgentFrame::Evidence(next)) = sent.recv().await else { panic!("no part") };
        assert_eq!((next.id, next.part), (2, 0));
    }
}
