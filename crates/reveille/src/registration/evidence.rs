//! Evidence that machines sent on an operator's request: assembled, checked, and kept in a folder with a size limit.
//!
//! ```text
//!  parts, in order ─▶ Gathering: bounded, base64, digest ─▶ archive ─┐
//!  done, declined, no answer ───────────────────────────────────────┴▶ keep: ORDER-MACHINE.tar.gz, ORDER-MACHINE.json (0600)
//!                                                                       └ the oldest go: 64 orders, 256 MiB
//! ```
//!
//! The archive is the bundle of the agent's doctor, without secrets; it is not opened here. The engine does not use it:
//! it is for operators and `reveille diagnose`. The result of an order is a file beside the archive. It is written last,
//! so that a command that waits for it finds the archive too.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reveille_core::diagnose::console::mask_secrets;
use reveille_core::model::time::Time;
use reveille_registrar::registry::plans::sha256;
use reveille_registrar::registry::{OrderId, Who};
use reveille_wire::agent::frame::{Done, Ended, EvidencePart};
use reveille_wire::report::CollectedReport;

/// The most archives that are received at once.
const AT_ONCE: usize = 4;
/// An order of a person ends after ten minutes at most. An archive that began before gives its place away: the end of its
/// order was lost, because the controller did not keep up.
const BEGUN_MAX: Duration = Duration::from_mins(11);
/// The limits for the orders that are kept: their number and their size.
const KEPT_MAX: usize = 64;
const KEPT_BYTES_MAX: u64 = 256 << 20;
/// The digits of an order's number in a file name, so that names sort by time.
const DIGITS: usize = 20;

/// Archives that are being received.
#[derive(Debug, Default)]
pub(super) struct Gathering(BTreeMap<OrderId, Parts>);

#[derive(Debug)]
struct Parts {
    begun: Instant,
    next: u32,
    of: u32,
    sha256: String,
    base64: String,
}

/// The end of an order, before it is written to disk.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) report: CollectedReport,
    pub(super) archive: Option<Vec<u8>>,
}

impl Gathering {
    /// Adds a part. The registry passes parts on in order, and not more than the limit.
    pub(super) fn take(&mut self, now: Instant, id: OrderId, part: &EvidencePart) {
        if part.part == 0 {
            self.0.retain(|_, parts| now.saturating_duration_since(parts.begun) < BEGUN_MAX);
        }
        if part.part == 0 && self.0.len() < AT_ONCE {
            let (of, sha256) = (part.of, part.sha256.as_str().to_owned());
            self.0.insert(id, Parts { begun: now, next: 0, of, sha256, base64: String::new() });
        }
        let Some(parts) = self.0.get_mut(&id) else { return };
        if (part.part, part.of, part.sha256.as_str()) != (parts.next, parts.of, parts.sha256.as_str()) {
            self.0.remove(&id);
            return;
        }
        parts.next += 1;
        parts.base64.push_str(&part.text);
    }

    /// The machine's last answer to an order.
    pub(super) fn done(&mut self, at: Time, id: OrderId, who: &Who, done: &Done) -> Ending {
        let parts = self.0.remove(&id);
        let outcome = match done.outcome {
            Ended::Done => "done",
            Ended::AlreadySo => "already-so",
            Ended::Failed => "failed",
            Ended::Declined => "declined",
        };
        match parts.map(Parts::whole) {
            Some(Ok((archive, sha256))) => {
                let mut ending = ending(at, id, who, outcome, &done.tail);
                (ending.report.bytes, ending.report.sha256) = (Some(archive.len() as u64), Some(sha256));
                Ending { archive: Some(archive), ..ending }
            }
            Some(Err(why)) => ending(at, id, who, "broken", &why),
            None => ending(at, id, who, outcome, &done.tail),
        }
    }

    /// The order ended without an answer.
    pub(super) fn unanswered(&mut self, at: Time, id: OrderId, who: &Who, why: &str) -> Ending {
        self.0.remove(&id);
        ending(at, id, who, "unanswered", why)
    }
}

impl Parts {
    fn whole(self) -> Result<(Vec<u8>, String), String> {
        if self.next != self.of {
            return Err(format!("{} of {} parts came", self.next, self.of));
        }
        let archive = STANDARD.decode(&self.base64).map_err(|error| format!("it is no base64: {error}"))?;
        let counted = sha256(&archive);
        if counted.as_str() != self.sha256 {
            return Err(
                "what was put together is not what the machine sent: its digest is another".to_owned()
            );
        }
        Ok((archive, counted.to_string()))
    }
}

fn ending(at: Time, id: OrderId, who: &Who, outcome: &str, says: &str) -> Ending {
    let report = CollectedReport {
        order: id.0,
        at,
        machine: who.machine.as_str().to_owned(),
        node: who.node_name.to_string(),
        instance: who.identity.instance_id.as_ref().map(ToString::to_string),
        outcome: outcome.to_owned(),
        says: mask_secrets(says).into_owned(),
        file: None,
        bytes: None,
        sha256: None,
    };
    Ending { report, archive: None }
}

/// The folder, beside the server's state.
pub(crate) fn folder(registrar: &Path) -> PathBuf {
    registrar.join("evidence")
}

/// Writes the end of an order, its archive first, and removes the oldest ones.
pub(super) fn keep(folder: &Path, ending: Ending) -> io::Result<()> {
    let Ending { mut report, archive } = ending;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // The file name has only safe characters; the record name comes from this server, and nothing in it from a machine.
    let machine: String = report.machine.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    let stem = format!("{:0DIGITS$}-{machine}", report.order);
    if let Some(archive) = archive {
        let path = folder.join(format!("{stem}.tar.gz"));
        put(&path, &archive)?;
        report.file = Some(path.display().to_string());
    }
    put(&folder.join(format!("{stem}.json")), &serde_json::to_vec(&report)?)?;
    prune(folder, KEPT_MAX, KEPT_BYTES_MAX)
}

fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("fresh");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

/// The newest order stays whatever its size, which the limits of its parts bound.
fn prune(folder: &Path, orders_max: usize, bytes_max: u64) -> io::Result<()> {
    let mut orders: BTreeMap<String, Vec<(PathBuf, u64)>> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(number) = name.get(..DIGITS).filter(|number| number.bytes().all(|b| b.is_ascii_digit())) {
            orders.entry(number.to_owned()).or_default().push((entry.path(), entry.metadata()?.len()));
        }
    }
    let (mut count, mut bytes) = (0, 0);
    for files in orders.into_values().rev() {
        count += 1;
        bytes += files.iter().map(|(_, bytes)| bytes).sum::<u64>();
        if count > 1 && (count > orders_max || bytes > bytes_max) {
            for (path, _) in files {
                fs::remove_file(path)?;
            }
        }
    }
    Ok(())
}

/// The results of orders that are kept, the newest last. Unreadable files are skipped.
pub(crate) fn kept(folder: &Path) -> Vec<CollectedReport> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    paths.iter().filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use reveille_registrar::registry::MachineId;
    use reveille_wire::agent::Identity;

    use super::*;

    fn who() -> Who {
        let identity = Identity { instance_id: Some("i-1".into()), ..Identity::default() };
        Who {
            machine: MachineId::new("m-1".to_owned()),
            roster: "prod".into(),
            node_name: "w-1".into(),
            identity,
        }
    }

    fn parts(id: u64, archive: &[u8]) -> Vec<EvidencePart> {
        EvidencePart::cut(id, &STANDARD.encode(archive), &sha256(archive)).unwrap()
    }

    fn end(gathering: &mut Gathering, id: u64) -> Ending {
        let done = Done { id, outcome: Ended::Done, tail: "all of it, token=c4n4ry0123".into() };
        gathering.done(Time::default(), OrderId(id), &who(), &done)
    }

    #[test]
    fn parts_rebuild_the_archive_and_altered_parts_are_broken() {
        let archive: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let sent = parts(1, &archive);
        assert!(sent.len() > 2);
        let cases: [(&str, fn(&mut Vec<EvidencePart>)); 5] = [
            ("done", |_| {}),
            ("broken", |parts| drop(parts.pop())),
            ("broken", |parts| parts[1].text = "AAAA".into()),
            ("broken", |parts| parts[0].text = "!".into()),
            ("done", |parts| parts.clear()),
        ];
        for (wanted, spoil) in cases {
            let (mut gathering, mut sent) = (Gathering::default(), sent.clone());
            spoil(&mut sent);
            sent.iter().for_each(|part| gathering.take(Instant::now(), OrderId(1), part));
            let ending = end(&mut gathering, 1);
            assert_eq!(ending.report.outcome, wanted);
            assert!(!ending.report.says.contains("c4n4ry"), "{}", ending.report.says);
            let whole = wanted == "done" && !sent.is_empty();
            assert_eq!(ending.archive.as_ref() == Some(&archive), whole);
            assert!(gathering.0.is_empty(), "nothing stays behind");
        }
    }

    #[test]
    fn four_evidence_archives_gather_at_once_and_a_fifth_is_dropped() {
        let mut gathering = Gathering::default();
        for id in 1..=5 {
            gathering.take(Instant::now(), OrderId(id), &parts(id, b"x")[0]);
        }
        assert!(end(&mut gathering, 4).archive.is_some());
        assert!(end(&mut gathering, 5).archive.is_none());
    }

    #[test]
    fn an_order_whose_end_was_lost_takes_no_place_for_ever() {
        let (mut gathering, begun) = (Gathering::default(), Instant::now());
        for id in 1..=4 {
            gathering.take(begun, OrderId(id), &parts(id, b"x")[0]);
        }
        gathering.take(begun + BEGUN_MAX / 2, OrderId(5), &parts(5, b"x")[0]);
        assert!(end(&mut gathering, 5).archive.is_none(), "the others may still come");
        gathering.take(begun + BEGUN_MAX, OrderId(6), &parts(6, b"x")[0]);
        assert!(end(&mut gathering, 6).archive.is_some());
        assert!(gathering.0.is_empty());
    }

    #[test]
    fn the_folder_keeps_the_newest_orders_and_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for id in 1..=6 {
            let mut gathering = Gathering::default();
            gathering.take(Instant::now(), OrderId(id), &parts(id, &[7; 1000])[0]);
            keep(folder, end(&mut gathering, id)).unwrap();
        }
        let orders = || kept(folder).into_iter().map(|report| report.order).collect::<Vec<_>>();
        assert_eq!(orders(), [1, 2, 3, 4, 5, 6]);
        prune(folder, 3, 1 << 20).unwrap();
        assert_eq!(orders(), [4, 5, 6]);
        prune(folder, 3, 2900).unwrap();
        assert_eq!(orders(), [5, 6], "by what they take, too");
        prune(folder, 3, 1).unwrap();
        assert_eq!(orders(), [6], "the newest stays");
        let file = kept(folder)[0].file.clone().unwrap();
        assert_eq!(fs::read(&file).unwrap(), [7; 1000]);
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}
