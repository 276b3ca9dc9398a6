//! Computes the name of the engine: a hash of the core's source, without comments and tests.
//!
//! A recording carries this hash. Engines with equal hashes make equal decisions, so a replay that differs under one hash
//! shows a bug. A replay that differs under two hashes shows what changed between them. The hash depends on no commit,
//! clock or path, and a changed comment leaves it as it is.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

const CORE: &str = "../reveille-core/src";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={CORE}");
    println!("cargo:rerun-if-changed=build.rs");
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join(CORE);
    let mut files = BTreeMap::new();
    collect(&root, &root, &mut files)?;
    // FNV-1a with 64 bits is enough for a name; it does not protect against an attacker.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (path, text) in &files {
        for byte in path.bytes().chain(decisive(text).into_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=REVEILLE_ENGINE={hash:016x}");
    Ok(())
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
            files.insert(path.strip_prefix(root)?.to_string_lossy().into_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// The lines that the compiler sees outside tests; tests are at the end of a file.
fn decisive(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}
