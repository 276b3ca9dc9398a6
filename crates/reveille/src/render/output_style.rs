//! What a page is written on: how wide, in colours or not, in which time zone.

use std::fmt;
use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use reveille_core::model::time::Time;

use crate::cli::Color;
use crate::cli::failure::printable;

/// What a page is written on.
#[derive(Clone, Debug)]
pub(crate) struct Paper {
    /// Characters in a line; `None`: as long as they come.
    pub(crate) width: Option<u16>,
    /// Colours may be used.
    pub(crate) colored: bool,
    /// Whose clock times are shown in.
    pub(crate) zone: TimeZone,
}

/// What a piece of text is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Somebody is absent, something failed.
    Bad,
    /// It cannot be told, or is held.
    Doubt,
    /// It is well.
    Good,
    /// Beside the point.
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
    /// The paper that standard output is.
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

    /// A moment as a person near `now` reads it: the time of day, with the date when it is not today.
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

/// The terminal's columns; a narrower one than forty is left to wrap as it likes.
fn terminal_width() -> Option<u16> {
    comfy_table::Table::new().width().filter(|columns| *columns >= 40)
}

/// A foreign text on one line, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let flat: Vec<&str> = text.split_whitespace().collect();
    printable(&flat.join(" "))
}
