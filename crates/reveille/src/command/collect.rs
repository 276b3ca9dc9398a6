//! `collect`: requests a machine's evidence through the running server, and waits for the result.
//!
//! The order goes over the server's socket. Its result is a file in the server's state folder, for which the command
//! waits, so that an operator who stops the command loses nothing.

use std::time::Duration;

use anyhow::anyhow;
use reveille_registrar::server::admin::{Answer as Said, Ask};
use reveille_wire::agent::Verb;
use reveille_wire::agent::text::Word;
use reveille_wire::report::{CollectedReport, Report};
use tokio::time::{Instant, sleep};

use super::{Answer, Context};
use crate::cli::collect::Collect;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::registration::{self, asked, evidence};

/// The time between two reads of the folder.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The server reports a missing answer when the time is over; the report itself takes a tick and a disk write.
const GRACE: Duration = Duration::from_secs(10);

/// `collect`.
pub(crate) async fn collect(context: &Context, args: &Collect) -> Result<Answer, Failure> {
    let directory = registration::directory(context)?;
    let verb = if args.probe { Verb::Probe } else { Verb::CollectEvidence };
    let order = Ask::Order { machine: Word::cut(&args.machine), verb, within_s: args.within };
    let said = asked::ask(&directory, &order, "collect").await?;
    let order = match said {
        Said::Ordered(order) => order,
        Said::Refused(why) => return Err(Failure::usage(anyhow!("the registration server refuses: {why}"))),
        _ => return Err(Failure::internal(anyhow!("the registration server answered something else"))),
    };
    let until = Instant::now() + Duration::from_secs(args.within.into()) + GRACE;
    let folder = evidence::folder(&directory);
    loop {
        let kept = evidence::kept(&folder);
        if let Some(report) = kept.into_iter().rfind(|report| report.order == order) {
            let exit = if report.outcome == "done" { Exit::AllAnswer } else { Exit::CannotTell };
            let text = context.print(Report::CollectedReport(report.clone()), |_| page(&report))?;
            return Ok(Answer { text, exit });
        }
        if Instant::now() >= until {
            return Err(Failure::cannot_tell(anyhow!("nothing came within {} s", args.within))
                .next(format!("look later: reveille why {}", args.machine)));
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The page for people.
pub(crate) fn page(report: &CollectedReport) -> String {
    let node = crate::render::output_style::one_line(&report.node);
    let says = report.says.trim_end();
    match &report.file {
        Some(file) => format!(
            "{node}: {}, {} bytes\n  {file}\n  {}\nnext: reveille diagnose {file}\n",
            report.outcome,
            report.bytes.unwrap_or(0),
            says.replace('\n', "\n  ")
        ),
        None => format!("{node}: {}\n  {}\n", report.outcome, says.replace('\n', "\n  ")),
    }
}
