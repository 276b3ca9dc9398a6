//! The rig and the simulator agree: one file, played on both, must end with the same findings and the same acts.
//!
//! ```text
//!                    ┌▶ the simulated world, the engine ───────────────────────────▶ account ┐
//!  agreed/*.scenario ┤                                                                       ├▶ the same
//!                    └▶ the rig's cloud, kube-apiserver, the built program ────────▶ account ┘
//! ```
//!
//! The files are the simulator's own: [`sim`] plays them as `reveille simulate` does. On the rig, [`given`] makes the fleet and
//! writes the roster that the file describes, [`deeds`] does what happens (faults by name, machines, nodes, the
//! proxy), [`host`] is the cloud in which it does that (Nova and Neutron, or EC2), [`backstage`] plays those whom
//! the rig does not have, and [`stage`] holds it together. [`account`] says what is
//! compared, and what is made alike before. A new agreed scenario is a file. What the rig cannot bring about is refused by name.
//!
//! Nothing here decides who is right: a difference fails, and is fixed in the simulated world or in the engine.

pub mod account;
mod backstage;
mod deeds;
mod given;
mod host;
pub mod sim;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use reveille_sim::scenario::{Happening, Scenario, parse};

use host::Kind;
pub use stage::play;

/// A file that both play.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name, without what comes after the dot.
    pub name: String,
    text: String,
}

/// Every agreed scenario, in order of name; those that are marked `not yet` are left out.
///
/// # Errors
/// When one cannot be read.
pub fn files() -> Result<Vec<File>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("agreed");
    let entries: Result<Vec<_>, _> = fs::read_dir(&folder).context("the agreed scenarios")?.collect();
    let mut paths: Vec<PathBuf> = entries?.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "scenario"));
    paths.sort();
    ensure!(!paths.is_empty(), "no agreed scenario in {}", folder.display());
    let read = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        Ok(File { name, text })
    };
    let read: Result<Vec<File>> = paths.iter().map(read).collect();
    let is_played = |file: &File| !file.scenario().is_ok_and(|scenario| scenario.not_yet.is_some());
    Ok(read?.into_iter().filter(is_played).collect())
}

impl File {
    /// What is in it.
    ///
    /// # Errors
    /// When it is not understood.
    pub fn scenario(&self) -> Result<Scenario> {
        parse(&self.text).map_err(|refusal| anyhow!("{}: {refusal}", self.name))
    }

    /// What happens in it.
    ///
    /// # Errors
    /// When it is not understood, or calls machines by other than their names.
    pub fn happenings(&self) -> Result<Vec<Happening>> {
        self.scenario()?.happenings().map_err(|refusal| anyhow!("{}: {refusal}", self.name))
    }
}

/// The scenarios of the end-to-end run: those that touch nothing but their own machines are played at the same time, with one
/// process of Reveille for all of them, each kind of cloud by itself; each of the others has the rig to itself.
///
/// # Errors
/// When a file cannot be read, or says what the rig cannot bring about.
pub fn scenarios() -> Result<Vec<Group>> {
    let named = |name: &str| Group { name: name.to_owned(), files: Vec::new(), usually_s: 0 };
    let mut together = [named("agreed_side_by_side"), named("agreed_on_ec2_side_by_side")];
    let mut alone = Vec::new();
    for file in files()? {
        let (scenario, happenings) = (file.scenario()?, file.happenings()?);
        let kind = Kind::of(scenario.layout()).with_context(|| file.name.clone())?;
        deeds::can_be_done(&happenings, kind).with_context(|| file.name.clone())?;
        let lasts_s = u64::try_from(scenario.ends().ms / 1000).unwrap_or_default();
        if deeds::touches_others(&happenings, kind) {
            let name = format!("agreed_{}", file.name.replace('-', "_"));
            alone.push(Group { name, files: vec![file], usually_s: lasts_s + 20 });
        } else {
            let [openstack, ec2] = &mut together;
            let group = if kind == Kind::Ec2 { ec2 } else { openstack };
            group.usually_s = group.usually_s.max(lasts_s + 60);
            group.files.push(file);
        }
    }
    alone.extend(together);
    alone.retain(|group| !group.files.is_empty());
    Ok(alone)
}

/// Files that are played at the same time.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it is called in the end-to-end run.
    pub name: String,
    /// The files.
    pub files: Vec<File>,
    /// How long it usually takes, seconds.
    pub usually_s: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agreed_scenario_holds_and_settles_in_the_simulator() {
        let mut wrong = Vec::new();
        for file in files().unwrap() {
            match file.scenario().and_then(|scenario| sim::account(&scenario)) {
                Ok(account) if std::env::var_os("REVEILLE_SHOW").is_some() => {
                    println!("{}\n  {}", file.name, account.lines().join("\n  "));
                }
                Ok(account) => assert!(!account.lines().is_empty(), "{}: nothing to compare", file.name),
                Err(why) => wrong.push(format!("{}: {why:#}", file.name)),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn ec2_files_are_played_side_by_side_on_one_rig() {
        let groups = scenarios().unwrap();
        let on_ec2: Vec<&Group> =
            groups.iter().filter(|group| group.files.iter().any(|file| file.name.starts_with('e'))).collect();
        assert_eq!(on_ec2.len(), 1, "a file of EC2 touches others");
        assert!(on_ec2[0].files.len() >= 10 && on_ec2[0].files.iter().all(|file| file.name.starts_with('e')));
    }

    #[test]
    fn at_least_ten_files_are_agreed_and_the_rig_can_play_each() {
        let groups = scenarios().unwrap();
        let files: usize = groups.iter().map(|group| group.files.len()).sum();
        assert!(files >= 10 && files == self::files().unwrap().len(), "{files} files");
    }
}
