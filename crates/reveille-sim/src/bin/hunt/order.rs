//! The command line of the hunt.

use std::time::Duration;

use reveille_core::model::time::Span;
use reveille_sim::hunt::Quarry;

pub(crate) const USAGE: &str = "hunt: random courses of faults, judged, shrunk and reported

  --hours H          for so long (a fraction is fine)
  --runs N           so many seeds
  --from SEED        the first of them (0)
  --machines M       machines in each world (50)
  --minutes T        virtual minutes in which things happen (1440)
  --every S          seconds between two happenings, in the mean (1800)
  --faults A,B       only these; see --list
  --list             every fault there is
  --digest           prints a hash of each seed's run, and shrinks nothing: compare before and after a change of structure
  --replay FILE      plays one seed file and tells its story
";

pub(crate) enum Order {
    Help,
    Faults,
    Replay(String),
    Hunt(Hunt),
}

/// Which seeds, for how long, and what is told of each.
pub(crate) struct Hunt {
    pub(crate) from: u64,
    pub(crate) runs: Option<u64>,
    pub(crate) within: Option<Duration>,
    /// Print the hash of each run, in place of its shrunk failure.
    pub(crate) digests: bool,
    /// Everything but the seed.
    pub(crate) like: Quarry,
}

pub(crate) fn read(words: &[String]) -> Result<Order, String> {
    let mut quarry = Quarry::new(0, 50, Span::from_min(1440), Span::from_s(1800));
    let (mut from, mut runs, mut within, mut digests) = (0, None, None, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--help" | "-h" => return Ok(Order::Help),
            "--list" => return Ok(Order::Faults),
            "--digest" => digests = true,
            "--replay" => return Ok(Order::Replay(value()?.clone())),
            "--from" => from = number(word, value()?)?,
            "--runs" => runs = Some(number(word, value()?)?),
            "--machines" => quarry.machines = number(word, value()?)? as u32,
            "--minutes" => quarry.length = Span::from_min(number(word, value()?)? as i64),
            "--every" => quarry.every = Span::from_s(number(word, value()?)? as i64),
            "--faults" => quarry.faults = value()?.split(',').map(|name| name.trim().to_owned()).collect(),
            "--hours" => {
                let hours: f64 = value()?.parse().map_err(|_| "--hours wants a number".to_owned())?;
                within = Some(Duration::try_from_secs_f64(hours * 3600.0).map_err(|e| e.to_string())?);
            }
            _ => return Err(format!("{word} is not known; see --help")),
        }
    }
    if runs.is_none() && within.is_none() {
        return Err("--hours or --runs has to be given; see --help".to_owned());
    }
    Ok(Order::Hunt(Hunt { from, runs, within, digests, like: quarry }))
}

fn number(word: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{word} {value}: not a number"))
}
