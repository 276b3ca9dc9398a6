//! Tests `run` while no server answers: it waits, answers the other commands, keeps a second controller out, and stops when told.

use crate::bench::{Bench, until};

#[test]
fn a_controller_answers_keeps_others_out_and_stops_when_told() {
    let bench = Bench::new();
    let controller = bench.start(&["run", "--log-format", "json"]);
    let socket = bench.path(".local/state/reveille/lost/control.sock");
    until("it listens", || socket.exists());
    let status = bench.run(&["status"]);
    assert_eq!(status.code, 2, "{}", status.out);
    assert_eq!(status.err, "", "the controller answered, so there is nothing to note");
    let second = bench.run(&["run"]);
    assert_eq!(second.code, 64, "{}", second.err);
    assert!(second.err.contains("reveille run") && second.err.contains("next: "), "{}", second.err);
    assert_eq!(bench.run(&["pause", "--reason", "quiet"]).code, 0);
    until("it heeds the pause", || bench.run(&["plan"]).out.contains("paused: roster, by ann: quiet"));
    let ended = controller.terminate();
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(!socket.exists(), "the socket goes with it");
    for line in ended.err.lines() {
        let parsed: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(parsed["message"].is_string() && parsed["level"].is_string(), "{line}");
    }
    assert!(ended.err.contains("stopping"), "{}", ended.err);
}

#[test]
fn plan_beside_an_unresponsive_controller_notes_it_on_stderr() {
    let bench = Bench::new();
    let controller = bench.start(&["run"]);
    let socket = bench.path(".local/state/reveille/lost/control.sock");
    until("it listens", || socket.exists());
    assert_eq!(bench.run(&["plan", "-o", "json"]).err, "", "it answered");
    controller.freeze();
    let plan = bench.run(&["plan", "-o", "json"]);
    let document: reveille_wire::report::Document = serde_json::from_str(&plan.out).unwrap();
    assert!(matches!(document.report, reveille_wire::report::Report::PlanReport(_)));
    assert!(plan.err.contains("a controller runs and did not answer within 10 s"), "{}", plan.err);
    assert_eq!(plan.err.lines().count(), 1, "a program wants no more notes than that: {}", plan.err);
}

/// A service manager that stops it during the first login gets an exit code, and not a process that a signal ended.
#[test]
fn controller_waiting_for_its_first_login_stops_on_sigterm() {
    // The server accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bench = Bench::towards(silent.local_addr().unwrap().port());
    let controller = bench.start(&["run"]);
    let state = bench.path(".local/state/reveille/lost");
    until("it has its ledger", || state.exists());
    let ended = controller.terminate();
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.err.contains("stopping"), "{}", ended.err);
}

#[test]
fn once_ends_by_itself_with_the_exit_code_of_status() {
    let bench = Bench::new();
    let ran = bench.run(&["run", "--once", "--within", "20", "-o", "json"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    let document: reveille_wire::report::Document = serde_json::from_str(&ran.out).unwrap();
    assert!(matches!(document.report, reveille_wire::report::Report::StatusReport(_)));
}

#[test]
fn a_configuration_that_cannot_come_right_ends_the_start() {
    let bench = Bench::new();
    let roster = std::fs::read_to_string(bench.path("reveille.yaml")).unwrap();
    bench.write("cloud.yaml", &roster.replace("cloud: nowhere", "cloud: nope"));
    bench.write(
        "cluster.yaml",
        &roster.replace("kubeconfig: kubeconfig", "kubeconfig: kubeconfig, context: nope"),
    );
    for (file, part) in [("cloud.yaml", "has no cloud"), ("cluster.yaml", "no context")] {
        let ran = bench.run(&["run", "--roster", file]);
        assert_eq!((ran.code, ran.err.contains(part)), (64, true), "{file}: {}", ran.err);
    }
}

/// A process with credentials that crashes leaves no core dump, even where its parent has enabled dumps.
#[test]
fn run_join_and_agent_leave_no_core_when_they_crash() {
    let pin = format!("sha256:{}", "0af1".repeat(16));
    let config = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery:\n  bootstrapToken:\n    \
        token: abcdef.0123456789abcdef\n    apiServerEndpoint: 127.0.0.1:1\n    caCertHashes: [PIN]\n";
    for args in [
        &["run"][..],
        &["join", "--config", "join.yaml", "--node-name", "w-1"],
        &[
            "agent",
            "--server",
            "https://127.0.0.1:1",
            "--ca-pin",
            &pin,
            "--folder",
            "agent",
            "--token-file",
            "token",
        ],
    ] {
        let bench = Bench::new();
        bench.write("join.yaml", &config.replace("PIN", &pin));
        bench.write("token", "rvi1.000000000000.c4naryc4naryc4na");
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(bench.path("token"), private).unwrap();
        let mut crashing = std::process::Command::new("sh")
            .args(["-c", "ulimit -S -c $(ulimit -H -c); exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_reveille")])
            .args(args)
            .current_dir(bench.path(""))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", bench.path(""))
            .env("USER", "ann")
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let limits = format!("/proc/{}/limits", crashing.id());
        until("it has switched its dumps off", || {
            let limits = std::fs::read_to_string(&limits).unwrap_or_default();
            let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size"));
            core.is_some_and(|core| core.split_whitespace().take(2).eq(["0", "0"]))
        });
        let id = crashing.id().to_string();
        assert!(std::process::Command::new("kill").args(["-ABRT", &id]).status().unwrap().success());
        let status = crashing.wait().unwrap();
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!((signal, std::os::unix::process::ExitStatusExt::core_dumped(&status)), (Some(6), false));
        let left = crate::bench::files_below(&bench.path(""));
        assert!(!left.iter().any(|file| file.contains("core")), "{left:?}");
    }
}
