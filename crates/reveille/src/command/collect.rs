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
use crate::cli::failure::{Failure, printable};
use crate::registration::{asked, evidence};
use crate::render::output_style::one_line;

/// The time between two reads of the folder.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The server reports a missing answer when the time is over; the report itself takes a tick and a disk write.
const GRACE: Duration = Duration::from_secs(10);

/// `collect`.
pub(crate) async fn collect(context: &Context, args: &Collect) -> Result<Answer, Failure> {
    let directory = context.registration_dir()?;
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
            let exit = if report.outcome == "done" { Exit::NoProblem } else { Exit::CannotTell };
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
    let node = one_line(&report.node);
    // The machine's own words: lines, and nothing that a terminal obeys.
    let says = printable(&report.says.trim_end().replace('\t', "    ")).replace('\n', "\n  ");
    match &report.file {
        Some(file) => format!(
            "{node}: {}, {} bytes\n  {file}\n  {says}\nnext: reveille diagnose {file}\n",
            report.outcome,
            report.bytes.unwrap_or(0),
        ),
        None => format!("{node}: {}\n  {says}\n", report.outcome),
    }
}

#[cfg(test)]
mod tests {
    use reveille_core::model::time::Time;

    use super::*;

    #[test]
    fn nothing_that_a_machine_says_is_obeyed_by_a_terminal() {
        for file in [None, Some("/state/1.tar.gz".to_owned())] {
            let report = CollectedReport {
                order: 1,
                at: Time::default(),
                machine: "m-1".to_owned(),
                node: "w-1\u{1b}[2J".to_owned(),
                instance: None,
                outcome: "done".to_owned(),
                says: "one\u{1b}]0;x\u{7}\r\u{202e}\ntwo\n".to_owned(),
                file,
                bytes: None,
                sha256: None,
            };
            let page = page(&report);
            assert!(!page.contains(['\u{1b}', '\u{7}', '\r', '\u{202e}']), "{page:?}");
            assert!(page.contains("  one") && page.contains("\n  two\n"), "{page:?}");
        }
    }
}
