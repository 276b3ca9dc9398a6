//! The command line: the commands, their arguments and their help.
//!
//! clap turns the arguments into [`Cli`]; nothing here acts. Defaults are defined here, so that `--help` always shows the
//! real ones. The long help of each command ends with examples that can be pasted.
//!
//! Without the feature `controller` this is the build for machines: it has the commands for the machine itself, and none
//! for a cluster. It is a build of its own because a machine pays memory for every page of the program
//! (docs/internals/performance.md).

pub(crate) mod agent;
#[cfg(feature = "controller")]
pub(crate) mod cloud;
#[cfg(feature = "controller")]
pub(crate) mod collect;
#[cfg(feature = "controller")]
pub(crate) mod controller;
pub(crate) mod doctor;
pub(crate) mod exit;
pub(crate) mod failure;
#[cfg(feature = "controller")]
pub(crate) mod hot;
#[cfg(feature = "controller")]
pub(crate) mod init;
#[cfg(feature = "controller")]
pub(crate) mod invite;
pub(crate) mod join;
pub(crate) mod log_text;
pub(crate) mod logging;
#[cfg(feature = "controller")]
pub(crate) mod place;
#[cfg(feature = "controller")]
pub(crate) mod play;
#[cfg(feature = "controller")]
pub(crate) mod rancher;
#[cfg(feature = "controller")]
mod reached;
#[cfg(feature = "controller")]
pub(crate) mod rights;
pub(crate) mod target;
pub(crate) mod waits;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

#[cfg(feature = "controller")]
const ABOUT: &str = "Finds and repairs Kubernetes nodes that fail to join or to stay Ready";

#[cfg(not(feature = "controller"))]
const ABOUT: &str =
    "Joins this machine to a Kubernetes cluster, keeps it joined, and finds what is wrong with it";

#[cfg(feature = "controller")]
const LONG_ABOUT: &str = "\
Finds and repairs Kubernetes nodes that fail to join or to stay Ready.

Every started machine must become a Ready node and stay one. For each machine that does not, Reveille shows at which \
stage it stopped and why, with the evidence. It takes the smallest safe repair step and confirms that the step \
worked. A new roster changes nothing: Reveille shows what it would do, and you enable each kind of repair.";

#[cfg(not(feature = "controller"))]
const LONG_ABOUT: &str = ABOUT;

#[cfg(not(feature = "controller"))]
const AFTER_HELP: &str = "\
This build is for machines: it joins them, keeps them joined, and finds what is wrong with them. The full build has \
the commands for a whole cluster, such as run, status and why.

Exit codes: 0 no problem · 1 problem found · 2 unknown · 64 usage error · 70 internal error";

#[cfg(feature = "controller")]
const AFTER_HELP: &str = "\
First steps:
  reveille demo            run failures and repairs on a simulated cluster; needs nothing, changes nothing
  reveille init            read your cluster and cloud, write a first roster
  reveille status          list machines and their problems
  reveille why MACHINE     explain why a machine is not a Ready node

Exit codes: 0 all machines Ready · 1 a machine is not Ready or missing · 2 unknown · 64 usage error or invalid roster · \
65 unreadable recording · 70 internal error";

/// The whole command line.
#[derive(Clone, Debug, Parser)]
#[command(name = "reveille", version, about = ABOUT, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
#[command(max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    /// What is asked of every command.
    #[command(flatten)]
    pub(crate) common: Common,
    /// Which rosters, and where their state is.
    #[cfg(feature = "controller")]
    #[command(flatten)]
    pub(crate) rosters: controller::Rosters,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Heading of the options that each command has, below those of its own.
pub(crate) const GLOBAL_OPTIONS: &str = "Global options";

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Directory of additional or overriding detection rules
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS, value_name = "DIR", env = "REVEILLE_CATALOGUE")]
    pub(crate) catalogue: Option<PathBuf>,

    /// Output format
    #[arg(long, short, global = true, help_heading = GLOBAL_OPTIONS, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Output,

    /// When to use colour
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Aligned text
    Table,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// When colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What can be asked.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// What is asked of the whole cluster, from anywhere.
    #[cfg(feature = "controller")]
    #[command(flatten)]
    Controller(controller::Command),
    /// Check this machine and print the first problem to fix; read-only
    #[command(after_long_help = doctor::EXAMPLES)]
    Doctor(Box<doctor::Doctor>),
    /// Find the cause in logs, command output or a support bundle
    #[command(after_long_help = DIAGNOSE_EXAMPLES)]
    Diagnose(Diagnose),
    /// Explain a cause, or a stage: what it means, what proves it, how to fix it
    #[command(after_long_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Print the version
    Version,
    /// Run the agent of this machine: enrol it, join it, keep it joined
    #[command(after_long_help = agent::EXAMPLES)]
    Agent(agent::Agent),
    /// Join this machine to a cluster, and wait until its Node stays Ready
    #[command(after_long_help = join::EXAMPLES)]
    Join(join::Join),
    /// Print shell completions
    #[cfg(feature = "controller")]
    #[command(
        after_long_help = "Example:\n  reveille completions bash > ~/.local/share/bash-completion/completions/reveille"
    )]
    Completions(Completions),
    /// Print the manual page, or write one for each command to a directory
    #[cfg(feature = "controller")]
    Man(Man),
}

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for people
    Text,
    /// A JSON object on each line
    Json,
}

const DIAGNOSE_EXAMPLES: &str = "\
Examples:
  journalctl -u kubelet -b | reveille diagnose            a log from a pipe
  reveille diagnose console.log cloud-init-output.log     several files of one machine
  reveille diagnose bundle.tar.gz                         a support bundle: kubectl cluster-info dump, sosreport, \
or the collector of Rancher, EKS or AKS
  reveille diagnose -o json kubelet.log | jq -r '.findings[0].cause'
  reveille diagnose --catalogue ./rules kubelet.log       with your own detection rules

Pass all files of one machine at once: the root cause is often in another file. Formats and compression are detected. \
The command works offline and writes nothing. Secrets in quoted lines are masked.

Exit codes: 0 no known problem found · 1 problem found · 2 no verdict · 64 usage error or invalid rules";

/// `diagnose`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Diagnose {
    /// Files, folders, archives, or - for standard input [default: standard input]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Kind of cluster, if known: kubeadm, k3s, rke1, rke2, eks, aks, gke, capi, talos, …
    #[arg(long, value_name = "NAME")]
    pub(crate) platform: Option<String>,
    /// Reader threads [default: one for each core, at most 8]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  reveille explain RV117
  reveille explain bootstrap-token-invalid
  reveille explain cni                            what happens at a stage, and what stops machines there
  reveille explain RV117 -o json | jq -r .says";

/// `explain`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Explain {
    /// Code or name of a cause, or name of a stage
    #[arg(value_name = "CODE|STAGE")]
    pub(crate) code: String,
}

/// `completions`.
#[cfg(feature = "controller")]
#[derive(Args, Clone, Debug)]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}

/// `man`.
#[cfg(feature = "controller")]
#[derive(Args, Clone, Debug)]
pub(crate) struct Man {
    /// Write a page for each command to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    /// Words that no help text may have: a reader at 3 a.m. must not have to guess who acts, or what a metaphor means.
    const BANNED: [&str; 13] = [
        "whoever", "nobody", "somebody", "someone", "amiss", "anew", "mends", "roll", "rung", "remedy",
        "ours", "made-up", "everyone",
    ];
    /// The most words of a sentence in a help text, which people read at a glance.
    const WORDS_MAX: usize = 26;

    /// Every help text of `command` and of its subcommands, with its name.
    fn texts(command: &clap::Command, texts: &mut Vec<(String, String)>) {
        let name = command.get_name().to_owned();
        let of_command = [
            command.get_about(),
            command.get_long_about(),
            command.get_after_help(),
            command.get_after_long_help(),
        ];
        texts.extend(of_command.into_iter().flatten().map(|text| (name.clone(), text.to_string())));
        for argument in command.get_arguments() {
            let id = format!("{name} {}", argument.get_id());
            texts.extend(argument.get_help().map(|text| (id.clone(), text.to_string())));
            let values = argument.get_possible_values();
            let helps = values.iter().filter_map(|value| value.get_help());
            texts.extend(helps.map(|text| (id.clone(), text.to_string())));
        }
        command.get_subcommands().for_each(|one| self::texts(one, texts));
    }

    #[test]
    fn help_is_written_in_plain_words() {
        let mut found = Vec::new();
        texts(&Cli::command(), &mut found);
        assert!(found.len() > 20, "help texts were not found");
        for (name, text) in found {
            let lower = text.to_lowercase();
            let words = lower.split(|character: char| !(character.is_alphanumeric() || character == '-'));
            for word in words {
                assert!(!BANNED.contains(&word), "help of {name} says \"{word}\":\n{text}");
            }
            // Examples and exit codes are lists, not sentences.
            let prose = text.lines().filter(|line| !line.starts_with(' ') && !line.starts_with("Exit codes"));
            let prose: Vec<&str> = prose.collect();
            for sentence in prose.join(" ").split(". ") {
                let count = sentence.split_whitespace().count();
                assert!(count <= WORDS_MAX, "help of {name} has a sentence of {count} words:\n{sentence}");
            }
        }
    }

    #[test]
    fn what_leads_a_cluster_is_in_the_whole_program_alone() {
        let command = Cli::command();
        let is_there = |name: &str| command.find_subcommand(name).is_some();
        for name in ["join", "agent", "doctor", "diagnose", "explain", "version"] {
            assert!(is_there(name), "{name}");
        }
        for name in ["run", "status", "roll", "why", "simulate", "invite"] {
            assert_eq!(is_there(name), cfg!(feature = "controller"), "{name}");
        }
    }
}
