//! `invite`: asks the running server for an invitation, and prints what to run on the machine.
//!
//! The command puts the token into a file that only root can read, by a here-document: every process of the machine sees
//! an argument, and every child sees a variable. The printed token is the only copy.

use std::fmt::Write as _;

use anyhow::anyhow;
use reveille_core::model::time::Span;
use reveille_registrar::registry::{Reimage, Removal};
use reveille_registrar::server::admin::{Answer as Said, Ask, Invited};
use reveille_registrar::server::listing::MachineRow;
use reveille_wire::agent::text::{Sentence, Word};
use serde_json::json;

use super::{Answer, Context, listed};
use crate::cli::Output;
use crate::cli::failure::Failure;
use crate::cli::invite::Invite;
use crate::registration::asked;

/// The file of the token on the machine.
const TOKEN_FILE: &str = "/etc/reveille/token";

/// `invite`.
pub(crate) async fn invite(context: &Context, args: &Invite) -> Result<Answer, Failure> {
    let directory = context.registration_dir()?;
    if args.list {
        return listed::invitations(context, &directory).await.map(Answer::fine);
    }
    if args.machines {
        return listed::machines(context, &directory).await.map(Answer::fine);
    }
    let said = asked::ask(&directory, &question(args)?, "invite").await?;
    let text = match said {
        Said::Invited(invited) => print(context, args, &invited)?,
        Said::Removed(machine) => removed(args, &machine),
        Said::Pins(pins) => {
            let mut text = "The server is known by\n".to_owned();
            for pin in pins.iter() {
                // Writing into a String never fails.
                let _ = writeln!(text, "  {pin}");
            }
            text.push_str(if pins.len() > 1 {
                "Agents that are there learn of the new one now. When all were, retire the old one: reveille invite --finish-rotation\n"
            } else {
                "Machines that did not come in between know the old one alone, and have to be invited again.\n"
            });
            text
        }
        Said::Revoked { count, let_in } => revoked(args, count, &let_in),
        Said::Late { count, machines } => return Err(late(count, &machines)),
        Said::Ordered(_) | Said::Invitations(_) | Said::Machines(_) => {
            return Err(Failure::internal(anyhow!("the registration server answered something else")));
        }
        Said::Refused(why) => return Err(Failure::usage(anyhow!("the registration server refuses: {why}"))),
    };
    Ok(Answer::fine(text))
}

/// The possible requests, for a command line without one.
const FORMS: &str = "\
one of
    reveille invite --pool NAME [--machine ID [--reimage [--at-once]]] [--uses COUNT] [--ttl TIME]
    reveille invite --list
    reveille invite --revoke ID
    reveille invite --remove MACHINE [--node]
    reveille invite --readmit MACHINE
    reveille invite --rotate-ca
    reveille invite --finish-rotation [--force]
    reveille invite --machines";

fn question(args: &Invite) -> Result<Ask, Failure> {
    let word = |text: &String| Word::cut(text);
    if let Some(id) = &args.revoke {
        return Ok(Ask::Revoke { id: word(id) });
    }
    if args.rotate_ca {
        return Ok(Ask::RotateCa {});
    }
    if args.finish_rotation {
        return Ok(Ask::FinishRotation { force: args.force });
    }
    if let Some(machine) = &args.remove {
        let what = if args.node { Removal::Node } else { Removal::Machine };
        return Ok(Ask::Remove { machine: word(machine), what: Some(what) });
    }
    if let Some(machine) = &args.readmit {
        return Ok(Ask::Remove { machine: word(machine), what: None });
    }
    let Some(pool) = &args.pool else {
        return Err(Failure::usage(anyhow!("no action given")).next(FORMS));
    };
    Ok(Ask::Invite {
        roster: args.of.as_ref().map(word),
        pool: word(pool),
        roles: args.roles.iter().map(|role| (*role).into()).collect(),
        machine: args.machine.as_ref().map(word),
        reimage: args.reimage.then_some(if args.at_once { Reimage::AtOnce } else { Reimage::WhenSilent }),
        ttl_s: u32::try_from(args.ttl.ms / 1000).unwrap_or(u32::MAX),
        uses: args.uses,
    })
}

/// The machines that would lose their access at the end of a rotation.
fn late(count: u32, machines: &[MachineRow]) -> Failure {
    let have = if count == 1 { "machine has" } else { "machines have" };
    let mut text =
        format!("{count} {have} no certificate of the newest authority yet and would lose access:");
    for row in machines {
        let (node, record, heard) = (&row.node_name, &row.machine, listed::heard(row));
        let _ = write!(
            text,
            "\n    {node} ({record}), heard {heard}, its certificate is {}",
            row.certificate.name()
        );
    }
    if let more @ 1.. = (count as usize).saturating_sub(machines.len()) {
        let _ = write!(text, "\n    and {more} more: reveille invite --machines");
    }
    if machines.iter().any(|row| row.removed == Some(Removal::Node)) {
        text.push_str("\n    A machine whose Node was removed cannot connect and renew: run reveille invite --readmit MACHINE, and wait until it has");
    }
    Failure::usage(anyhow!("{text}")).next(
        "wait until they connect; remove those that no longer exist: reveille invite --remove MACHINE; or end their access: \
         reveille invite --finish-rotation --force",
    )
}

fn removed(args: &Invite, machine: &str) -> String {
    if args.readmit.is_some() {
        format!("{machine} may join again.\n")
    } else if args.node {
        format!(
            "The Node of {machine} stays removed. The machine keeps its certificate, which is valid again after --readmit.\n"
        )
    } else {
        format!("{machine} has no access any more: its certificate is revoked.\n")
    }
}

fn revoked(args: &Invite, count: u32, let_in: &[Sentence]) -> String {
    let id = args.revoke.as_deref().unwrap_or_default();
    let mut text = format!("Invitation {id} is revoked: no machine can use it any more.\n");
    if count > 0 {
        let _ = writeln!(text, "Machines that joined with it keep their access ({count}); --remove ends it:");
        for machine in let_in {
            let _ = writeln!(text, "  {machine}");
        }
    }
    text
}

fn print(context: &Context, args: &Invite, invited: &Invited) -> Result<String, Failure> {
    let server = match (&args.server, invited.listens.first()) {
        (Some(server), _) => server.clone(),
        (None, Some(address)) => format!("https://{address}"),
        (None, None) => {
            let why = anyhow!("the server listens on all addresses and has no name");
            return Err(Failure::usage(why)
                .next("give the address under which machines reach it: --server https://HOST:PORT"));
        }
    };
    let pins: Vec<&str> = invited.ca_pins.iter().map(Word::as_str).collect();
    let fail = |error: anyhow::Error| Failure::internal(error);
    match context.common.output {
        Output::Table => Ok(page(args, invited, &server, &pins)),
        Output::Json | Output::Yaml => {
            let value = json!({
                "server": server,
                "token": invited.token.expose(),
                "id": invited.id,
                "roster": invited.roster,
                "caPins": pins,
                "ttlSeconds": invited.ttl_s,
                "uses": args.uses,
            });
            if context.common.output == Output::Json {
                serde_json::to_string_pretty(&value)
                    .map(|text| text + "\n")
                    .map_err(|error| fail(error.into()))
            } else {
                serde_saphyr::to_string(&value).map_err(|error| fail(error.into()))
            }
        }
    }
}

fn page(args: &Invite, invited: &Invited, server: &str, pins: &[&str]) -> String {
    let pool = args.pool.as_deref().unwrap_or_default();
    let whom = args
        .machine
        .as_ref()
        .map_or_else(|| "any machine".to_owned(), |machine| format!("machine {machine} alone"));
    let times = if args.uses == 1 { "once".to_owned() } else { format!("{} times", args.uses) };
    let ttl = Span::from_s(invited.ttl_s.into());
    let pins: String = pins.iter().map(|pin| format!(" \\\n  --ca-pin {pin}")).collect();
    format!(
        "# Invitation {id}: for {whom} of pool {pool}, {times}, within {ttl}. On the machine, as root:\n\
         install -d -m 0700 /etc/reveille && (umask 077 && cat >{TOKEN_FILE}) <<'END'\n\
         {token}\n\
         END\n\
         reveille agent --server {server} --token-file {TOKEN_FILE}{pins}\n",
        id = invited.id,
        token = invited.token.expose(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use reveille_wire::agent::Secret;
    use reveille_wire::agent::text::List;

    fn args(line: &str) -> Invite {
        let cli = crate::cli::Cli::try_parse_from(line.split(' ')).unwrap();
        match cli.command {
            crate::cli::Command::Controller(crate::cli::controller::Command::Invite(args)) => args,
            _ => panic!("another command"),
        }
    }

    #[test]
    fn the_token_stands_in_a_here_document_and_in_no_argument() {
        let args = args("reveille invite --pool workers --uses 3");
        let invited = Invited {
            token: Secret::new("rvi1.ab.cd"),
            id: "ab".into(),
            roster: "prod".into(),
            ca_pins: List::first(["sha256:1".into(), "sha256:2".into()]),
            listens: List::first(["10.0.0.9:9464".into()]),
            ttl_s: 3600,
        };
        let page = page(&args, &invited, "https://10.0.0.9:9464", &["sha256:1", "sha256:2"]);
        let with_token: Vec<_> = page.lines().filter(|line| line.contains("rvi1.")).collect();
        assert_eq!(with_token, ["rvi1.ab.cd"]);
        assert!(
            page.contains("--ca-pin sha256:1 \\\n  --ca-pin sha256:2\n")
                && page.contains("3 times, within 60 min"),
            "{page}"
        );
    }

    fn asked(line: &str) -> Ask {
        question(&args(line)).unwrap()
    }

    #[test]
    fn machines_that_a_rotation_locks_out_are_named_with_last_seen() {
        let text = late(3, &[row(Some(5)), row(None)]).to_string();
        for said in ["3 machines have", "w-1 (m-1), heard 5 s ago", "heard not since", "1 more", "--force"] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }

    fn row(last_heard_seconds: Option<u64>) -> MachineRow {
        MachineRow {
            machine: "m-1".into(),
            node_name: "w-1".into(),
            instance_id: None,
            roster: "prod".into(),
            pool: "workers".into(),
            last_heard_seconds,
            connected: false,
            removed: None,
            departed: false,
            certificate: reveille_registrar::server::listing::Signed::Before,
        }
    }

    #[test]
    fn node_only_removal_says_that_the_certificate_is_kept() {
        let node = removed(&args("reveille invite --remove w-1 --node"), "m-1");
        assert!(
            node.contains("Node of m-1 stays removed") && node.contains("keeps its certificate"),
            "{node}"
        );
        let machine = removed(&args("reveille invite --remove w-1"), "m-1");
        assert!(machine.contains("m-1 has no access any more") && !machine.contains("keeps"), "{machine}");
    }

    #[test]
    fn without_an_argument_all_forms_are_named() {
        let text = question(&args("reveille invite")).unwrap_err().to_string();
        for form in [
            "--pool",
            "--list",
            "--revoke",
            "--remove",
            "--readmit",
            "--rotate-ca",
            "--finish-rotation",
            "--machines",
        ] {
            assert!(text.contains(form), "{text}");
        }
    }

    #[test]
    fn what_is_asked_for_is_what_was_written() {
        for token in ["6f0c4e21a9b3", "rvi1.6f0c4e21a9b3.secret"] {
            let revoke = asked(&format!("reveille invite --revoke {token}"));
            assert_eq!(revoke, Ask::Revoke { id: "6f0c4e21a9b3".into() }, "and a secret goes no further");
        }
        assert_eq!(asked("reveille invite --rotate-ca"), Ask::RotateCa {});
        let node = asked("reveille invite --remove w-1 --node");
        assert_eq!(node, Ask::Remove { machine: "w-1".into(), what: Some(Removal::Node) });
        let rebuilt = asked("reveille invite --pool w --machine i-1 --reimage");
        assert!(
            matches!(rebuilt, Ask::Invite { reimage: Some(Reimage::WhenSilent), ttl_s: 3600, uses: 1, .. }),
            "{rebuilt:?}"
        );
    }
}
