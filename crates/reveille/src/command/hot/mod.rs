//! `hot`: watches for a while or without an end, or reads a log, and prints the objects that are written in a loop.
//!
//! ```text
//!  a cluster ─▶ crate::hot::query: watches, reads, counts ─▶ verdicts ─┐
//!  logs ──────▶ file: lines, counted ─▶ reveille_hot::files ─▶ verdicts ──┴▶ HotReport ─▶ page, JSON, YAML
//!                                  the machines of the objects ◀─ machines
//! ```
//!
//! Nothing is decided here: the detector says what is hot, and which pattern it has.

mod file;
mod machines;
mod printer;

use std::time::Duration;

use anyhow::Context as _;
use reveille_core::model::time::Span;
use reveille_hot::Settings;
use reveille_kube::{Cluster, ClusterConfig};
use reveille_wire::report::{HotReport, Report};

use super::{Answer, Context, printing};
use crate::cli::Output;
use crate::cli::failure::Failure;
use crate::cli::hot::Hot;
use crate::driver::clock::wall;
use crate::hot::query::{Begin, HotQuery};
use crate::view::hot as view;

use printer::Printer;

/// How long `hot` watches without `--for`, seconds: enough for two samples of the counts and for a rate.
const LOOK_S: u32 = 25;

/// The time between two samples of the counts, while `hot` runs on.
const COUNTS_EVERY: Duration = Duration::from_secs(30);

/// `hot`.
pub(super) async fn hot(context: &Context, args: &Hot) -> Result<Answer, Failure> {
    let report = if args.audit_log.is_empty() && args.klog.is_empty() {
        of_cluster(context, args).await?
    } else {
        of_files(args).await?
    };
    let (text, exit) = printing::print(context, Report::HotReport(Box::new(report)), false)?;
    // With `--watch` the command has printed the report already.
    let text = if args.watch { String::new() } else { text };
    Ok(Answer { text, exit })
}

async fn of_cluster(context: &Context, args: &Hot) -> Result<HotReport, Failure> {
    let cluster = connect(args).await?;
    let server = cluster.server().to_owned();
    let lasts = args.seconds.or((!args.watch).then_some(LOOK_S));
    let begin = Begin {
        settings: settings(args),
        kinds: args.kind.clone(),
        leaves_out_unknown: false,
        lasts: lasts.map(|seconds| Duration::from_secs(seconds.into())),
        is_short: !args.watch,
        counts_every: COUNTS_EVERY,
    };
    let mut printer = Printer { context, is_watch: args.watch, server: server.clone() };
    let query = HotQuery::open(cluster, begin, &mut printer).await?;
    announce(context, &server, query.kinds(), lasts);
    let interrupted = async {
        // Where no signal can arrive, the time limit ends the watch.
        drop(tokio::signal::ctrl_c().await);
    };
    let seen = query.run(interrupted).await;
    Ok(HotReport {
        at: wall(),
        server: Some(server),
        looked_s: seconds(wall().since(seen.began)),
        kinds: seen.kinds as u64,
        verdicts: seen.verdicts.iter().map(view::verdict).collect(),
        pressure: seen.pressure.as_ref().map(view::pressure),
        notes: seen.notes,
    })
}

fn announce(context: &Context, server: &str, kinds: usize, lasts: Option<u32>) {
    if context.common.output == Output::Table {
        let until =
            lasts.map_or_else(|| "until interrupted".to_owned(), |seconds| format!("for {seconds} s"));
        eprintln!("looks at {server}, {kinds} kinds, {until}");
    }
}

async fn connect(args: &Hot) -> Result<Cluster, Failure> {
    let config = ClusterConfig { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
    Cluster::connect(&config)
        .await
        .context("cannot look at the cluster")
        .map_err(|error| Failure::cannot_tell(error).next("name one with --kubeconfig and --context"))
}

fn settings(args: &Hot) -> Settings {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates are between 0.001 and 10000 a second"
    )]
    let milli = |rate: f64| (rate * 1000.0).round() as u32;
    Settings { sustained: milli(args.sustained), at_once: milli(args.at_once), ..Settings::default() }
}

/// Judges logs, and asks the cluster only for the machines, when it can be reached.
async fn of_files(args: &Hot) -> Result<HotReport, Failure> {
    let now = wall();
    let file::Read { mut verdicts, mut notes, kinds } = file::verdicts(args, now)?;
    if !args.offline && !verdicts.is_empty() {
        match connect(args).await {
            Ok(cluster) => notes.extend(machines::find(&cluster, &mut verdicts).await),
            Err(failure) => notes.push(format!("no cluster was asked for the machines: {failure}")),
        }
    }
    Ok(HotReport {
        at: now,
        server: None,
        looked_s: 0,
        kinds,
        verdicts: verdicts.iter().map(view::verdict).collect(),
        pressure: None,
        notes,
    })
}

/// Whole seconds.
fn seconds(span: Span) -> u64 {
    u64::try_from(span.ms / 1000).unwrap_or(0)
}
