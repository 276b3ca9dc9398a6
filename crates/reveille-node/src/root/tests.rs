//! A disk that an attacker wrote: its links stay below its root, and no read waits.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::probe::Probe;

/// A text outside of the root, which no read may return.
const OUTSIDE: &str = "of-the-host-4711";

/// A host's folder beside a disk's root, and the root.
fn disk() -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    for path in ["host/log/pods", "disk/etc/kubernetes", "disk/var/lib/kubelet/pki", "disk/var/log"] {
        fs::create_dir_all(folder.path().join(path)).unwrap();
    }
    for name in ["host/secret", "host/hosts", "host/log/syslog", "host/log/pods/kubelet.log"] {
        fs::write(folder.path().join(name), format!("{OUTSIDE}\n")).unwrap();
    }
    let root = Root::new(folder.path().join("disk"));
    (folder, root)
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// The answer, or a failure of the test when a read takes too long.
fn in_time<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(read()));
    receiver.recv_timeout(Duration::from_secs(5)).expect("it hangs")
}

#[test]
fn link_is_followed_within_root_and_missing_file_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    fs::create_dir_all(root.at("/var/lib/kubelet/pki")).unwrap();
    fs::write(root.at("/var/lib/kubelet/pki/one.pem"), "one").unwrap();
    let link = |to: &str, name: &str| symlink(to, root.at(name)).unwrap();
    link("/var/lib/kubelet/pki/one.pem", "/var/lib/kubelet/pki/current.pem");
    link("one.pem", "/var/lib/kubelet/pki/beside.pem");
    link("round.pem", "/var/lib/kubelet/pki/round.pem");
    let text = |name: &str| root.text(format!("/var/lib/kubelet/pki/{name}.pem"));
    assert_eq!(text("current").unwrap().as_deref(), Some("one"));
    assert_eq!(text("beside").unwrap().as_deref(), Some("one"));
    assert_eq!(text("gone").unwrap(), None);
    assert!(text("round").is_err(), "a circle is not \"not there\"");
    assert_eq!(root.names("/var/lib/kubelet").unwrap(), Some(vec!["pki".to_owned()]));
    assert_eq!(root.names("/nowhere").unwrap(), None);
    assert!(root.text("/var/lib/kubelet").is_err(), "a folder is no file");
}

#[test]
fn no_link_and_no_linked_folder_of_a_disk_leads_out_of_it() {
    let (folder, root) = disk();
    let host = folder.path().join("host");
    symlink("../../../../../../host/secret", root.at("/etc/hosts")).unwrap();
    symlink("../../host", root.at("/etc/sysconfig")).unwrap();
    symlink("../../../../host/log", root.at("/var/lib/kubelet/out")).unwrap();
    symlink(&host, root.at("/etc/cni")).unwrap();
    fs::create_dir(root.at("/etc/rancher")).unwrap();
    symlink("../../../host", root.at("/etc/rancher/k3s")).unwrap();
    for path in [
        "/etc/hosts",
        "/etc/sysconfig/secret",
        "/etc/cni/secret",
        "/etc/rancher/k3s/secret",
        "/var/lib/kubelet/out/syslog",
        "/../host/secret",
        "/etc/../../host/secret",
        "../host/secret",
    ] {
        let read = root.text(path);
        assert!(!matches!(&read, Ok(Some(text)) if text.contains(OUTSIDE)), "{path}: {read:?}");
        assert!(!root.has(path) || path == "/etc/hosts", "{path} is seen");
    }
    for path in ["/etc/sysconfig", "/etc/cni", "/etc/rancher/k3s", "/var/lib/kubelet/out", "/../host"] {
        assert!(!matches!(root.names(path), Ok(Some(_))), "{path} is listed");
    }
}

#[tokio::test]
async fn no_log_of_a_disk_is_read_from_outside_of_it() {
    let (folder, root) = disk();
    symlink("../../../host/log/syslog", root.at("/var/log/syslog")).unwrap();
    fs::create_dir_all(root.at("/var/lib/rancher/rke2/agent")).unwrap();
    symlink("../../../../../../host/log/pods", root.at("/var/lib/rancher/rke2/agent/logs")).unwrap();
    symlink(folder.path().join("host/secret"), root.at("/var/log/messages")).unwrap();
    fs::write(root.at("/var/log/k3s.log"), "of the disk\n").unwrap();
    let logs = Probe::of_folder(root).logs(&[]).await;
    assert!(logs.iter().any(|log| log.text.contains("of the disk")), "{logs:?}");
    assert!(!format!("{logs:?}").contains(OUTSIDE), "{logs:?}");
}

#[test]
fn disk_reader_waits_for_no_pipe_and_opens_no_device() {
    let (_folder, root) = disk();
    for path in ["/etc/hosts", "/etc/kubernetes/kubelet.conf", "/var/log/syslog"] {
        fifo(&root.at(path));
        let (own, at) = (root.clone(), path.to_owned());
        let read = in_time(move || own.text(at));
        assert!(read.is_err(), "{path}: {read:?}");
        assert!(root.has(path));
    }
    let own = root.clone();
    let logs = in_time(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let logs = runtime.block_on(Probe::of_folder(own).logs(&[]));
        // The thread that reads ends with the runtime, or this call hangs.
        drop(runtime);
        logs
    });
    let syslog = logs.iter().find(|log| log.name == "/var/log/syslog");
    assert!(syslog.is_some_and(|log| log.note.is_some()), "it is said that it was not read: {logs:?}");
    symlink("/dev/zero", root.at("/etc/fstab")).unwrap();
    assert_eq!(root.text("/etc/fstab").unwrap(), None, "the device is the host's");
}

/// The results of the kernel's call and of the walk by hand, for one path.
fn both(root: &Root, path: &str, flags: OFlags) -> [Result<(u64, u32), Option<i32>>; 2] {
    let folder = OFlags::PATH | OFlags::DIRECTORY;
    let root = rustix::fs::open(&root.0, folder, Mode::empty()).unwrap();
    [resolve::open, resolve::by_hand].map(|open| {
        let found = open(&root, Path::new(path), flags).map_err(|error| error.raw_os_error())?;
        let stat = fstat(&found).unwrap();
        Ok((stat.st_ino, stat.st_mode))
    })
}

#[test]
fn paths_resolve_alike_without_kernel_support() {
    let (_folder, root) = disk();
    fs::write(root.at("/etc/one"), "one").unwrap();
    for (to, name) in [
        ("one", "/etc/beside"),
        ("/etc/one", "/etc/absolute"),
        ("beside", "/etc/twice"),
        ("round", "/etc/round"),
        ("/nowhere", "/etc/dangling"),
        ("../../../host", "/etc/out"),
        ("/var/lib/kubelet", "/etc/folder"),
        ("../../../etc", "/var/lib/kubelet/up"),
        ("/", "/etc/top"),
        ("/proc/self/root", "/etc/magic"),
    ] {
        symlink(to, root.at(name)).unwrap();
    }
    let paths = [
        "/",
        "",
        ".",
        "/etc",
        "/etc/",
        "/etc/one",
        "etc/one",
        "/etc/./one",
        "/etc/beside",
        "/etc/absolute",
        "/etc/twice",
        "/etc/round",
        "/etc/dangling",
        "/etc/out",
        "/etc/out/secret",
        "/etc/folder",
        "/etc/folder/pki",
        "/var/lib/kubelet/up/one",
        "/etc/top/etc/one",
        "/etc/top",
        "/etc/magic",
        "/..",
        "/../../etc/one",
        "/etc/../etc/one",
        "/etc/folder/../one",
        "/etc/folder/../kubelet",
        "/etc/one/x",
        "/etc/one/..",
        "/gone/x",
        "/gone",
    ];
    let flags =
        [OFlags::PATH, OFlags::PATH | OFlags::NOFOLLOW, OFlags::PATH | OFlags::DIRECTORY, OFlags::RDONLY];
    for path in paths {
        for flags in flags {
            let [kernels, by_hand] = both(&root, path, flags);
            assert_eq!(kernels, by_hand, "{path:?} {flags:?}");
        }
    }
}

#[test]
fn sockets_links_and_folders_are_resolved_within_the_root() {
    let (folder, root) = disk();
    let host = folder.path().join("host");
    let socket = std::os::unix::net::UnixListener::bind(host.join("containerd.sock")).unwrap();
    symlink("../../../host", root.at("/var/run")).unwrap();
    assert!(root.hold("/var/run/containerd.sock").is_err(), "the socket is the host's");
    symlink("inside", host.join("link")).unwrap();
    assert_eq!(root.link("/var/run/link"), None);
    assert!(root.links("/var/run").is_empty());
    assert!(matches!(root.folder("/var/run"), Ok(None)));
    assert!(!root.is_seen("/var/run/secret"));
    drop(socket);
    symlink("/var/lib", root.at("/lib")).unwrap();
    assert_eq!(root.link("/lib"), Some(PathBuf::from("/var/lib")));
    assert_eq!(root.links("/"), [PathBuf::from("/var/lib")]);
    assert!(matches!(root.folder("/lib/kubelet"), Ok(Some(_))));
}

#[test]
fn named_path_must_be_regular_file_and_never_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, file, link) =
        (folder.path().join("pipe"), folder.path().join("file"), folder.path().join("link"));
    fifo(&pipe);
    fs::write(&file, "text").unwrap();
    symlink(&file, &link).unwrap();
    assert!(in_time(move || named(&pipe)).is_err());
    assert!(named(Path::new("/dev/zero")).is_err() && named(folder.path()).is_err());
    assert_eq!(text_of(named(&link).unwrap()).unwrap(), "text");
    assert_eq!(named(&folder.path().join("gone")).unwrap_err().kind(), io::ErrorKind::NotFound);
}
