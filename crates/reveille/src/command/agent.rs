//! `agent`: runs the agent of this machine and logs its events. Nothing is decided here.

use std::path::Path;

use anyhow::anyhow;
use reveille_agent::{Report, Settings};
use reveille_core::model::time::{Span, Time};
use reveille_node::agent::{self, AgentError, Heard, LogEvent, Setup};
use reveille_node::driver::Said;
use reveille_node::identity::Identity;
use reveille_node::join;
use reveille_node::link::{Keyring, Link, LinkError};
use reveille_node::pin::Pin;
use reveille_node::pins::Pins;
use reveille_node::private;
use reveille_node::probe::Metadata;
use reveille_node::root::Root;
use reveille_node::target::Endpoint;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Facts, Secret};

use crate::cli::agent::Agent;
use crate::cli::failure::Failure;

use super::Answer;

/// `agent`.
pub(super) async fn agent(args: &Agent) -> Result<Answer, Failure> {
    let root = Root::default();
    let setup = Setup {
        link: link(args)?,
        invitation: invitation(args)?,
        instance_id: args.instance_id.clone().or_else(|| instance_id(&root)),
        facts: facts(&root, args.zone.as_deref()),
        settings: settings(args.stay),
        metadata: Metadata::of_environment(),
        folder: args.folder.clone(),
        peer_listen: args.peer_listen,
        root,
    };
    let ended = agent::run(setup, |_: Time, event| log(&event)).await;
    match ended {
        Ok(()) => Ok(Answer::fine(String::new())),
        Err(failure @ AgentError::NotEnrolled) => Err(Failure::usage(failure)),
        Err(AgentError::Refused(LinkError::Refused(refused))) => {
            let next = refused.next.to_string();
            Err(Failure::cannot_tell(AgentError::Refused(LinkError::Refused(refused))).next(next))
        }
        Err(failure) => Err(Failure::cannot_tell(failure)),
    }
}

/// The settings of `join`, but with checks at the slower pace of a machine that has joined.
fn settings(stay_s: u32) -> Settings {
    Settings {
        check_every: Span::from_s(15),
        inspect_every: Span::from_s(10),
        backoff_max: Span::from_min(15),
        ..join::settings(Span::from_s(i64::from(stay_s)))
    }
}

fn link(args: &Agent) -> Result<Option<Link>, Failure> {
    let Some(server) = &args.server else { return Ok(None) };
    let refused = |failure: reveille_node::target::TargetError| {
        let write = failure.write.clone();
        Failure::usage(failure).next(format!("write {write}"))
    };
    let server = Endpoint::parse("--server", server).map_err(refused)?;
    let pins: Result<Vec<Pin>, _> = args.ca_pin.iter().map(|pin| pin.parse()).collect();
    let pins = pins.and_then(Pins::new).map_err(Failure::usage)?;
    Ok(Some(Link { server, pins }))
}

fn invitation(args: &Agent) -> Result<Option<Secret>, Failure> {
    let is_enrolled = matches!(Keyring::open(&args.folder.join(private::KEYS)), Ok(Some(_)));
    if is_enrolled && args.server.is_some() {
        tracing::info!(
            "this machine is enrolled ({}): server, pins and token of the command line are used when its certificate counts no \
             more. For another server or authority, stop the agent, remove that folder, and run what \"reveille invite\" prints",
            args.folder.join(private::KEYS).display()
        );
    }
    let Some(path) = &args.token_file else { return Ok(None) };
    let failed = |error: std::io::Error| {
        Failure::usage(anyhow!(error).context(format!("cannot read {}", path.display())))
    };
    match private::token_file(path) {
        Ok(text) => Ok(Some(Secret::new(text.trim()))),
        // The token was used, and a configuration tool removed the file. Or the file is unreadable, and the enrolled
        // machine no longer needs it.
        Err(error) if is_enrolled => {
            if error.kind() != std::io::ErrorKind::NotFound {
                tracing::warn!(
                    "{} is not read, and not needed while this machine is enrolled: {error}; remove it",
                    path.display()
                );
            }
            Ok(None)
        }
        Err(error) => {
            Err(failed(error).next("this machine is not enrolled: make a token with \"reveille invite\""))
        }
    }
}

/// The instance id from cloud-init: on OpenStack the server's id, on EC2 the instance's. Its own default, for a machine
/// without a cloud, identifies no machine.
fn instance_id(root: &Root) -> Option<String> {
    let text = root.text("/var/lib/cloud/data/instance-id").ok().flatten()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty() && !id.starts_with("iid-"))
}

/// What the machine reports about itself beside its identity.
fn facts(root: &Root, zone: Option<&str>) -> Facts {
    let line = |path: &str| {
        let text = root.text(Path::new(path)).ok().flatten().unwrap_or_default();
        Word::cut(text.trim())
    };
    let release = root.text("/etc/os-release").ok().flatten().unwrap_or_default();
    let os = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or_default();
    Facts {
        hostname: Word::cut(&Identity::read(root).host_name.unwrap_or_default()),
        addresses: Default::default(),
        os: Word::cut(os.trim_matches('"')),
        kernel: line("/proc/sys/kernel/osrelease"),
        arch: Word::cut(std::env::consts::ARCH),
        zone: zone.map(Word::cut),
        agent: Word::cut(env!("CARGO_PKG_VERSION")),
        answers_at: None,
    }
}

fn log(event: &LogEvent<'_>) {
    match event {
        LogEvent::Link(Heard::Up { carrier, session }) => {
            tracing::info!("linked to the registration server ({carrier:?}, session {session})");
        }
        LogEvent::Link(Heard::Down(why)) => tracing::warn!("the registration server is away: {why}"),
        LogEvent::Link(Heard::Plan(plan)) => {
            tracing::info!("plan {} of {} steps", plan.version, plan.steps.len())
        }
        LogEvent::Link(Heard::Token(_)) => tracing::info!("a bootstrap token came"),
        LogEvent::Link(Heard::Order(order)) => tracing::info!("asked to {}", order.verb.name()),
        LogEvent::Link(Heard::Wait(refused)) => tracing::info!("waits: {refused}"),
        LogEvent::Link(Heard::Removed) => tracing::warn!("the server says that this machine was removed"),
        LogEvent::Link(Heard::Peers(peers)) => tracing::debug!("{} peers", peers.len()),
        // This process never reboots its machine, so these reports are not logged.
        LogEvent::Machine(Said::Report(Report::CanReboot | Report::CannotReboot(_))) => {}
        LogEvent::Machine(Said::Report(report)) => tracing::info!("{report}"),
        LogEvent::Machine(Said::Undone(_, why) | Said::MemoryFailed(why)) => tracing::warn!("{why}"),
        LogEvent::Machine(Said::Line(line)) => tracing::debug!("{line}"),
        LogEvent::Machine(Said::Api(Some(unanswered))) => tracing::warn!("{}", unanswered.why),
        LogEvent::Machine(Said::Api(None) | Said::Found(_) | Said::Account(_)) => {}
        LogEvent::Stage(report) => {
            let why = report.error.as_ref().map(|error| format!(": {} {}", error.code, error.text));
            tracing::info!("stage {} {:?}{}", report.stage.0.name(), report.step, why.unwrap_or_default());
        }
        LogEvent::Plan(why) => tracing::warn!("the plan is not applied: {why}"),
    }
}
