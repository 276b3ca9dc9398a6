//! The command line: what can be asked, and how it explains itself.
//!
//! clap turns the arguments into [`Cli`]; nothing here acts. Defaults live here, so that `--help` tells the truth about
//! them. The long help of each command ends with examples that can be pasted.
//!
//! Without the feature `controller` it is the program for machines: what a node does with itself, and nothing that leads a
//! cluster. It is built so because a node pays for every page of it (docs/performance.md).

pub(crate) mod agent;
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

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

#[cfg(feature = "controller")]
const ABOUT: &str =
    "Takes the roll of a Kubernetes cluster: who should answer, who does not, why, and what mends it";

#[cfg(not(feature = "controller"))]
const ABOUT: &str =
    "Joins this machine to a Kubernetes cluster, keeps it joined, and says what is wrong with it";

#[cfg(feature = "controller")]
const LONG_ABOUT: &str = "\
Takes the roll of a Kubernetes cluster.

Every machine that somebody started must turn up as a Ready node, and stay one. For each machine that does not, \
Reveille says where on the way it stopped and why, with the evidence, takes the smallest safe step that brings it \
back, and checks that the step worked. A new roster only looks: it tells what it would do, and acting is switched \
on remedy by remedy.";

#[cfg(not(feature = "controller"))]
const LONG_ABOUT: &str = ABOUT;

#[cfg(not(feature = "controller"))]
const AFTER_HELP: &str = "\
This is the program for machines: it joins them, keeps them joined, and says what is wrong with them. run, roll, why and \
the other commands that lead a cluster are in the whole program.

Exit codes: 0 all is well · 1 something is wrong · 2 it could not be told · 64 wrong usage · 70 a fault of ours";

#[cfg(feature = "controller")]
const AFTER_HELP: &str = "\
First steps:
  reveille demo            a story on a made-up cluster; needs nothing, changes nothing
  reveille init            look at your cluster and cloud, write a roster to start from
  reveille roll            who is here, who is missing
  reveille why MACHINE     where it stopped, why, what was done, what comes next

Exit codes: 0 everyone answers · 1 somebody is absent · 2 it could not be told · 64 wrong usage or roster · 65 a recording that cannot be read · 70 a fault of ours";

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

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Folder with catalogue entries of your own, laid over ours: what texts of machines prove
    #[arg(long, global = true, value_name = "DIR", env = "REVEILLE_CATALOGUE")]
    pub(crate) catalogue: Option<PathBuf>,

    /// How to print: for people, or for programs
    #[arg(long, short, global = true, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Output,

    /// Colours. Nothing is said by colour alone
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
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
    /// On the machine: what is wrong with it, in order, and what to do; only reads
    #[command(after_long_help = doctor::EXAMPLES)]
    Doctor(Box<doctor::Doctor>),
    /// Read logs, command output or a support bundle and say why a machine did not join
    #[command(after_long_help = DIAGNOSE_EXAMPLES)]
    Diagnose(Diagnose),
    /// On a machine: its own process, invited by a registration server
    #[command(after_long_help = agent::EXAMPLES)]
    Agent(agent::Agent),
    /// On a machine: join a cluster; it is over only when the node is there and stays
    #[command(after_long_help = join::EXAMPLES)]
    Join(join::Join),
    /// Print completions for a shell
    #[cfg(feature = "controller")]
    #[command(
        after_long_help = "Example:\n  reveille completions bash > ~/.local/share/bash-completion/completions/reveille"
    )]
    Completions(Completions),
    /// Print the manual page, or write one for each command into a folder
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
Rancher's, EKS's or AKS's collector
  reveille diagnose -o json kubelet.log | jq -r '.findings[0].cause'
  reveille diagnose --explain RV117                       what a finding means, and what proves it
  reveille diagnose --catalogue ./ours kubelet.log        with your own entries laid over ours

Give it everything of one machine at once: what explains the rest is often in another file. Formats and packing are \
recognised; nothing is written and nobody is asked. Secrets in quoted lines are masked.

Exit codes: 0 nothing is wrong · 1 findings · 2 it could not be told · 64 wrong usage or catalogue";

/// `diagnose`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Diagnose {
    /// Files, folders, archives, or - for standard input [default: standard input]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// What kind of cluster it is, where that is known: kubeadm, k3s, rke1, rke2, eks, aks, gke, capi, talos, …
    #[arg(long, value_name = "NAME")]
    pub(crate) platform: Option<String>,
    /// Threads that read [default: as many as there are cores, at most 8]; what is found does not depend on it
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Print the page of a finding, by its code or cause
    #[arg(long, value_name = "CODE", conflicts_with = "paths")]
    pub(crate) explain: Option<String>,
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
    /// Write a page for each command into this folder instead of printing the first one
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

    #[test]
    fn what_leads_a_cluster_is_in_the_whole_program_alone() {
        let command = Cli::command();
        let is_there = |name: &str| command.find_subcommand(name).is_some();
        for name in ["join", "agent", "doctor", "diagnose"] {
            assert!(is_there(name), "{name}");
        }
        for name in ["run", "roll", "why", "simulate", "invite"] {
            assert_eq!(is_there(name), cfg!(feature = "controller"), "{name}");
        }
    }
}
