//! The log: lines on standard error, for people or for programs.
//!
//! `run` logs from INFO and the reading commands from ERROR, unless `REVEILLE_LOG` says otherwise (the usual filter
//! syntax: `debug`, `reveille_openstack=debug`). Standard output belongs to answers and never carries a log line.

use std::io::IsTerminal;

use tracing::Subscriber;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry};

use super::{Color, LogFormat, log_text};

/// Environment variable with the filter.
const FILTER: &str = "REVEILLE_LOG";

/// Starts logging. Called once, before anything else happens; later calls change nothing.
pub(crate) fn start(least: LevelFilter, format: LogFormat, color: Color) {
    let wanted = std::env::var(FILTER).ok().filter(|wanted| !wanted.trim().is_empty());
    // A call is logged once, by its record, and a failed request once, by the adapter that knows its purpose. Other
    // messages of the lower layers are only for debugging.
    let wanted =
        wanted.unwrap_or_else(|| format!("{least},reveille_openstack::act=warn,kube=off,kube_client=off"));
    let filter = EnvFilter::new(wanted);
    // A second start (tests in one process) is no error: the first configuration stays.
    let started = match format {
        LogFormat::Json => json(std::io::stderr).with(filter).try_init(),
        LogFormat::Text => {
            let ansi = match color {
                Color::Always => true,
                Color::Never => false,
                Color::Auto => std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            };
            text(std::io::stderr, ansi).with(filter).try_init()
        }
    };
    drop(started);
}

/// Lines for people.
pub(crate) fn text<W>(writer: W, ansi: bool) -> impl Subscriber + for<'span> LookupSpan<'span> + Send + Sync
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_timer(SystemTime);
    Registry::default().with(lines.with_ansi(ansi).with_target(false).fmt_fields(log_text::fields()))
}

/// Lines for programs.
pub(crate) fn json<W>(writer: W) -> impl Subscriber + for<'span> LookupSpan<'span> + Send + Sync
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(log_text::JsonLines(writer));
    let lines = lines.with_timer(SystemTime).json().flatten_event(true).with_current_span(false);
    Registry::default().with(lines)
}
