//! Which processes of the machine count as a kubelet or a join, and how other accounts may influence that.

use std::time::{Duration, Instant};

use super::*;

/// A k3s machine with a process that joins.
fn joins() -> (Here, Inspector) {
    let here = Here::new(Kind::K3s);
    here.runs();
    here.put("/proc/77/cmdline", "/usr/bin/kubeadm\0join\0--config\0x\0");
    let inspector = here.inspector(1, &Cluster::new("ours").token());
    (here, inspector)
}

#[test]
fn process_that_ended_while_it_was_looked_at_is_no_join() {
    let (here, inspector) = joins();
    assert!(inspector.is_joining());
    fs::remove_file(here.root.at("/proc/77/status")).unwrap();
    assert!(!inspector.is_joining(), "nothing says whose it was");
}

#[test]
fn long_arguments_hide_no_root_join_and_user_ones_are_not_read() {
    let (here, inspector) = joins();
    // Longer than any file that is read whole; Linux allows up to six MiB.
    here.put("/long", &format!("kubeadm\0join\0{}", "a\0".repeat(5 << 19)));
    let long = |process: u32| {
        let path = here.root.at(format!("/proc/{process}/cmdline"));
        fs::remove_file(&path).ok();
        fs::hard_link(here.root.at("/long"), path).unwrap();
    };
    long(77);
    assert!(inspector.is_joining());
    here.put("/proc/77/status", "Name:\tx\nUid:\t65534\t65534\t65534\t65534\n");
    here.put("/long", &"a\0".repeat(1 << 20));
    for process in 1000..1100 {
        here.put(&format!("/proc/{process}/status"), "Name:\tx\nUid:\t65534\t65534\t65534\t65534\n");
        long(process);
    }
    let begun = Instant::now();
    assert!(!inspector.is_joining());
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(1), "a hundred processes of a user hold the agent up for {took:?}");
}
