//! The pages of `docs/reference/findings` say what the catalogue says, and the engine of its own causes.
//! `REVEILLE_BLESS=1` writes them again.

use std::collections::BTreeMap;
use std::path::Path;

use reveille_diagnose::{Catalogue, own, page};

#[test]
fn the_pages_of_findings_are_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/findings");
    let catalogue = Catalogue::built_in().unwrap();
    let mut wanted: BTreeMap<String, String> = catalogue
        .causes
        .iter()
        .map(|cause| (format!("{}.md", cause.code), page::page(&catalogue, cause)))
        .collect();
    wanted
        .extend(own::causes(&catalogue).map(|cause| (format!("{}.md", cause.code()), page::own_page(cause))));
    wanted.insert("README.md".to_owned(), page::index(&catalogue));
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        for entry in std::fs::read_dir(&folder).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (name, text) in &wanted {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }
    let there: BTreeMap<String, String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read_to_string(&path).unwrap(),
            )
        })
        .collect();
    let (there_names, wanted_names): (Vec<_>, Vec<_>) = (there.keys().collect(), wanted.keys().collect());
    assert_eq!(there_names, wanted_names, "run this test once with REVEILLE_BLESS=1");
    for (name, text) in wanted {
        assert!(
            there[&name] == text,
            "{name} is not what the catalogue says: run this test once with REVEILLE_BLESS=1"
        );
    }
}
