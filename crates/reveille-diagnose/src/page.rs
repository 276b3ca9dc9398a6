//! A cause's page: what `reveille explain` prints and `docs/reference/findings/` holds, made from the catalogue.

use std::fmt::Write as _;

use reveille_core::model;
use reveille_core::model::stage::Stage;

use crate::catalogue::{Catalogue, Cause, Signal};
use crate::finding::Confidence;
use crate::own;

/// The page of one cause, as Markdown.
pub fn page(catalogue: &Catalogue, cause: &Cause) -> String {
    let Cause { label, code, stage, title, because, remedy, .. } = cause;
    let mut page = format!(
        "# {code}: {label}\n\n{}. Usually stops a machine at `{stage}`.\n\n{because}\n",
        capital(title)
    );
    let _ = write!(page, "\n## What to do\n\n{remedy}\n");
    if !cause.commands.is_empty() {
        let _ = write!(page, "\n```console\n{}\n```\n", cause.commands.join("\n"));
    }
    for (repair, why) in [("reboot", &cause.no_reboot), ("replacement", &cause.no_replace)] {
        if let Some(why) = why {
            let _ = write!(page, "\nA {repair} does not help: {why}.\n");
        }
    }
    if !cause.collect.is_empty() {
        let _ = write!(page, "\nWhen the cause is not sure, collect next:\n\n{}", list(&cause.collect));
    }
    if !cause.explains.is_empty() {
        let links = cause.explains.iter().filter_map(|place| catalogue.causes.get(*place));
        let links: Vec<String> =
            links.map(|other| format!("[{}]({}.md) ({})", other.code, other.code, other.label)).collect();
        let _ =
            write!(page, "\nWhere these are found too, they are its consequences: {}.\n", links.join(", "));
    }
    page.push_str("\n## What proves it\n");
    for signal in catalogue.signs(cause) {
        sign(catalogue, signal, &mut page);
    }
    let _ = write!(page, "\nMade from `catalogue/{}`; change it there.\n", cause.file);
    page
}

/// The page of a cause that the engine proves itself, as Markdown.
pub fn own_page(cause: &model::cause::Cause) -> String {
    let (code, label, stage) = (cause.code(), cause.label(), cause.stage());
    let (says, remedy) = (capital(cause.says()), capital(cause.remedy()));
    let mut page = format!(
        "# {code}: {label}\n\n{says}. Usually stops a machine at `{stage}`.\n\n## What to do\n\n{remedy}.\n"
    );
    let Some((seen, commands)) = own::proof(cause) else { return page };
    if !commands.is_empty() {
        let _ = write!(page, "\n```console\n{}\n```\n", commands.join("\n"));
    }
    let _ = write!(
        page,
        "\n## What proves it\n\n{seen}\n\nReveille proves it itself, from what the cloud and the cluster say of their objects; no line of a log does.\n"
    );
    page
}

/// The list of all causes, those that the engine proves itself among them, as Markdown.
pub fn index(catalogue: &Catalogue) -> String {
    let mut page = "# Findings\n\nThe causes that `reveille diagnose` finds in logs, made from `catalogue/`, and with a star those that Reveille finds in the\n\
                    objects of the cloud and the cluster. Each stands at the stage where it usually stops a machine.\n\n\
                    ## Stages\n\nEvery machine passes these, in this order.\n\n| stage | what happens there |\n| --- | --- |\n"
        .to_owned();
    for stage in Stage::ALL {
        let _ = writeln!(page, "| `{stage}` | {} |", stage.says());
    }
    page.push_str("\n## Causes\n\n| stage | code | cause | what is wrong |\n| --- | --- | --- | --- |\n");
    for Listed { stage, code, label, says, own } in causes(catalogue) {
        let star = if own { " *" } else { "" };
        let _ = writeln!(page, "| {stage} | [{code}]({code}.md){star} | {label} | {says} |");
    }
    page
}

/// What happens at a stage, and which causes usually stop a machine there.
pub fn stage(catalogue: &Catalogue, stage: Stage) -> String {
    let (says, number, all) = (capital(stage.says()), stage.number(), Stage::ALL.len());
    let mut page = format!(
        "# {stage}\n\nStage {number} of {all}. {says}.\n\nCauses that usually stop a machine there:\n\n"
    );
    for Listed { code, label, says, .. } in causes(catalogue).filter(|cause| cause.stage == stage) {
        let _ = writeln!(page, "* {code} {label}: {says}");
    }
    page
}

/// A cause in a list of all.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Listed<'a> {
    pub(crate) stage: Stage,
    pub(crate) code: &'a str,
    label: &'a str,
    says: &'a str,
    /// The engine proves it itself.
    own: bool,
}

/// All causes, by stage and code.
pub(crate) fn causes(catalogue: &Catalogue) -> impl Iterator<Item = Listed<'_>> {
    let read = catalogue.causes.iter().map(|cause| {
        let Cause { stage, code, label, title, .. } = cause;
        Listed { stage: *stage, code, label, says: title, own: false }
    });
    let own = own::causes(catalogue).map(|cause| {
        let (code, label, says) = (cause.code(), cause.label(), cause.says());
        Listed { stage: cause.stage(), code, label, says, own: true }
    });
    let mut rows: Vec<Listed<'_>> = read.chain(own).collect();
    rows.sort();
    rows.into_iter()
}

fn sign(catalogue: &Catalogue, signal: &Signal, page: &mut String) {
    let proof = match signal.proof {
        Confidence::Sure => "proves it",
        Confidence::Likely => "makes it likely",
        Confidence::Possible => "makes it possible",
    };
    let _ = write!(page, "\n**{}** {proof}", signal.id);
    if !signal.source.is_empty() {
        let _ = write!(page, "; said by {}", signal.source);
    }
    page.push_str(".\n");
    let names = |places: &[usize]| {
        let names: Vec<&str> = places
            .iter()
            .filter_map(|place| catalogue.signals.get(*place))
            .map(|other| other.id.as_str())
            .collect();
        names.join(", ")
    };
    let mut rules = Vec::new();
    if signal.at_least > 1 {
        rules.push(format!("counts when seen at least {} times", signal.at_least));
    }
    if signal.often > 1 {
        rules.push(format!("only possible when seen less than {} times", signal.often));
    }
    if !signal.with.is_empty() {
        rules.push(format!("counts only together with: {}", names(&signal.with)));
    }
    if !signal.without.is_empty() {
        rules.push(format!("counts only without: {}", names(&signal.without)));
    }
    if !signal.on.is_empty() {
        rules.push(format!("counts only on {}", signal.on.join(", ")));
    }
    if !signal.taken_back_by.is_empty() {
        rules.push(format!("no longer counts once seen later: {}", names(&signal.taken_back_by)));
    }
    if signal.weak {
        rules.push("counts only where no other cause was found".to_owned());
    }
    if !rules.is_empty() {
        let _ = write!(page, "\n{}", list(&rules));
    }
    let _ = write!(page, "\nSeen in:\n\n```text\n{}\n```\n", examples(&signal.yes));
    let _ = write!(page, "\nNot in:\n\n```text\n{}\n```\n", examples(&signal.near));
}

fn examples(texts: &[String]) -> String {
    texts.iter().map(|text| text.trim_end()).collect::<Vec<_>>().join("\n")
}

fn list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("* {line}\n")).collect()
}

pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
