//! Arguments that only one kind of cloud has: which cloud `init` means, and the commands that print permissions.
//!
//! ```text
//!  each provider's table of options ─▶ clap's arguments ─▶ CloudChoice, CloudRights ─▶ back to the provider
//! ```
//!
//! The tables are data of the adapters, so that a new cloud needs no field and no command here. Names of options are unique over
//! all clouds.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand, value_parser};
use reveille_cloud::options::{CloudOption, Given, Takes};
use reveille_cloud::provider::{Provider, RightsCommand};

use super::failure::Failure;
use crate::adapters::providers::PROVIDERS;

/// Which cloud `init` means.
#[derive(Clone, Debug, Default)]
pub(crate) struct CloudChoice {
    /// The kind that was named.
    pub(crate) kind: Option<String>,
    /// Options of one kind.
    pub(crate) given: Given,
}

impl CloudChoice {
    /// The provider that was named, or the one that these options belong to.
    ///
    /// # Errors
    /// When one provider is named, and options of another are given.
    pub(crate) fn provider(&self) -> Result<Option<&'static dyn Provider>, Failure> {
        let find = |is: &dyn Fn(&dyn Provider) -> bool| PROVIDERS.iter().copied().find(|it| is(*it));
        let named = find(&|it| self.kind.as_deref() == Some(it.kind().name));
        let said = find(&|it| it.kind().options.iter().any(|option| self.given.has(option.name)));
        match (named, said) {
            (Some(named), Some(said)) if named.kind().name != said.kind().name => {
                let wrong = "the kind of cloud that is named is not the one that the other options are of";
                Err(Failure::usage(anyhow!(wrong)).next("see reveille init --help"))
            }
            (named, said) => Ok(named.or(said)),
        }
    }

    /// The options, with paths by this function.
    pub(crate) fn with_paths(
        &self,
        absolute: impl Fn(&Path) -> Result<PathBuf, Failure>,
    ) -> Result<Given, Failure> {
        let mut given = self.given.clone();
        for option in PROVIDERS.iter().flat_map(|it| it.kind().options) {
            if let (Takes::Path(_), Some(path)) = (option.takes, given.path(option.name)) {
                given.add(option.name, absolute(&path)?);
            }
        }
        Ok(given)
    }
}

impl Args for CloudChoice {
    fn augment_args(command: Command) -> Command {
        // In the help, the kind with the most general ids is the first one.
        let kinds = PROVIDERS.iter().rev().map(|it| PossibleValue::new(it.kind().name).help(it.kind().about));
        let kind = Arg::new("kind")
            .long("kind")
            .value_name("KIND")
            .value_parser(PossibleValuesParser::new(kinds))
            .help("Kind of cloud [default: from the other options, then from the Nodes' provider IDs]");
        PROVIDERS.iter().enumerate().rev().fold(command.arg(kind), |command, (place, provider)| {
            let of_others = || PROVIDERS[..place].iter().flat_map(|it| it.kind().options).map(|it| it.name);
            command.args(provider.kind().options.iter().map(|option| {
                argument(option).help_heading(provider.kind().heading).conflicts_with_all(of_others())
            }))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CloudChoice {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let options = PROVIDERS.iter().flat_map(|it| it.kind().options);
        Ok(Self { kind: matches.get_one("kind").cloned(), given: given(matches, options) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A command that prints the permissions that Reveille needs on one kind of cloud.
#[derive(Clone, Debug)]
pub(crate) struct CloudRights {
    /// Which.
    pub(crate) command: &'static RightsCommand,
    /// Its options.
    pub(crate) given: Given,
}

impl Subcommand for CloudRights {
    fn augment_subcommands(command: Command) -> Command {
        PROVIDERS.iter().map(|it| &it.kind().rights).fold(command, |command, rights| {
            let own = Command::new(rights.name).about(rights.about).after_long_help(rights.examples);
            command.subcommand(own.args(rights.options.iter().map(argument)))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        PROVIDERS.iter().any(|it| it.kind().rights.name == name)
    }
}

impl FromArgMatches for CloudRights {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let found = matches.subcommand().and_then(|(name, matches)| {
            let command = PROVIDERS.iter().map(|it| &it.kind().rights).find(|rights| rights.name == name)?;
            Some(Self { command, given: given(matches, command.options.iter()) })
        });
        found.ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn argument(option: &'static CloudOption) -> Arg {
    let argument = Arg::new(option.name).long(option.name).help(option.help).required(option.required);
    match option.takes {
        Takes::Flag => argument.action(ArgAction::SetTrue),
        Takes::Text(name, check) => argument.value_name(name).value_parser(check),
        Takes::Path(name) => argument.value_name(name).value_parser(value_parser!(PathBuf)),
    }
}

fn given(matches: &ArgMatches, options: impl Iterator<Item = &'static CloudOption>) -> Given {
    let mut given = Given::default();
    for CloudOption { name, takes, .. } in options {
        match takes {
            Takes::Flag if matches.get_flag(name) => given.add(name, ""),
            Takes::Flag => {}
            Takes::Text(..) => {
                if let Some(text) = matches.get_one::<String>(name) {
                    given.add(name, text);
                }
            }
            Takes::Path(_) => {
                if let Some(path) = matches.get_one::<PathBuf>(name) {
                    given.add(name, path);
                }
            }
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_kind_name_it_and_those_of_two_are_refused() {
        let choice = |kind: Option<&str>, options: &[&'static str]| {
            let mut given = Given::default();
            options.iter().copied().for_each(|option| given.add(option, "x"));
            CloudChoice { kind: kind.map(str::to_owned), given }
        };
        let table = [
            (choice(None, &[]), Some(None)),
            (choice(None, &["cloud"]), Some(Some("openstack"))),
            (choice(None, &["region"]), Some(Some("ec2"))),
            (choice(Some("ec2"), &[]), Some(Some("ec2"))),
            (choice(Some("ec2"), &["cloud"]), None),
            (choice(Some("openstack"), &["region"]), None),
        ];
        for (choice, kind) in table {
            let found = choice.provider().ok().map(|found| found.map(|provider| provider.kind().name));
            assert_eq!(found, kind, "{choice:?}");
        }
    }
}
