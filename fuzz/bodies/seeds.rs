//! Plays the kept seeds of one target, in order of their names.
//!
//! Names the seed before it is played, so that a failing test says which one it was. Looks for no others.

use std::path::Path;

/// Every file of `fuzz/seeds/TARGET` through the target's body.
pub(crate) fn play(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let list = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = list.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} holds no seeds", folder.display());
    for path in paths {
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        eprintln!("{}", path.display());
        body(&bytes);
    }
}
