//! The place of a roster's state on disk.
//!
//! There is one base folder (`--state`, else `$XDG_STATE_HOME/reveille`, else `~/.local/state/reveille`), and in it one
//! folder for each roster, named after the roster. Nothing is created here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use reveille_core::model::id::RosterName;

use super::failure::Failure;

/// The folder of one roster's state.
pub(crate) fn state_dir(base: Option<&Path>, roster: &RosterName) -> Result<PathBuf, Failure> {
    let base = match base {
        Some(base) => base.to_owned(),
        None => {
            default_base(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME")).ok_or_else(|| {
                Failure::usage(anyhow!(
                    "cannot tell where to keep state: neither XDG_STATE_HOME nor HOME is set"
                ))
                .next("name a folder with --state")
            })?
        }
    };
    Ok(base.join(roster.as_str()))
}

/// The XDG rule; it says that a relative `XDG_STATE_HOME` counts as unset.
fn default_base(state_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |text: OsString| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    let state_home = state_home.and_then(absolute);
    let base = state_home.or_else(|| home.and_then(absolute).map(|home| home.join(".local/state")))?;
    Some(base.join("reveille"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folder_follows_the_xdg_rule() {
        let base = |state: Option<&str>, home: Option<&str>| {
            default_base(state.map(OsString::from), home.map(OsString::from))
        };
        let table = [
            (Some("/s"), Some("/h"), Some("/s/reveille")),
            (Some("s"), Some("/h"), Some("/h/.local/state/reveille")),
            (Some(""), Some("/h"), Some("/h/.local/state/reveille")),
            (None, Some("/h"), Some("/h/.local/state/reveille")),
            (None, None, None),
        ];
        for (state, home, expected) in table {
            assert_eq!(base(state, home), expected.map(PathBuf::from), "{state:?} {home:?}");
        }
    }
}
