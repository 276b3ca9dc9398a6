//! Single values: text, numbers, shares, lengths of time, switches, modes, networks, paths.
//!
//! Each reader takes a [`Field`] and returns the value, or adds a complaint and returns nothing. The readers are strict
//! where a lenient reading could do harm, and say what to write: a share needs its `%`, a length of time its unit. They
//! accept one other spelling: a mode of `off` that a tool between author and file turned into `false` or `no`. It can only
//! mean the same, and it is the harmless direction. They refuse `on`, because it does not say how far repairs may go.
//!
//! [`scalar`] is the way back: text as a value of a proposed roster.

use std::num::IntErrorKind;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use reveille_core::model::hidden::is_hidden;
use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;

use super::complaint::{Complaints, quote};
use super::section::Field;
use super::tree::Kind;
use crate::duration::{self, DurationError};

/// A longer time is a typing mistake.
pub(super) const SPAN_MAX: Span = Span::from_min(30 * 24 * 60);

impl<'t> Field<'t> {
    /// The scalar as written. `what` names the expected value, for the complaint.
    fn scalar(&self, what: &str, complaints: &mut Complaints) -> Option<&'t str> {
        match &self.tree.kind {
            Kind::Text(text) => Some(text),
            Kind::Nothing => {
                complaints.add(&self.spot, "it has no value", format!("write {what}"));
                None
            }
            Kind::List(_) | Kind::Map(_) => {
                complaints.add(
                    &self.spot,
                    format!("{} stands where {what} belongs", self.tree.noun()),
                    format!("write {what}"),
                );
                None
            }
        }
    }

    /// Text that is not empty, without blanks around it and without control characters.
    pub(super) fn text(&self, what: &str, complaints: &mut Complaints) -> Option<&'t str> {
        let text = self.scalar(what, complaints)?;
        if text.trim().is_empty() {
            complaints.add(&self.spot, "it is empty", format!("write {what}"));
            return None;
        }
        if text != text.trim() || text.chars().any(is_hidden) {
            let wrong = format!("{} has blanks around it or hidden characters in it", quote(text));
            complaints.add(&self.spot, wrong, "take them out");
            return None;
        }
        Some(text)
    }

    /// A name that the roster defines: lower-case letters, digits, `-` and `.`, at most 63 characters.
    pub(super) fn name(&self, what: &str, complaints: &mut Complaints) -> Option<&'t str> {
        let text = self.text(what, complaints)?;
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let fits = text.len() <= 63
            && text.chars().all(|c| inner(c) || c == '-' || c == '.')
            && text.starts_with(inner)
            && text.ends_with(inner);
        if !fits {
            complaints.add(
                &self.spot,
                format!("{} cannot be a name", quote(text)),
                "use lower-case letters, digits, \"-\" and \".\", at most 63, beginning and ending with a letter or digit",
            );
            return None;
        }
        Some(text)
    }

    /// A whole number between `min` and `max`. `at_min` says what to write instead of a number that is too small.
    pub(super) fn count(
        &self,
        (min, max): (u32, u32),
        too_small: &str,
        complaints: &mut Complaints,
    ) -> Option<u32> {
        let text = self.scalar("a whole number", complaints)?;
        let range = format!("write a whole number from {min} to {max}");
        let (wrong, instead) = match text.parse::<i64>() {
            Ok(number) if number < 0 => ("is negative", range),
            Ok(number) if number < i64::from(min) => ("is too small", too_small.to_owned()),
            Ok(number) if number <= i64::from(max) => return u32::try_from(number).ok(),
            Err(error) if *error.kind() != IntErrorKind::PosOverflow => ("is not a whole number", range),
            Ok(_) | Err(_) => ("is too large", format!("write at most {max}")),
        };
        complaints.add(&self.spot, format!("{} {wrong}", quote(text)), instead);
        None
    }

    /// A share from 1 % to 100 %.
    pub(super) fn share_pct(&self, complaints: &mut Complaints) -> Option<u8> {
        let text = self.scalar("a share such as 30%", complaints)?;
        let Some(number) = text.strip_suffix('%') else {
            let instead = match text.parse::<f64>() {
                Ok(share) if share > 0.0 && share < 1.0 => format!("write {}%", (share * 100.0).round()),
                Ok(share) if (1.0..=100.0).contains(&share) => {
                    format!("if a share is meant, write {}%", share.round())
                }
                _ => "write a share from 1% to 100%".to_owned(),
            };
            complaints.add(&self.spot, format!("{} is not a share", quote(text)), instead);
            return None;
        };
        match number.trim().parse::<u8>() {
            Ok(pct @ 1..=100) => Some(pct),
            _ => {
                let wrong = format!("{} is not a whole share from 1% to 100%", quote(text));
                complaints.add(&self.spot, wrong, "write one, such as 30%");
                None
            }
        }
    }

    /// A length of time from `min` to [`SPAN_MAX`]; `why` tells what is wrong with a shorter one.
    pub(super) fn span(&self, min: Span, why: &str, complaints: &mut Complaints) -> Option<Span> {
        let text = self.scalar("a length of time such as 15m", complaints)?;
        match duration::parse(text) {
            Ok(span) if span > SPAN_MAX => {
                let wrong = format!("{} is longer than 30 days", quote(text));
                complaints.add(&self.spot, wrong, "write a shorter time");
                None
            }
            Ok(span) if span < min => {
                let instead = format!("write {} or more: {why}", duration::text(min));
                complaints.add(&self.spot, format!("{} is too short", quote(text)), instead);
                None
            }
            Ok(span) => Some(span),
            Err(error) => {
                let instead = match error {
                    DurationError::NoUnit => format!("add one: {text}s, {text}m or {text}h"),
                    DurationError::Negative | DurationError::Unread => {
                        "write hours, minutes and seconds, such as 90s, 15m or 1h30m".to_owned()
                    }
                };
                complaints.add(&self.spot, format!("{} {error}", quote(text)), instead);
                None
            }
        }
    }

    /// True or false, and no other word.
    pub(super) fn switch(&self, complaints: &mut Complaints) -> Option<bool> {
        let text = self.scalar("true or false", complaints)?;
        match text {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                let instead = match text.to_ascii_lowercase().as_str() {
                    "yes" | "y" | "on" | "true" | "1" => "write true",
                    "no" | "n" | "off" | "false" | "0" => "write false",
                    _ => "write true or false",
                };
                complaints.add(&self.spot, format!("{} is neither true nor false", quote(text)), instead);
                None
            }
        }
    }

    /// The mode of a repair: `off`, `propose`, `act`.
    pub(super) fn mode(&self, complaints: &mut Complaints) -> Option<Mode> {
        let text = self.scalar("off, propose or act", complaints)?;
        match text {
            "off" => return Some(Mode::Off),
            "propose" => return Some(Mode::Propose),
            "act" => return Some(Mode::Act),
            _ => {}
        }
        let instead = match text.to_ascii_lowercase().as_str() {
            "off" | "false" | "no" | "n" => return Some(Mode::Off),
            "on" | "true" | "yes" | "y" => {
                "say how far: act (done), propose (told, not done) or off (skipped)"
            }
            _ => "write off, propose or act",
        };
        complaints.add(&self.spot, format!("{} is not a mode", quote(text)), instead);
        None
    }

    /// A network written with its first address.
    pub(super) fn network(&self, complaints: &mut Complaints) -> Option<IpNet> {
        let text = self.text("a network such as 10.244.0.0/16", complaints)?;
        let Ok(net) = text.parse::<IpNet>() else {
            let instead = match text.parse::<std::net::IpAddr>() {
                Ok(_) => format!("add its prefix length, as in {text}/16"),
                Err(_) => "write address and prefix length, such as 10.244.0.0/16 or fd00:10::/56".to_owned(),
            };
            complaints.add(&self.spot, format!("{} is not a network", quote(text)), instead);
            return None;
        };
        if net.prefix_len() == 0 {
            complaints.add(
                &self.spot,
                format!("{net} is every address"),
                "write the cluster's own pod range",
            );
            return None;
        }
        if net != net.trunc() {
            let wrong = format!("{net} is an address within a network, not the network");
            complaints.add(&self.spot, wrong, format!("write {}", net.trunc()));
            return None;
        }
        Some(net)
    }

    /// A path: unchanged when absolute, under `home` after `~/`, else under `dir`.
    pub(super) fn path(
        &self,
        dir: &Path,
        home: Option<&Path>,
        complaints: &mut Complaints,
    ) -> Option<PathBuf> {
        let text = self.text("a path", complaints)?;
        match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => Some(home.join(rest)),
            (None, _) if !text.starts_with('~') => Some(dir.join(text)),
            _ => {
                let wrong = format!("the home directory in {} is not known", quote(text));
                complaints.add(&self.spot, wrong, "write the path from the root");
                None
            }
        }
    }
}

/// True for text in the form of a UUID.
pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.chars().enumerate().all(|(index, c)| match index {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        })
}

/// A scalar that every YAML version reads as this text: plain where that is certain, quoted otherwise.
pub(super) fn scalar(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let continues = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
    if begins && continues && !WORDS.contains(&text.to_ascii_lowercase().as_str()) {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}
