//! The properties of the output: its width, its colours, its time zone.

use std::fmt;
use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use reveille_core::model::time::Time;

use crate::cli::Color;
use crate::cli::failure::printable;

/// The properties of the output.
#[derive(Clone, Debug)]
pub(crate) struct Paper {
    /// Characters in a line; `None`: without a limit.
    pub(crate) width: Option<u16>,
    /// Colours may be used.
    pub(crate) colored: bool,
    /// The time zone of the times.
    pub(crate) zone: TimeZone,
}

/// The meaning of a piece of text, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A machine is missing or not Ready, or something failed.
    Bad,
    /// The state is unknown, or a repair is blocked.
    Doubt,
    /// A healthy state, or a success.
    Good,
    /// A detail of little weight.
    Faint,
    /// The first thing to read.
    Strong,
}

impl Tone {
    const fn style(self) -> Style {
        match self {
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Doubt => AnsiColor::Yellow.on_default(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Faint => Style::new().dimmed(),
            Self::Strong => Style::new().bold(),
        }
    }
}

impl Paper {
    /// The properties of standard output.
    pub(crate) fn of_stdout(color: Color) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let colored = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
                terminal && wanted && !dumb
            }
        };
        let width = terminal.then(terminal_width).flatten();
        Self { width, colored, zone: TimeZone::system() }
    }

    /// A text in its tone.
    pub(crate) fn tone(&self, tone: Tone, text: impl fmt::Display) -> String {
        if self.colored {
            let style = tone.style();
            format!("{style}{text}{style:#}")
        } else {
            text.to_string()
        }
    }

    /// A time for a person who reads it at `now`: the time of day, with the date when it is another day.
    pub(crate) fn clock(&self, at: Time, now: Time) -> String {
        let (at, now) = (self.zoned(at), self.zoned(now));
        match (at, now) {
            (Some(at), Some(now)) if at.date() == now.date() => at.strftime("%H:%M:%S").to_string(),
            (Some(at), _) => at.strftime("%Y-%m-%d %H:%M").to_string(),
            (None, _) => "?".to_owned(),
        }
    }

    fn zoned(&self, time: Time) -> Option<jiff::Zoned> {
        Timestamp::from_millisecond(time.ms).ok().map(|at| at.to_zoned(self.zone.clone()))
    }
}

/// The terminal's columns; a terminal narrower than forty columns wraps lines itself.
fn terminal_width() -> Option<u16> {
    comfy_table::Table::new().width().filter(|columns| *columns >= 40)
}

/// A foreign text on one line, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let flat: Vec<&str> = text.split_whitespace().collect();
    printable(&flat.join(" "))
}
