//! A run as a small text file, so that one that once failed is played for good.
//!
//! ```text
//!  # what was wrong, in a sentence or two
//!  seed 4711
//!  machines 50          drawn for so many …
//!  world 3              … of whom so many are there
//!  minutes 1440
//!  every 1800           seconds between two happenings, in the mean
//!  faults a, b          all, when left out
//!  keep 3, 17           of the drawn happenings only these, when given
//!  fixed-by a_test_name
//! ```
//!
//! What each number drew is told by the happenings' order in the catalog: a fault that is added among the others lets old
//! seeds draw other courses. So what is new is drawn beside them, from a stream of its own and for new seeds only, as
//! `chaos::access` is. The test named beside each seed holds the fault itself, whatever it draws.

use std::fmt::Write as _;

use reveille_core::model::time::Span;

use super::Quarry;

/// A seed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The run.
    pub quarry: Quarry,
    /// What was wrong.
    pub wrong: String,
    /// The test that holds it.
    pub fixed_by: String,
}

impl Seed {
    /// Reads a file; the error says which line and why.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut quarry = Quarry::new(0, 0, Span::ZERO, Span::from_min(30));
        let (mut wrong, mut fixed_by) = (Vec::new(), String::new());
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if let Some(comment) = line.strip_prefix('#') {
                wrong.push(comment.trim());
                continue;
            }
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let rest = rest.trim();
            let bad = |why: &str| format!("line {}: {word} {rest}: {why}", at + 1);
            let number = || rest.parse::<u64>().map_err(|_| bad("not a number"));
            match word {
                "seed" => quarry.seed = number()?,
                "machines" => quarry.machines = number()? as u32,
                "world" => quarry.world = Some(number()? as u32),
                "minutes" => quarry.length = Span::from_min(number()? as i64),
                "every" => quarry.every = Span::from_s(number()? as i64),
                "faults" => quarry.faults = rest.split(',').map(|name| name.trim().to_owned()).collect(),
                "keep" => {
                    let numbers = rest.split(',').filter(|word| !word.trim().is_empty());
                    let all: Result<Vec<u32>, _> = numbers.map(|word| word.trim().parse()).collect();
                    quarry.keep = Some(all.map_err(|_| bad("not a list of numbers"))?);
                }
                "fixed-by" => rest.clone_into(&mut fixed_by),
                _ => return Err(bad("unknown word")),
            }
        }
        if quarry.machines == 0 || quarry.length == Span::ZERO {
            return Err("machines and minutes have to be given".to_owned());
        }
        Ok(Self { quarry, wrong: wrong.join(" "), fixed_by })
    }

    /// Writes it.
    pub fn write(&self) -> String {
        let quarry = &self.quarry;
        let mut text = format!("# {}\nseed {}\nmachines {}\n", self.wrong, quarry.seed, quarry.machines);
        let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let mut line = |name: &str, value: String| {
            let written = writeln!(text, "{name} {value}");
            debug_assert!(written.is_ok(), "writing into a string does not fail");
        };
        if let Some(world) = quarry.world {
            line("world", world.to_string());
        }
        line("minutes", (quarry.length.ms / 60_000).to_string());
        line("every", (quarry.every.ms / 1000).to_string());
        if !quarry.faults.is_empty() {
            line("faults", quarry.faults.join(", "));
        }
        if let Some(keep) = &quarry.keep {
            line("keep", list(keep));
        }
        if !self.fixed_by.is_empty() {
            line("fixed-by", self.fixed_by.clone());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_file_reads_as_it_was_written() {
        let mut quarry = Quarry::new(4711, 50, Span::from_min(1440), Span::from_s(1800));
        quarry.faults = vec!["drip".to_owned(), "crash".to_owned()];
        (quarry.keep, quarry.world) = (Some(vec![3, 17]), Some(3));
        let seed = Seed { quarry, wrong: "It was wrong.".to_owned(), fixed_by: "a_test".to_owned() };
        assert_eq!(Seed::read(&seed.write()), Ok(seed));
    }

    #[test]
    fn a_bad_line_is_refused_with_its_number() {
        let read = |text| Seed::read(text).err().unwrap_or_default();
        assert_eq!(read("seed 1\nmachines x\n"), "line 2: machines x: not a number");
        assert_eq!(read("sead 1\n"), "line 1: sead 1: unknown word");
        assert!(read("seed 1\n").contains("machines and minutes"));
    }
}
