//! The shipped program on a quiet fleet: `reveille run` in release, against a cluster and a project behind real HTTP.
//!
//! ```text
//!  this process: cluster service, cloud service ◀── HTTP, 127.0.0.1 ──▶ reveille run, a process of its own
//!       └──────────── /proc/PID: memory, processor time ── size of its ledger, before and after ──┘
//! ```
//!
//! It is given time to take everything in, then looked at for a while from outside. At the end it is asked for the status: only
//! a run in which every machine answers counts. What is measured is the whole program, with adapters, ledger and TLS code.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::http_service::HttpService;
use super::{cloud_service, cluster_service};

/// From the first complete reading on, until caches are warm and full listings have come and gone.
const SETTLE: Duration = Duration::from_secs(75);
/// How long it is looked at. Full listings come ten times as often as by default, so that some fall into it.
const WINDOW: Duration = Duration::from_secs(120);
const FULL_PERIOD: &str = "60s";
/// Its first reading of everything must be done by then.
const START_WITHIN: Duration = Duration::from_secs(120);
/// The kernel's unit of processor time in /proc/PID/stat (USER_HZ), on every Linux that Rust runs on.
const TICKS_PER_S: f64 = 100.0;

/// Measures at this size; memory beside its limit.
pub(crate) fn quiet(machines: usize, limit_mb: f64) -> Result<(), Box<dyn Error>> {
    println!(
        "the whole program, `reveille run`, on a quiet fleet of {machines} (looked at for {} s)",
        WINDOW.as_secs()
    );
    let program = program()?;
    let (cloud, cluster) = (cloud_service::start(machines)?, cluster_service::start(machines)?);
    let place = Place::new(machines)?;
    place.write_files(&cloud, &cluster)?;
    let mut run = Run::start(&program, &place)?;
    run.wait_for_joined(&place)?;
    std::thread::sleep(SETTLE);
    let (ledger, cpu) = (place.ledger_bytes()?, run.cpu()?);
    cloud.take_counts();
    cluster.take_counts();
    let begun = Instant::now();
    std::thread::sleep(WINDOW);
    let spent = run.cpu()?.saturating_sub(cpu);
    let share = spent.as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0;
    let written = place.ledger_bytes()?.abs_diff(ledger);
    let (asked, sent) = cluster.take_counts();
    let (listed, listed_bytes) = cloud.take_counts();
    let memory = run.memory()?;
    println!(
        "  memory      {:6.1} MB now, {:6.1} MB at most (target: at most {limit_mb:.0} MB)",
        memory.now_mb, memory.most_mb
    );
    println!("  processor   {share:6.2} % of a core        (target: below 1 %)");
    println!("  ledger      {written:6} bytes written      (target: none)");
    println!(
        "  it read     {:6.1} MB in {} answers of the cluster, {:.1} MB in {} of the cloud",
        sent as f64 / 1e6,
        asked,
        listed_bytes as f64 / 1e6,
        listed
    );
    place.everybody_answers(&program)?;
    println!("  and at the end all {machines} machines are Ready\n");
    Ok(())
}

/// The release build of the program stands beside this one.
pub(crate) fn program() -> Result<PathBuf, Box<dyn Error>> {
    let program = std::env::current_exe()?.with_file_name("reveille");
    if program.is_file() {
        return Ok(program);
    }
    Err(format!("{} is missing; build it: cargo build --release -p reveille", program.display()).into())
}

/// A folder for one run; removed at its end.
struct Place(PathBuf);

impl Place {
    fn new(machines: usize) -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("reveille-bench-{}-{machines}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write_files(&self, cloud: &HttpService, cluster: &HttpService) -> std::io::Result<()> {
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: bench\ncontexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]\nclusters: [{{name: bench, cluster: {{server: \"http://{}\"}}}}]\nusers: [{{name: bench, user: {{}}}}]\n",
            cluster.address
        );
        let clouds = format!(
            "clouds:\n  bench:\n    auth: {{auth_url: \"http://{}/v3\", username: bench, password: bench, user_domain_name: Default, project_name: bench, project_domain_id: default}}\n",
            cloud.address
        );
        let pool = |pool: usize| {
            format!(
                "    - name: pool{pool}\n      cloud: os\n      owned: {{tag: \"k8s-cluster=bench\", pool: \"k8s-pool=pool{pool}\"}}\n      securityGroups: [k8s-nodes]\n      repair: {{network: act, rejoin: act, reboot: act, replace: act}}\n"
            )
        };
        let pools: String = (0..cloud_service::POOLS).map(pool).collect();
        let roster = format!(
            "apiVersion: reveille.dev/v1alpha1\nkind: Roster\nmetadata: {{name: bench}}\nspec:\n  cluster: {{kubeconfig: kubeconfig}}\n  clouds: [{{name: os, openstack: {{cloud: bench, cloudsFile: clouds.yaml}}}}]\n  pools:\n{pools}  timing: {{cloudFullPeriod: {FULL_PERIOD}}}\n"
        );
        fs::write(self.file("kubeconfig"), kubeconfig)?;
        fs::write(self.file("clouds.yaml"), clouds)?;
        fs::write(self.file("reveille.yaml"), roster)
    }

    fn command(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.arg("--roster").arg(self.file("reveille.yaml")).arg("--state").arg(self.file("state"));
        command.args(words).stdin(Stdio::null());
        command
    }

    /// The size of what the ledger remembers. Its lock, in which a heartbeat is rewritten in place, is no record.
    fn ledger_bytes(&self) -> std::io::Result<u64> {
        let mut bytes = 0;
        for entry in fs::read_dir(self.file("state/bench/ledger"))? {
            let entry = entry?;
            if entry.file_name() != "lock" {
                bytes += entry.metadata()?.len();
            }
        }
        Ok(bytes)
    }

    fn everybody_answers(&self, program: &Path) -> Result<(), Box<dyn Error>> {
        let status = self.command(program, &["status"]).output()?;
        if status.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&status.stdout).lines().take(5).collect::<Vec<_>>().join("\n");
        Err(format!("not every machine is Ready ({}):\n{said}", status.status).into())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed is the temporary folder's business.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The program, running; ended when this is dropped.
struct Run {
    child: Child,
    log: PathBuf,
}

struct Memory {
    now_mb: f64,
    most_mb: f64,
}

impl Run {
    fn start(program: &Path, place: &Place) -> std::io::Result<Self> {
        let log = place.file("run.log");
        let mut command = place.command(program, &["run"]);
        command.stdout(File::create(place.file("run.out"))?).stderr(File::create(&log)?);
        Ok(Self { child: command.spawn()?, log })
    }

    /// It has seen every machine with its node as soon as its ledger says so.
    fn wait_for_joined(&mut self, place: &Place) -> Result<(), Box<dyn Error>> {
        let deadline = Instant::now() + START_WITHIN;
        while place.ledger_bytes().unwrap_or(0) < 10_000 {
            if Instant::now() > deadline || self.child.try_wait()?.is_some() {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(10).collect();
                return Err(
                    format!("it did not take in the fleet; its log ends:\n{}", tail.join("\n")).into()
                );
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    fn proc_file(&self, name: &str) -> std::io::Result<String> {
        fs::read_to_string(format!("/proc/{}/{name}", self.child.id()))
    }

    /// Processor time of all its threads, in the kernel and out of it.
    fn cpu(&self) -> Result<Duration, Box<dyn Error>> {
        let stat = self.proc_file("stat")?;
        // The name stands in parentheses and may hold anything; user and system time are the 14th and 15th field.
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().skip(11).take(2);
        let ticks: f64 = fields.filter_map(|field| field.parse::<f64>().ok()).sum();
        Ok(Duration::from_secs_f64(ticks / TICKS_PER_S))
    }

    fn memory(&self) -> Result<Memory, Box<dyn Error>> {
        let status = self.proc_file("status")?;
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            let kib = line.split_whitespace().find_map(|kib| kib.parse::<f64>().ok()).unwrap_or(f64::NAN);
            kib * 1024.0 / 1e6
        };
        Ok(Memory { now_mb: of("VmRSS"), most_mb: of("VmHWM") })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // It may have ended by itself; its ledger is made for being killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
