//! `version`: prints the identity of this build, for a bug report.
//!
//! The engine's number is a hash of the source that decides: two programs with the same hash make the same decisions.

use serde::Serialize;

use super::{Answer, Context};
use crate::cli::failure::Failure;

/// What `version -o json` prints.
#[derive(Serialize)]
struct Version {
    version: &'static str,
    engine: &'static str,
    build: &'static str,
    platform: String,
}

/// `version`.
pub(crate) fn version(context: &Context) -> Result<Answer, Failure> {
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        engine: env!("REVEILLE_ENGINE"),
        build: if cfg!(feature = "controller") { "full" } else { "machine" },
        platform: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    };
    let Version { version: number, engine, build, platform } = &version;
    let page = || format!("reveille {number} ({build} build, engine {engine}, {platform})\n");
    context.print_own(&version, page).map(Answer::fine)
}
