//! What runs inside a real node: commands in its namespaces, and `reveille join` as a person there would type it.
//!
//! A node is a containerd, a kubelet under a supervisor, and paths of its own; see the rig. Its files are seen from outside
//! below the rig's state. Programs in it are found by the mark that the rig gives them and are ended by their id.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reveille_wire::report::{Document, JoinEnded, JoinReport, Report};

use crate::process::{self, Background, Ended};
use crate::rig::Rig;

/// A join that is longer under way than this is a failure of the scenario.
const JOIN_WITHIN: Duration = Duration::from_secs(280);

/// A real node of a rig.
pub struct Node<'r> {
    rig: &'r Rig,
    reveille: &'r Path,
    name: String,
}

/// A join that ended.
#[derive(Debug)]
pub struct Joined {
    /// Its exit code.
    pub code: Option<i32>,
    /// What it printed.
    pub report: JoinReport,
}

impl<'r> Node<'r> {
    /// Brings a node up on which nothing has joined.
    ///
    /// # Errors
    /// [`crate::NotRun`] when the machine allows no real nodes.
    pub fn up(rig: &'r Rig, reveille: &'r Path, name: &str) -> Result<Self> {
        rig.real_node(&["node", "up", name, "--no-join"])?;
        Ok(Self::of(rig, reveille, name))
    }

    /// A node that is up already.
    pub fn of(rig: &'r Rig, reveille: &'r Path, name: &str) -> Self {
        Self { rig, reveille, name: name.to_owned() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A file of its own folder, as it is seen from outside: `join.yaml`, `etc-kubernetes/kubelet.conf`.
    pub fn file(&self, path: &str) -> PathBuf {
        self.rig.state().join("nodes").join(&self.name).join(path)
    }

    /// Changes its `join.yaml`.
    ///
    /// # Errors
    /// The text to replace is not in it.
    pub fn edit(&self, from: &str, to: &str) -> Result<()> {
        let path = self.file("join.yaml");
        let text = fs::read_to_string(&path)?;
        ensure!(text.contains(from), "join.yaml has no {from}");
        fs::write(&path, text.replace(from, to)).context("cannot change join.yaml")
    }

    /// The token in its `join.yaml`.
    ///
    /// # Errors
    /// There is none.
    pub fn token(&self) -> Result<String> {
        let text = fs::read_to_string(self.file("join.yaml"))?;
        let behind = text.split("token: \"").nth(1).context("join.yaml has no token")?;
        behind.split('"').next().map(str::to_owned).context("join.yaml has no token")
    }

    /// The port that the rig reserved for its kubelet.
    ///
    /// # Errors
    /// The rig wrote none down.
    pub fn kubelet_port(&self) -> Result<String> {
        let ports = fs::read_to_string(self.file("ports"))?;
        let port = ports.lines().find_map(|line| line.strip_prefix("KUBELET_PORT="));
        port.map(str::to_owned).context("no port")
    }

    /// A command inside it.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(Rig::program());
        command.args(["node", "exec", &self.name]).args(words).env("RIG_NAME", self.rig.name());
        command
    }

    /// Runs a command inside it to its end.
    ///
    /// # Errors
    /// It does not end in time.
    pub fn run(&self, words: &[&str]) -> Result<Ended> {
        process::run(self.command(words), None, JOIN_WITHIN)
    }

    /// `reveille join` inside it, as its configuration says.
    pub fn join_command(&self, arguments: &[&str]) -> Command {
        let config = self.file("join.yaml").display().to_string();
        let memory = self.file("agent").display().to_string();
        let program = self.reveille.display().to_string();
        let words = [program.as_str(), "join", "--config", &config, "--memory", &memory, "--output", "json"];
        // It ends before it is killed, so that it can say what stood against it.
        let within: &[&str] = if arguments.contains(&"--within") { &[] } else { &["--within", "4m"] };
        self.command(&[&words[..], within, arguments].concat())
    }

    /// Joins, as its configuration says, to the end.
    ///
    /// # Errors
    /// It does not end in time, or prints no report.
    pub fn join(&self, arguments: &[&str]) -> Result<Joined> {
        let ended = process::run(self.join_command(arguments), None, JOIN_WITHIN)?;
        let document: Document = serde_json::from_str(&ended.stdout)
            .with_context(|| format!("no report: {} {}", ended.stdout, ended.stderr))?;
        let Report::JoinReport(report) = document.report else { bail!("another report: {}", ended.stdout) };
        Ok(Joined { code: ended.code, report })
    }

    /// Joins while something goes on beside it.
    ///
    /// # Errors
    /// What [`Self::join`] says, or whatever goes on.
    pub fn join_beside(
        &self,
        arguments: &[&str],
        beside: impl FnOnce() -> Result<()> + Send,
    ) -> Result<Joined> {
        std::thread::scope(|scope| {
            let goes_on = scope.spawn(beside);
            let joined = self.join(arguments)?;
            goes_on.join().unwrap_or_else(|_| bail!("it panicked"))?;
            Ok(joined)
        })
    }

    /// Begins a join and leaves it running.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn begin_join(&self, arguments: &[&str]) -> Result<Background> {
        let mut command = self.join_command(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Background::start(command)
    }

    /// Kills (SIGKILL) the programs of these names inside it; how many there were.
    ///
    /// # Errors
    /// The processes cannot be listed.
    pub fn kill(&self, programs: &[&str]) -> Result<usize> {
        let processes = self.processes(programs)?;
        for id in &processes {
            Command::new("kill").args(["-KILL", &id.to_string()]).stderr(Stdio::null()).status()?;
        }
        Ok(processes.len())
    }

    /// The program of this name inside it.
    ///
    /// # Errors
    /// The processes cannot be listed.
    pub fn process(&self, program: &str) -> Result<Option<u32>> {
        Ok(self.processes(&[program])?.first().copied())
    }

    fn processes(&self, programs: &[&str]) -> Result<Vec<u32>> {
        let mark = format!("RIG_NODE={}", self.name);
        let state = format!("REVEILLE_RIG_PROCESS={}", self.rig.state().display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let folder = entry?.path();
            let id = folder.file_name().and_then(|id| id.to_str()).and_then(|id| id.parse().ok());
            let Some(id) = id else { continue };
            let Ok(name) = fs::read_to_string(folder.join("comm")) else { continue };
            let Ok(environment) = fs::read(folder.join("environ")) else { continue };
            let has = |text: &str| environment.split(|byte| *byte == 0).any(|line| line == text.as_bytes());
            if programs.contains(&name.trim()) && has(&mark) && has(&state) {
                found.push(id);
            }
        }
        Ok(found)
    }

    /// Takes it down, and its Node object with it.
    ///
    /// # Errors
    /// The rig refuses.
    pub fn down(self) -> Result<()> {
        self.rig.run(&["node", "down", &self.name, "--forget"]).map(drop)
    }
}

impl Joined {
    /// It ended so, with the exit code of that.
    ///
    /// # Errors
    /// It ended otherwise; with all that it said.
    pub fn ensure(&self, ended: JoinEnded) -> Result<()> {
        let code = match ended {
            JoinEnded::Joined => 0,
            JoinEnded::LeftAlone | JoinEnded::Stranger | JoinEnded::GaveUp => 1,
            JoinEnded::Late => 2,
        };
        ensure!(self.report.ended == ended && self.code == Some(code), "{:?} {:?}", self.code, self.report);
        Ok(())
    }

    /// Something that it said holds this.
    ///
    /// # Errors
    /// Nothing does; with all that it said.
    pub fn says(&self, text: &str) -> Result<()> {
        let said = self.report.events.iter().map(|event| &event.text).chain(&self.report.why);
        ensure!(said.clone().any(|said| said.contains(text)), "nothing says {text:?}: {:?}", self.report);
        Ok(())
    }

    /// Nothing that it said holds this.
    ///
    /// # Errors
    /// Something does.
    pub fn never_says(&self, text: &str) -> Result<()> {
        let whole = format!("{:?}", self.report);
        ensure!(!whole.contains(text), "it says {text:?}: {whole}");
        Ok(())
    }
}
