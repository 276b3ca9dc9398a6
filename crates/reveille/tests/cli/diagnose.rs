//! Tests `diagnose`: what it reads, what it answers, and its exit codes.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bench::Bench;

const TOKEN: &str = "kubeadm join 10.0.0.9:6443 --token abcdef.0123456789abcdef\nerror execution phase preflight: couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"\n";
const ENTRY: &str = "cause: site-proxy\ncode: RV901\nstage: network\ntitle: our proxy says no\nbecause: b\nremedy: ask Ann\nsigns:\n  - id: site-proxy-says-no\n    says: 'proxy of acme says no'\n    yes: ['E: proxy of ACME says no']\n    near: ['proxy of ACME says yes']\n";

#[test]
fn the_answer_is_a_page_or_a_document_and_an_exit_code() {
    let bench = Bench::new();
    bench.write("join.log", TOKEN);
    bench.write("well.log", "This node has joined the cluster:\n");
    bench.write("odd.log", "E0101 10:00:00.1 1 x.go:1] the flux capacitor failed\n");
    let ran = bench.run(&["diagnose", "join.log"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    for part in ["bootstrap-token-invalid (RV117), sure", "join.log:2", "$ kubeadm token create"] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    assert!(!ran.out.contains("0123456789abcdef"), "{}", ran.out);
    assert!(!ran.out.contains('\u{1b}'), "no colours in a pipe");
    let ran = bench.run(&["diagnose", "well.log"]);
    assert_eq!((ran.code, ran.out.starts_with("No known problem found")), (0, true), "{}", ran.out);
    assert_eq!(bench.run(&["diagnose", "odd.log"]).code, 2);

    let ran = bench.run(&["diagnose", "-o", "json", "join.log", "well.log"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let first = &document["findings"][0];
    assert_eq!(first["cause"], "bootstrap-token-invalid");
    assert_eq!(first["stage"], "trust");
    assert_eq!(first["evidence"][0]["line"], 2);
    assert_eq!(document["inputs"].as_array().unwrap().len(), 2);
    assert_eq!(document["unknown"], Value::Null);
    let ran = bench.run(&["diagnose", "-o", "json", "well.log"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(document["findings"], Value::Array(Vec::new()));
}

#[test]
fn folders_pipes_and_missing_files() {
    let bench = Bench::new();
    bench.write("bundle.log", TOKEN);
    let ran = bench.run(&["diagnose", "."]);
    assert!(ran.out.contains("bootstrap-token-invalid"), "{}", ran.out);
    let ran = bench.run(&["diagnose", "missing.log"]);
    assert_eq!(ran.code, 64);
    assert!(ran.err.contains("missing.log"), "{}", ran.err);

    let mut child = Command::new(env!("CARGO_BIN_EXE_reveille"))
        .args(["diagnose", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(TOKEN.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("standard input:2"));
}

#[test]
fn bytes_that_are_no_text_are_said_and_prove_nothing() {
    let bench = Bench::new();
    let bytes: Vec<u8> = (0..4096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(bench.path("core"), bytes).unwrap();
    let ran = bench.run(&["diagnose", "core"]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    assert!(ran.out.contains("no text: not read"), "{}", ran.out);
}

#[test]
fn a_catalogue_of_ones_own_is_taken_or_refused_with_its_place() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("ours")).unwrap();
    bench.write("ours/proxy.yaml", ENTRY);
    bench.write("x.log", "E: proxy of ACME says no\n");
    let ran = bench.run(&["diagnose", "--catalogue", "ours", "x.log"]);
    assert!(ran.out.contains("site-proxy (RV901)"), "{}{}", ran.out, ran.err);
    let ran = bench.run(&["explain", "RV901", "--catalogue", "ours"]);
    assert!(ran.out.contains("ask Ann"), "{}{}", ran.out, ran.err);
    bench.write("ours/proxy.yaml", &ENTRY.replace("stage: network", "stage: netwrok"));
    let ran = bench.run(&["diagnose", "--catalogue", "ours", "x.log"]);
    assert_eq!(ran.code, 64);
    assert!(ran.err.contains("proxy.yaml:3: stage: no stage is called netwrok"), "{}", ran.err);
    assert_eq!(bench.run(&["explain", "RV999"]).code, 64);
}
