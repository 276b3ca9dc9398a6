//! An agent that starts where an attacker prepared its folder, or with an attacker between it and its server.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::{Arc, Mutex};

use reveille_wire::agent::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::pin::Pin;
use crate::pins::Pins;
use crate::target::Endpoint;

const INVITATION: &str = "rvi1.6f0c4e21a9b3.c4naryc4naryc4naryc4nary";

fn invited(machine: &Path, folder: PathBuf, port: u16) -> Setup {
    let pin: Pin = format!("sha256:{}", "ab".repeat(32)).parse().unwrap();
    Setup {
        folder,
        link: Some(Link {
            server: Endpoint { host: "127.0.0.1".to_owned(), port },
            pins: Pins::new(vec![pin]).unwrap(),
        }),
        invitation: Some(Secret::new(INVITATION)),
        ..Setup::of_test(machine)
    }
}

#[tokio::test]
async fn key_is_not_written_through_link_or_into_shared_folder() {
    let machine = tempfile::tempdir().unwrap();
    let at = |name: &str| machine.path().join(name);
    let make = |name: &str, mode: u32| {
        fs::create_dir_all(at(name)).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    make("theirs", 0o700);
    symlink(at("theirs"), at("linked")).unwrap();
    make("inside", 0o700);
    symlink(at("theirs"), at("inside/link")).unwrap();
    make("open", 0o777);
    make("group", 0o770);
    make("below/link", 0o777);
    make("around", 0o777);
    make("around/own", 0o700);
    make("held/link", 0o700);
    symlink(at("theirs/key"), at("held/link/link.pem")).unwrap();
    let mut wrong = vec![
        ("linked", "it is a link"),
        ("inside", "it is a link"),
        ("open", "chmod"),
        ("group", "chmod"),
        ("below", "chmod"),
        ("around/own", "chmod"),
        ("held", "it is a link"),
    ];
    if rustix::process::geteuid().is_root() {
        make("foreign", 0o700);
        std::os::unix::fs::chown(at("foreign"), Some(12_345), None).unwrap();
        wrong.push(("foreign", "chown"));
    }
    for (name, says) in wrong {
        let ended = run(invited(machine.path(), at(name), 1), |_, _| {});
        let ended = tokio::time::timeout(Duration::from_millis(500), ended).await;
        let Ok(Err(failure)) = ended else { panic!("{name} is taken: {ended:?}") };
        let said = failure.to_string();
        assert!(said.contains(says) && said.contains(&at(name).display().to_string()), "{name}: {said}");
        assert_eq!(fs::read_dir(at("theirs")).unwrap().count(), 0, "{name}");
    }
    let fresh = run(invited(machine.path(), at("fresh/agent"), 1), |_, _| {});
    assert!(tokio::time::timeout(Duration::from_millis(500), fresh).await.is_err(), "it goes on trying");
    assert!(at("fresh/agent/link/enrolling.pem").exists());
}

#[tokio::test]
async fn failed_enrolment_is_told_with_cause_and_time_of_next_try() {
    const PORTAL: &[u8] =
        b"HTTP/1.1 302 Found\r\nserver: captive\r\nlocation: http://portal/\r\ncontent-length: 0\r\n\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let portal = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            drop(stream.read(&mut request).await);
            drop(stream.write_all(PORTAL).await);
        }
    });
    let machine = tempfile::tempdir().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let running = run(invited(machine.path(), machine.path().join("agent"), port), move |_, told| {
        heard.lock().unwrap().push(format!("{told:?}"));
    });
    assert!(tokio::time::timeout(Duration::from_secs(4), running).await.is_err(), "it tries again");
    portal.abort();
    let told = told.lock().unwrap().clone();
    assert!((1..=4).contains(&told.len()), "first, and at pauses that grow: {told:?}");
    for line in &told {
        for part in [&format!("127.0.0.1:{port}"), "captive", "302", "again in"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(!line.contains("c4nary"), "{line}");
    }
}
