//! The journal as an agent reads it, in a process of its own whose `journalctl` is ours.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use reveille_node::known::Known;
use reveille_node::probe::Probe;
use reveille_node::root::Root;
use secrecy::SecretString;

const CHILD: &str = "REVEILLE_HOSTILE_JOURNAL";
const LAST: &str = "E1127 the last line: x509: certificate has expired";
const SECRET: &str = "k7Qp9ZtW4mXc2VbN8sLd";

/// The text and the note of the journal as an agent reads it, in a process of its own whose `journalctl` is ours.
fn journal(text: &str, then: &str) -> Option<String> {
    if let Ok(folder) = std::env::var(CHILD) {
        let root = Root::new(Path::new(&folder).join("root"));
        let mut probe = Probe::of_folder(root.clone());
        (probe.asks_system, probe.within) = (true, Duration::from_secs(8));
        let probe = probe.knowing(Known::of_machine(&root, None, &[SecretString::from(SECRET)]));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let logs = runtime.block_on(probe.logs(&[]));
        let log = logs.iter().find(|log| log.name == "journalctl").unwrap();
        let note = log.note.clone().unwrap_or_default();
        println!("{} bytes, {note:.80}", log.text.len());
        fs::write(Path::new(&folder).join("said"), log.text.clone() + &note).unwrap();
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("root")).unwrap();
    fs::create_dir(at("bin")).unwrap();
    fs::write(at("journal"), text).unwrap();
    fs::write(at("bin/journalctl"), format!("#!/bin/sh\n/bin/cat {} {then}\n", at("journal").display()))
        .unwrap();
    fs::set_permissions(at("bin/journalctl"), fs::Permissions::from_mode(0o755)).unwrap();
    let name = std::thread::current().name().unwrap().to_owned();
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env("PATH", at("bin"))
        .env(CHILD, folder.path())
        .output()
        .unwrap();
    print!("{}", String::from_utf8_lossy(&ran.stdout));
    Some(fs::read_to_string(at("said")).unwrap())
}

/// `logs`: "the end of each log is read, within a bound: the cause of a failure is there". Who owns a pod writes a log of the
/// kubelet: the output of its probes.
#[test]
fn what_fills_the_kubelets_log_does_not_hide_how_it_ends() {
    let noise = format!("I1127 prober.go: Probe failed output={}\n", "x".repeat(2000)).repeat(2500);
    let Some(said) = journal(&(noise + LAST + "\n"), "") else { return };
    assert!(said.contains(LAST), "{} bytes, and not the last line", said.len());
}

/// SECURITY.md: "what is known to be secret on the machine is taken out first, as it is": no half of it.
#[test]
fn a_journal_that_is_cut_shows_no_half_of_a_known_secret() {
    const MOST: usize = 4 << 20;
    let line = format!("I1127 {}\n", "word ".repeat(18));
    let mut text = line.repeat(MOST / line.len());
    let rest = MOST - 12 - text.len();
    text.push_str(&" ".repeat(rest));
    text.push_str(SECRET);
    text.push_str(&format!("\n{}", line.repeat(10)));
    let Some(said) = journal(&text, "") else { return };
    assert!(!said.contains(&SECRET[..10]), "it ends with {:?}", &said[said.len().saturating_sub(30)..]);
}

/// What it says of an error is a note of the log, and quotes what others wrote too.
#[test]
fn journal_error_note_shows_no_known_secret_or_half_of_it() {
    // What is kept begins in the second of the three.
    let end = format!("{}\n", "word ".repeat(809));
    let Some(said) = journal(&format!("{SECRET}\n{SECRET} {end}it failed with {SECRET}\n"), ">&2; exit 1")
    else {
        return;
    };
    assert!(said.contains("it failed with") && !said.contains(&SECRET[10..]), "{said:.200}");
}
