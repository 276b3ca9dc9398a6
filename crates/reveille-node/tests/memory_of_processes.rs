//! The memory of a doctor that looks at a disk, in a process of its own: its peak is the whole process's.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;

use reveille_node::probe::Probe;
use reveille_node::root::Root;
use support::status;

/// The kernel cuts the name of a process to fifteen bytes; a disk has any file there, and as many links to it as it likes. The
/// disk takes 4 MiB, or nothing where the file has a hole.
#[tokio::test]
async fn names_of_processes_of_a_disk_fill_no_memory_of_a_doctor() {
    const LINKS: usize = 48;
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    fs::create_dir_all(root.at("/x")).unwrap();
    fs::create_dir_all(root.at("/proc")).unwrap();
    fs::File::create(root.at("/x/comm")).unwrap().set_len(4 << 20).unwrap();
    for number in 1..=LINKS {
        symlink("/x", root.at(format!("/proc/{number}"))).unwrap();
    }
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmHWM:");
    drop(Probe::of_folder(root).facts(Ok(None)).await);
    let grew = status("VmHWM:") - before;
    println!("{grew} KiB for {LINKS} links; 100,000 are read");
    assert!(grew < 64 * 1024, "{grew} KiB for {LINKS} links, and 100,000 of them are read");
}
