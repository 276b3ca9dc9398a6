//! `invite --list` and `--machines`: prints what the registration server knows, as a table or for programs.
//!
//! ```text
//!  a page, and the next one after its last row, until there is no more ─▶ sorted ─▶ table, json, yaml
//! ```
//!
//! Valid invitations come first, because an operator looks for a leaked token among them. No row holds a secret.

use std::path::Path;

use anyhow::anyhow;
use reveille_core::model::time::Span;
use reveille_registrar::registry::Removal;
use reveille_registrar::server::admin::{Answer as Said, Ask};
use reveille_registrar::server::listing::{InvitationRow, InvitationState, MachineRow, Page, Signed};
use reveille_wire::agent::text::Word;
use serde::Serialize;

use super::Context;
use crate::cli::failure::Failure;
use crate::registration::asked;
use crate::render::output_style::{Paper, Tone};
use crate::render::table::{self, Text};

/// The most pages that the command asks for: the server does not keep as many rows.
const PAGES_MAX: usize = 1000;

#[derive(Serialize)]
struct Invitations {
    invitations: Vec<InvitationRow>,
}

/// All invitations.
pub(crate) async fn invitations(context: &Context, directory: &Path) -> Result<String, Failure> {
    let ask = |after| Ask::Invitations { after };
    let page = |said| match said {
        Said::Invitations(page) => Ok(page),
        other => Err(other),
    };
    let mut invitations = all(directory, ask, page, |row: &InvitationRow| row.id.clone()).await?;
    invitations.sort_by_key(|row| (row.state, row.expires_in_seconds));
    let told = Invitations { invitations };
    context.print_own(&told, || invitations_page(&told.invitations, &context.paper))
}

#[derive(Serialize)]
struct Machines {
    machines: Vec<MachineRow>,
}

/// All machines.
pub(crate) async fn machines(context: &Context, directory: &Path) -> Result<String, Failure> {
    let ask = |after| Ask::Machines { after };
    let page = |said| match said {
        Said::Machines(page) => Ok(page),
        other => Err(other),
    };
    let mut machines = all(directory, ask, page, |row: &MachineRow| row.machine.clone()).await?;
    machines.sort_by(|one, other| (&one.roster, &one.node_name).cmp(&(&other.roster, &other.node_name)));
    let told = Machines { machines };
    context.print_own(&told, || machines_page(&told.machines, &context.paper))
}

async fn all<Row: Clone>(
    directory: &Path,
    question: impl Fn(Option<Word>) -> Ask,
    page: impl Fn(Said) -> Result<Page<Row>, Said>,
    key: impl Fn(&Row) -> Word,
) -> Result<Vec<Row>, Failure> {
    let (mut rows, mut after) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let said = asked::ask(directory, &question(after.take()), "invite").await?;
        let Page { rows: some, more } = page(said).map_err(|other| match other {
            Said::Refused(why) => Failure::usage(anyhow!("the registration server refuses: {why}")),
            _ => Failure::internal(anyhow!("the registration server answered something else")),
        })?;
        after = some.last().map(&key);
        rows.extend(some.into_vec());
        if !more || after.is_none() {
            return Ok(rows);
        }
    }
    Err(Failure::internal(anyhow!("the registration server has no end of rows")))
}

fn head(columns: &[&str]) -> Vec<Text> {
    columns.iter().map(|column| Text::toned(Tone::Faint, *column)).collect()
}

fn invitations_page(invitations: &[InvitationRow], paper: &Paper) -> String {
    if invitations.is_empty() {
        return "There is no invitation.\n".to_owned();
    }
    let columns = ["ID", "STATE", "ROSTER", "POOL", "ROLES", "LEFT", "EXPIRES", "CONFLICTS", "FOR"];
    let mut rows = vec![head(&columns)];
    for row in invitations {
        let roles: Vec<_> = row.roles.iter().map(|role| role.name()).collect();
        let whom = row.machine.as_ref().map_or("any machine", Word::as_str);
        let rebuilt = if row.reimage { ", rebuilt" } else { "" };
        let expires = match row.expires_in_seconds {
            0 => "over".to_owned(),
            left => format!("in {}", Span::from_s(i64::try_from(left).unwrap_or(i64::MAX / 1000))),
        };
        let state =
            Text(row.state.name().to_owned(), (row.state != InvitationState::Open).then_some(Tone::Faint));
        rows.push(vec![
            Text::plain(row.id.as_str()),
            state,
            Text::plain(row.roster.as_str()),
            Text::plain(row.pool.as_str()),
            Text::plain(roles.join(",")),
            Text::plain(format!("{} of {}", row.uses_left, row.uses)),
            Text::plain(expires),
            Text::plain(row.conflicts.to_string()),
            Text::plain(format!("{whom}{rebuilt}")),
        ]);
    }
    table::lines(paper, 0, rows)
}

fn machines_page(machines: &[MachineRow], paper: &Paper) -> String {
    if machines.is_empty() {
        return "No machine is known. To invite one: reveille invite --pool NAME\n".to_owned();
    }
    let columns =
        ["NODE", "RECORD", "INSTANCE", "ROSTER/POOL", "HEARD", "CONNECTED", "CERTIFICATE", "REMOVED"];
    let mut rows = vec![head(&columns)];
    for row in machines {
        let removed = match row.removed {
            Some(Removal::Machine) => "removed",
            Some(Removal::Node) => "its Node",
            None if row.departed => "instance gone",
            None => "–",
        };
        let connected = if row.connected { Text::plain("yes") } else { Text::toned(Tone::Doubt, "no") };
        let tone = (row.certificate != Signed::Current).then_some(Tone::Doubt);
        rows.push(vec![
            Text::plain(row.node_name.as_str()),
            Text::plain(row.machine.as_str()),
            Text::plain(row.instance_id.as_ref().map_or("–", Word::as_str)),
            Text::plain(format!("{}/{}", row.roster, row.pool)),
            Text::plain(heard(row)),
            connected,
            Text(row.certificate.name().to_owned(), tone),
            Text::plain(removed),
        ]);
    }
    table::lines(paper, 0, rows)
}

/// When the server heard from the machine last. The server does not remember what was before its start.
pub(super) fn heard(row: &MachineRow) -> String {
    match row.last_heard_seconds {
        Some(ago) => format!("{} ago", Span::from_s(i64::try_from(ago).unwrap_or(i64::MAX / 1000))),
        None => "not since the server's start".to_owned(),
    }
}
