//! A folder with a roster, a kubeconfig and a clouds.yaml for servers that do not exist, and the binary in it.

use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The folder in which one test runs the binary.
pub(crate) struct Bench {
    folder: TempDir,
}

/// The result of a run.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A port without a listener.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::towards(closed_port())
    }

    /// A folder whose cluster and cloud are at a port of 127.0.0.1.
    pub(crate) fn towards(port: u16) -> Self {
        let folder = TempDir::new().unwrap();
        let bench = Self { folder };
        bench.write(
            "kubeconfig",
            &format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: nowhere\n\
                 clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n\
                 users: [{{name: u, user: {{}}}}]\n\
                 contexts: [{{name: nowhere, context: {{cluster: c, user: u}}}}]\n"
            ),
        );
        bench.write(
            "clouds.yaml",
            &format!(
                "clouds:\n  nowhere:\n    auth: {{auth_url: 'http://127.0.0.1:{port}/v3', username: u, \
                 password: hunter2-canary, project_name: p, user_domain_name: Default, project_domain_name: Default}}\n    \
                 region_name: R\n"
            ),
        );
        bench.write(
            "reveille.yaml",
            "apiVersion: reveille.dev/v1alpha1\nkind: Roster\nmetadata: {name: lost}\nspec:\n  \
             cluster: {kubeconfig: kubeconfig}\n  clouds:\n    - name: os\n      \
             openstack: {cloud: nowhere, cloudsFile: clouds.yaml}\n  pools:\n    - name: workers\n      cloud: os\n      \
             owned: {tag: k8s-cluster=lost}\n",
        );
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reveille"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("USER", "ann")
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Runs the binary with these additional variables.
    pub(crate) fn run_with(&self, env: &[(&str, &str)], args: &[&str]) -> Ran {
        Ran::of(self.command(args).envs(env.iter().copied()).output().unwrap())
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running(Some(self.command(args).spawn().unwrap()))
    }
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let ran = Self {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: text(output.stderr),
        };
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        assert!(!(ran.out.clone() + &ran.err).contains("hunter2"), "a password was printed");
        ran
    }
}

/// A process that ends with its test.
pub(crate) struct Running(Option<Child>);

impl Running {
    /// Closes our end of its standard output after the first bytes.
    pub(crate) fn read_a_little(&mut self) {
        let child = self.0.as_mut().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut first = [0_u8; 64];
        assert!(out.read(&mut first).unwrap() > 0);
    }

    /// Stops the process without ending it, as a machine without memory would.
    pub(crate) fn freeze(&self) {
        let id = self.0.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-STOP", &id]).status().unwrap().success());
    }

    /// Sends SIGTERM, and waits for the result.
    pub(crate) fn terminate(self) -> Ran {
        let id = self.0.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.wait()
    }

    /// Kills it without a warning, as a power cut would.
    pub(crate) fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn wait(mut self) -> Ran {
        let until = Instant::now() + Duration::from_secs(60);
        let mut child = self.0.take().unwrap();
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                child.kill().unwrap();
                panic!("it does not end");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ran::of(child.wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Waits until the condition holds, or fails.
pub(crate) fn until(what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !so() {
        assert!(Instant::now() < end, "never came about: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Every file below a folder, by its path from there.
pub(crate) fn files_below(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            found.extend(files_below(&path).into_iter().map(|below| format!("{name}/{below}")));
        } else {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found.sort();
    found
}
