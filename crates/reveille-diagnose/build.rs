//! Lists the catalogue's files at build time, so that an author who adds an entry adds a file and nothing else.

use std::fmt::Write as _;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("../../catalogue");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".yaml") {
            names.push(name);
        }
    }
    names.sort();
    let mut code = "&[\n".to_owned();
    for name in names {
        let path = folder.join(&name).canonicalize()?;
        println!("cargo::rerun-if-changed={}", path.display());
        writeln!(code, "    ({name:?}, include_str!({:?})),", path.display().to_string())?;
    }
    code.push_str("]\n");
    let out = Path::new(&std::env::var("OUT_DIR")?).join("built_in.rs");
    std::fs::write(out, code)?;
    Ok(())
}
