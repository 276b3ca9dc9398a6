//! The whole catalogue, made ready once for all tries of a process: it takes longer than a thousand tries of most targets.
//!
//! A target that tries catalogues themselves makes its own.

use std::sync::LazyLock;

use reveille_diagnose::Catalogue;
use reveille_diagnose::scan::Scanner;

/// The whole catalogue, ready once for all tries.
pub(crate) static SCANNER: LazyLock<Scanner<'static>> = LazyLock::new(|| {
    let catalogue = Catalogue::built_in().unwrap_or_else(|complaints| panic!("{complaints:?}"));
    Scanner::owning(catalogue).unwrap_or_else(|error| panic!("{error}"))
});
