//! Whole answers: texts in, causes out.

use crate::catalogue::Catalogue;
use crate::finding::{Confidence, Diagnosis};
use crate::judge;
use crate::scan::{Reader, Scanner};

fn diagnose(sources: &[&str]) -> Diagnosis {
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    let mut reader = Reader::new(&scanner);
    for (number, text) in sources.iter().enumerate() {
        reader.text(&format!("source-{number}"), text);
    }
    judge(&reader)
}

fn causes(sources: &[&str]) -> Vec<String> {
    diagnose(sources).findings.into_iter().map(|finding| finding.cause).collect()
}

const REFUSED: &str = "E0101 10:00:00.1 1 reflector.go:1] Failed to list *v1.Node: Get \"https://10.0.0.9:6443/api/v1/nodes\": dial tcp 10.0.0.9:6443: connect: connection refused\n";
const JOINED: &str = "This node has joined the cluster:\n";

#[test]
fn success_later_in_the_same_log_takes_earlier_noise_back() {
    let noisy = REFUSED.repeat(5);
    assert_eq!(causes(&[&noisy]), ["apiserver-unreachable"]);
    assert!(causes(&[&format!("{noisy}{JOINED}")]).is_empty());
    assert_eq!(
        causes(&[&format!("{JOINED}{noisy}")]),
        ["apiserver-unreachable"],
        "success before it proves nothing"
    );
}

#[test]
fn a_new_boot_doubts_what_stopped_the_one_before() {
    const BOOT: &str = "[    0.000000] Linux version 6.1.90 (build@host)\n";
    const LEASELESS: &str =
        "ignition[701]: GET error: dial tcp 169.254.169.254:80: connect: network is unreachable\n";
    let of = |text: &str| diagnose(&[text]).findings;
    let once = of(&format!("{BOOT}{LEASELESS}"));
    assert_eq!((&*once[0].cause, once[0].against.len()), ("no-network-at-boot", 0));
    let before = of(&format!("{BOOT}{LEASELESS}{BOOT}"));
    assert_eq!((&*before[0].cause, before[0].confidence), ("no-network-at-boot", Confidence::Possible));
    assert_eq!(before[0].against[0].sign, "machine-booted");
    let again = of(&format!("{BOOT}{LEASELESS}{BOOT}{LEASELESS}"));
    assert_eq!(again[0].confidence, once[0].confidence, "both boots stopped at the same place");
    let other = of(&format!("{BOOT}{LEASELESS}{BOOT}error: invalid bearer token abcdef\n"));
    assert_eq!(other[0].cause, "bootstrap-token-invalid", "the last boot speaks first");
}

#[test]
fn cause_is_dropped_for_node_listed_as_ready() {
    let said = "Nov 22 10:00:00 w-1 kubelet[1]: E0101 10:00:00.1 1 x.go:1] dial tcp 10.0.0.9:6443: connect: connection refused\n";
    let said = said.repeat(3);
    let listed = |rows: &str| format!("NAME STATUS ROLES AGE VERSION\n{rows}\n");
    assert_eq!(causes(&[&said]), ["apiserver-unreachable"]);
    assert!(causes(&[&said, &listed("w-1 Ready <none> 4m v1.31.1")]).is_empty());
    for others in
        ["w-2 Ready <none> 4m v1.31.1", "w-1 NotReady <none> 4m v1.31.1", "w-11 Ready <none> 4m v1.31.1"]
    {
        assert_eq!(causes(&[&said, &listed(others)]), ["apiserver-unreachable"], "{others}");
    }
    let twice = format!("{}\n{}", listed("w-1 NotReady <none> 4m v1"), listed("w-1 Ready <none> 9m v1"));
    assert!(causes(&[&said, &twice]).is_empty(), "the last listing of a source counts");
}

#[test]
fn two_machines_with_one_id_are_seen_across_sources() {
    const ID: &str = "9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c";
    let described = |name: &str| format!("Name:  {name}\n  Machine ID:  {ID}\n");
    assert_eq!(causes(&[&described("w-1"), &described("w-2")]), ["duplicate-machine-id"]);
    assert!(causes(&[&described("w-1"), &described("w-1")]).is_empty());
    let by_hand = format!("core@first:~$ cat /etc/machine-id\n{ID}\n");
    assert!(
        causes(&[&described("w-1"), &by_hand]).is_empty(),
        "an alias and a Node's name tell no two machines apart"
    );
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    let (mut one, mut other) = (Reader::new(&scanner), Reader::new(&scanner));
    one.text("a", &described("w-1"));
    other.text("b", &described("w-2"));
    one.append(other);
    assert_eq!(judge(&one).findings[0].cause, "duplicate-machine-id", "also where two readers saw one each");
}

#[test]
fn success_that_is_cut_or_of_something_else_takes_nothing_back() {
    let noisy = REFUSED.repeat(5);
    for line in [
        "I0101 10:00:09.1 1 x.go:1] the container was started successfully\n",
        "This node has joined the clus\n",
    ] {
        assert_eq!(causes(&[&format!("{noisy}{line}")]), ["apiserver-unreachable"], "{line}");
    }
}

#[test]
fn a_line_that_says_itself_that_it_goes_on_is_no_sign() {
    let failed = "could not ask rancher.lab.example: x509: certificate signed by unknown authority";
    assert_eq!(causes(&[&format!("{failed}\n")]), ["ca-untrusted"]);
    assert!(causes(&[&format!("{failed}, removing CA data and trying again\n")]).is_empty());
}

#[test]
fn a_message_that_three_components_repeat_counts_once() {
    let once = "Jan 01 10:00:00 w kubelet[1]: E0101 10:00:00.1 1 a.go:1] dial tcp 10.0.0.9:6443: connect: connection refused\n\
                Jan 01 10:00:00 w kubelet[1]: E0101 10:00:00.1 1 b.go:9] err=\"dial tcp 10.0.0.9:6443: connect: connection refused\"\n";
    let diagnosis = diagnose(&[once]);
    assert_eq!(diagnosis.findings[0].evidence[0].times, 1);
    assert_eq!(diagnosis.findings[0].confidence, Confidence::Possible);
}

#[test]
fn a_root_lists_what_follows_from_it() {
    let text = "lookup api.lan on 10.0.0.2:53: no such host\nFailed to connect to API server: dial tcp 10.0.0.9:6443: i/o timeout\n";
    let diagnosis = diagnose(&[text]);
    let first = &diagnosis.findings[0];
    assert_eq!(first.cause, "dns-resolution-failure");
    assert_eq!(first.follows[0].cause, "apiserver-unreachable");
    assert_eq!(diagnosis.findings.len(), 1);
}

#[test]
fn secrets_in_quoted_lines_are_masked() {
    let text = "error: invalid bearer token abcdef.0123456789abcdef password=hunter2 in request\n";
    let diagnosis = diagnose(&[text]);
    let quote = &diagnosis.findings[0].evidence[0].text;
    assert!(!quote.contains("0123456789abcdef") && !quote.contains("hunter2"), "{quote}");
}

#[test]
fn trouble_that_nothing_explains_is_said_to_be_so() {
    let diagnosis = diagnose(&["E0101 10:00:00.1 1 x.go:1] the flux capacitor failed\n"]);
    assert!(diagnosis.findings.is_empty());
    assert_eq!(diagnosis.unknown.unwrap().lines.len(), 1);
    // What is not understood is not well, and sounds like no trouble either.
    for harmless in [
        "I0101 10:00:00.1 1 x.go:1] all is well\n",
        "Preparing to unpack .../032-liberror-perl_0.17029-2_all.deb ...\n",
        "[ 0.0] Command line: reboot=k panic=1\n",
    ] {
        let diagnosis = diagnose(&[harmless]);
        assert!(diagnosis.findings.is_empty(), "{harmless}");
        assert!(diagnosis.unknown.unwrap().lines.is_empty(), "{harmless}");
    }
    let ready = "NAME STATUS ROLES AGE VERSION\nw-1 Ready <none> 1d v1.31.2\n";
    assert!(diagnose(&[ready]).unknown.is_none());
    assert!(diagnose(&[""]).unknown.is_some(), "nothing to read is not nothing wrong");
}
