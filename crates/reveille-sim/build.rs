//! Writes the list of scenario files, so that the binary carries them: a file that is added is in the list.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("scenarios");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "scenario"));
    files.sort();
    let mut list = String::from("static FILES: &[Filed] = &[\n");
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        writeln!(
            list,
            "    Filed {{ name: {name:?}, text: include_str!({:?}) }},",
            file.display().to_string()
        )?;
    }
    list.push_str("];\n");
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("library.rs"), list)?;
    Ok(())
}
