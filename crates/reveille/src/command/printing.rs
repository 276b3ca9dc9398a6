//! Every report that a command answers with, as text in the format of the command line, and its exit code.
//!
//! ```text
//!  Report ─▶ its page from `render`, or JSON, or YAML ─▶ text
//!         └▶ what it says of the machines ─▶ exit code
//! ```
//!
//! The list of reports is closed: a new one does not compile before it has a page and an exit code.

use reveille_wire::report::{Answers, MachineReport, Report};

use super::{Context, collect};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::render;
use crate::view::{incidents, plan, status};

/// A report as text, and its exit code.
pub(crate) fn print(context: &Context, report: Report, all: bool) -> Result<(String, Exit), Failure> {
    let exit = match &report {
        Report::StatusReport(status) => status::exit(status),
        Report::PlanReport(plan) => plan::exit(plan),
        Report::IncidentsReport(incidents) => incidents::exit(incidents),
        Report::WhyReport(why) => why_exit(&why.machine),
        Report::CollectedReport(_) => Exit::NoProblem,
        Report::HotReport(hot) => render::hot::exit(hot),
        Report::JoinReport(join) => render::join::exit(join),
        Report::DoctorReport(doctor) => render::doctor::exit(doctor),
        Report::RancherReport(rancher) => render::rancher::exit(rancher),
        Report::RancherRepairReport(repair) => render::repairs::repair_exit(repair),
        Report::RancherAbandonReport(abandoned) => render::repairs::abandon_exit(abandoned),
    };
    let page = report.clone();
    let text = context.print(report, move |paper| match &page {
        Report::StatusReport(status) => render::status::page(status, all, paper),
        Report::PlanReport(plan) => render::plan::page(plan, paper),
        Report::IncidentsReport(incidents) => render::incidents::page(incidents, all, paper),
        Report::WhyReport(why) => render::why::page(why, paper),
        Report::CollectedReport(collected) => collect::page(collected),
        Report::HotReport(hot) => render::hot::page(hot, paper),
        Report::JoinReport(join) => render::join::page(join),
        Report::DoctorReport(doctor) => render::doctor::page(doctor, paper),
        Report::RancherReport(rancher) => render::rancher::page(rancher, paper),
        Report::RancherRepairReport(repair) => render::repairs::repair_page(repair, paper),
        Report::RancherAbandonReport(abandoned) => render::repairs::abandon_page(abandoned, paper),
    })?;
    Ok((text, exit))
}

fn why_exit(machine: &MachineReport) -> Exit {
    match machine.answers {
        Answers::No => Exit::Problems,
        Answers::Unknown => Exit::CannotTell,
        Answers::Excused | Answers::Yes => Exit::NoProblem,
    }
}
