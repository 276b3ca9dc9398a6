//! Modules that import each other in a circle, in each crate.
//!
//! ```text
//!  files of a crate ─▶ modules with the paths that they name ─▶ arrows from module to the owner of the name
//!                  ─▶ folded to siblings of one folder ─▶ those that lie on a circle: none may
//! ```
//!
//! A name that is handed on by `use` leads to the module that owns it, so that a re-export hides no circle. What a circle
//! costs: none of its modules can be read, tested or taken out without all the others.
//!
//! Left out are tests, and arrows between a module and its own parts: a part may know the types of the module that it is a
//! part of.

use std::collections::{BTreeMap, BTreeSet};

use super::{Report, Tree, paths};

/// Words of a module's path from the crate's root.
type Place = Vec<String>;

/// A module's own file, read.
#[derive(Default)]
struct Module<'a> {
    file: &'a str,
    /// Paths beginning with `crate`, `self` or `super`, with their lines.
    named: Vec<(usize, Place)>,
    /// What a name that was imported stands for.
    imported: BTreeMap<String, Place>,
}

/// Modules of one crate.
type Modules<'a> = BTreeMap<Place, Module<'a>>;

/// Siblings `from` and `to` in a folder, and the first place where `from` names something of `to`.
struct Arrow<'a> {
    folder: Place,
    from: String,
    to: String,
    file: &'a str,
    line: usize,
}

/// Checks all crates of the tree.
pub(crate) fn check(tree: &Tree, report: &mut Report) {
    let mut crates: BTreeMap<&str, BTreeMap<Place, (&str, String)>> = BTreeMap::new();
    for (path, text) in &tree.files {
        let Some((name, file)) = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        if let Some(file) = file.strip_suffix(".rs").filter(|file| !file.starts_with("bin/")) {
            crates.entry(name).or_default().insert(place_of(file), (path, paths::code(text)));
        }
    }
    for (name, files) in crates {
        judge(&format!("crates/{name}/src"), &on_circles(arrows(&read(&files))), report);
    }
}

/// `a/mod` and `a` are both the module `a`.
fn place_of(file: &str) -> Place {
    let mut words: Place = file.split('/').map(ToOwned::to_owned).collect();
    words.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
    words
}

fn read<'a>(files: &BTreeMap<Place, (&'a str, String)>) -> Modules<'a> {
    let (mut modules, mut of_tests) = (Modules::new(), BTreeSet::new());
    for (place, (file, code)) in files {
        let (code, tests) = paths::without_tests(code);
        of_tests.extend(tests.into_iter().map(|name| [place.as_slice(), &[name]].concat()));
        let mut module = Module { file, ..Module::default() };
        for named in paths::paths(&code) {
            let words: Place = named.words.iter().map(|word| (*word).to_owned()).collect();
            if let Some(name) = named.known_as {
                module.imported.insert(name.to_owned(), words.clone());
            }
            if ["crate", "self", "super"].contains(&named.words[0]) {
                module.named.push((named.line, words));
            }
        }
        modules.insert(place.clone(), module);
    }
    modules.retain(|place, _| !of_tests.iter().any(|of_tests| place.starts_with(of_tests)));
    modules
}

/// The module that owns what the path names, as seen from the module `at`; none where that is another crate's.
fn owner(modules: &Modules<'_>, at: &[String], path: &[String], steps: usize) -> Option<Place> {
    let mut place = at.to_vec();
    for (index, word) in path.iter().enumerate() {
        match word.as_str() {
            "crate" => place.clear(),
            "self" => {}
            "super" => drop(place.pop()),
            _ => {
                place.push(word.clone());
                if modules.contains_key(&place) {
                    continue;
                }
                place.pop();
                let Some(stands_for) = modules.get(&place)?.imported.get(word) else {
                    // Its own item, unless the path began outside of the crate.
                    return (index > 0).then_some(place);
                };
                let whole = [stands_for, &path[index + 1..]].concat();
                // A name that stands for itself, as in `use anyhow;`, is another crate's.
                return if steps == 0 || whole == path {
                    None
                } else {
                    owner(modules, &place, &whole, steps - 1)
                };
            }
        }
    }
    Some(place)
}

/// One arrow for each two siblings.
fn arrows<'a>(modules: &Modules<'a>) -> Vec<Arrow<'a>> {
    const HANDED_ON_MAX: usize = 12;
    let mut seen = BTreeMap::new();
    for (place, module) in modules {
        for (line, path) in &module.named {
            let Some(owner) = owner(modules, place, path, HANDED_ON_MAX) else { continue };
            let shared = place.iter().zip(&owner).take_while(|(one, other)| one == other).count();
            let (Some(from), Some(to)) = (place.get(shared), owner.get(shared)) else { continue };
            let key = (place[..shared].to_vec(), from.clone(), to.clone());
            seen.entry(key).or_insert((module.file, *line));
        }
    }
    let arrow = |((folder, from, to), (file, line))| Arrow { folder, from, to, file, line };
    seen.into_iter().map(arrow).collect()
}

/// Those by whose head their tail can be reached.
fn on_circles(arrows: Vec<Arrow<'_>>) -> Vec<Arrow<'_>> {
    let is_on_circle: Vec<bool> =
        arrows.iter().map(|arrow| reached(&arrows, arrow).contains(&arrow.from)).collect();
    arrows.into_iter().zip(is_on_circle).filter(|(_, on_circle)| *on_circle).map(|(arrow, _)| arrow).collect()
}

/// All siblings that can be reached over this arrow.
fn reached(arrows: &[Arrow<'_>], over: &Arrow<'_>) -> BTreeSet<String> {
    let (mut reached, mut waiting) = (BTreeSet::new(), vec![&over.to]);
    while let Some(next) = waiting.pop() {
        if reached.insert(next.clone()) {
            let on = arrows.iter().filter(|arrow| arrow.folder == over.folder && arrow.from == *next);
            waiting.extend(on.map(|arrow| &arrow.to));
        }
    }
    reached
}

fn judge(source: &str, arrows: &[Arrow<'_>], report: &mut Report) {
    let circles: BTreeSet<(&Place, BTreeSet<String>)> =
        arrows.iter().map(|arrow| (&arrow.folder, reached(arrows, arrow))).collect();
    for (folder, members) in circles {
        let folder = [&[source.to_owned()], folder.as_slice()].concat().join("/");
        let members: Vec<String> = members.into_iter().collect();
        report.notice(&folder, 0, "circle", format!("{} import each other", members.join(", ")));
    }
    for Arrow { from, to, file, line, .. } in arrows {
        let advice = format!("\"{from}\" → \"{to}\" lies on a circle; move what both need below both");
        report.breach(file, *line, "circle", advice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter();
        let files = files.map(|(file, text)| (place_of(file), (*file, paths::code(text)))).collect();
        let arrows = on_circles(arrows(&read(&files)));
        arrows
            .iter()
            .map(|Arrow { from, to, file, line, .. }| format!("{file}:{line} {from} → {to}"))
            .collect()
    }

    #[test]
    fn import_cycles_are_found_through_reexports_but_not_in_tests() {
        let root = ("lib", "mod a; mod b; mod c;\npub use a::A;\n");
        let b = ("b/mod", "mod d;\nuse crate::a::A;\nuse anyhow::Result;\n");
        let circle = ["a:1 a → b", "b/mod:2 b → a"];
        let cases: [(&[(&str, &str)], &[&str]); 6] = [
            (&[root, ("a", "use crate::b::B;"), b], &circle),
            (&[root, ("a", "use crate::b::d::D;"), b, ("b/d", "pub struct D;")], &circle),
            (&[root, ("a", "use super::b::B;"), ("b/mod", "\nuse crate::A;"), b], &circle),
            (&[root, ("a", "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}"), b], &[]),
            (&[root, ("a", "use crate::c::C;"), b, ("c", "use crate::d::D;")], &[]),
            (&[root, ("a", "pub use a::C;"), ("b/mod", "mod d;\nuse d::D;"), ("b/d", "use super::B;")], &[]),
        ];
        for (files, expected) in cases {
            assert_eq!(found(files), expected, "{files:?}");
        }
    }
}
