//! What an operator may set, checked once: only [`Settings::check`] makes a [`Config`].
//!
//! A setting that cannot work is refused. A setting that would work badly and has one obvious right value is raised to
//! it, with a warning that names both. Example: a peer that is asked about this machine asks the API server itself before
//! it answers. With a peer timeout below that of the API server, no peer answers in time, and the agent concludes that it
//! is alone.

use std::fmt;

use reveille_core::model::time::Span;
use thiserror::Error;

/// The settings; [`Settings::default`] gives the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The interval between two checks of the API server.
    pub check_every: Span,
    /// The timeout of a check of the API server.
    pub api_timeout: Span,
    /// The number of failed checks in a row before the agent asks peers.
    pub failures: u32,
    /// The timeout of a peer's answer.
    pub peer_timeout: Span,
    /// With fewer known peers than this, the agent does nothing. 0: the agent also acts without peers.
    pub min_peers: u32,
    /// The agent asks at most this many peers at once.
    pub peers_asked: u32,
    /// The first pause between two rounds of asking; it doubles each time.
    pub ask_again: Span,
    /// A watchdog that is not fed for this span reboots the machine.
    pub watchdog_timeout: Span,
    /// A reboot that did not happen within this span after the request has failed.
    pub reboot_within: Span,
    /// The agent reboots the machine at most this often in a day.
    pub reboots_a_day: u32,
    /// The interval between two inspections of the Node and its credentials.
    pub inspect_every: Span,
    /// The number of equal readings in a row before credentials count as stale.
    pub stale_readings: u32,
    /// The number of attempts to rejoin before the agent asks an operator.
    pub attempts: u32,
    /// The first pause after a failed attempt; it doubles each time.
    pub backoff: Span,
    /// The longest pause between two attempts.
    pub backoff_max: Span,
    /// The time within which a Node has to come back, or the attempt failed.
    pub back_within: Span,
    /// A Node that is Ready for this span counts as stable.
    pub dwell: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            check_every: Span::from_s(15),
            api_timeout: Span::from_s(5),
            failures: 3,
            peer_timeout: Span::from_s(10),
            min_peers: 1,
            peers_asked: 7,
            ask_again: Span::from_s(30),
            watchdog_timeout: Span::from_s(60),
            reboot_within: Span::from_min(3),
            reboots_a_day: 2,
            inspect_every: Span::from_s(30),
            stale_readings: 3,
            attempts: 5,
            backoff: Span::from_min(1),
            backoff_max: Span::from_min(15),
            back_within: Span::from_min(4),
            dwell: Span::from_min(2),
        }
    }
}

/// A peer's timeout exceeds the API server's timeout by this: the peer asks the API server, and its answer travels too.
pub const TRAVEL: Span = Span::from_s(2);

/// Settings that can work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config(Settings);

/// A value that was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The peers' timeout that was set.
    pub set: Span,
    /// The value that it is raised to.
    pub raised_to: Span,
    /// The API server's timeout.
    pub api_timeout: Span,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |span: Span| format!("{}.{} s", span.ms / 1000, span.ms % 1000 / 100);
        write!(
            f,
            "peer-timeout of {} is too short: a peer asks the API server itself, which may take {}, and its answer travels {}; raised to {}",
            s(self.set),
            s(self.api_timeout),
            s(TRAVEL),
            s(self.raised_to)
        )
    }
}

/// Settings that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// A time that makes a busy loop, or no deadline at all.
    #[error("agent setting {name} is {value}; write a time of at least 1 s and at most 1 h")]
    Time {
        /// The setting's name.
        name: &'static str,
        /// The setting's value.
        value: Span,
    },
    /// A count out of its range.
    #[error("agent setting {name} is {value}; write {least} to {most}")]
    Count {
        /// The setting's name.
        name: &'static str,
        /// The setting's value.
        value: u32,
        /// The smallest allowed value.
        least: u32,
        /// The largest allowed value.
        most: u32,
    },
    /// The watchdog would fire between two checks.
    #[error(
        "agent setting watchdog-timeout is {timeout}, and the API server is checked every {every}; a watchdog is fed three times within its timeout, so write at least 10 s"
    )]
    Watchdog {
        /// The watchdog's timeout.
        timeout: Span,
        /// The interval between two checks.
        every: Span,
    },
}

impl Settings {
    /// Refuses settings that cannot work, and raises settings that would work badly.
    ///
    /// # Errors
    ///
    /// The first setting that cannot work.
    pub fn check(mut self) -> Result<(Config, Vec<Warning>), SettingsError> {
        for (name, value) in self.times() {
            if value < Span::from_s(1) || value > Span::from_min(60) {
                return Err(SettingsError::Time { name, value });
            }
        }
        for (name, value, least, most) in self.counts() {
            if value < least || value > most {
                return Err(SettingsError::Count { name, value, least, most });
            }
        }
        if self.watchdog_timeout < Span::from_s(10) {
            return Err(SettingsError::Watchdog { timeout: self.watchdog_timeout, every: self.check_every });
        }
        let least = self.api_timeout + TRAVEL;
        let mut warnings = Vec::new();
        if self.peer_timeout < least {
            warnings.push(Warning {
                set: self.peer_timeout,
                raised_to: least,
                api_timeout: self.api_timeout,
            });
            self.peer_timeout = least;
        }
        Ok((Config(self), warnings))
    }

    const fn times(&self) -> [(&'static str, Span); 11] {
        [
            ("check-every", self.check_every),
            ("api-timeout", self.api_timeout),
            ("peer-timeout", self.peer_timeout),
            ("ask-again", self.ask_again),
            ("watchdog-timeout", self.watchdog_timeout),
            ("reboot-within", self.reboot_within),
            ("inspect-every", self.inspect_every),
            ("backoff", self.backoff),
            ("backoff-max", self.backoff_max),
            ("back-within", self.back_within),
            ("dwell", self.dwell),
        ]
    }

    const fn counts(&self) -> [(&'static str, u32, u32, u32); 6] {
        [
            ("failures", self.failures, 2, 100),
            ("min-peers", self.min_peers, 0, 100),
            ("peers-asked", self.peers_asked, 3, 100),
            ("reboots-a-day", self.reboots_a_day, 0, 24),
            ("stale-readings", self.stale_readings, 2, 100),
            ("attempts", self.attempts, 1, 20),
        ]
    }
}

impl Config {
    /// The settings as they are in force.
    pub const fn settings(&self) -> &Settings {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_need_no_warning() {
        assert_eq!(Settings::default().check().map(|(_, warnings)| warnings), Ok(Vec::new()));
    }

    #[test]
    fn peer_timeout_below_api_timeout_is_raised_with_warning() {
        for (api, peer, raised) in [(5, 3, Some(7)), (5, 6, Some(7)), (5, 7, None), (20, 10, Some(22))] {
            let (api_timeout, peer_timeout) = (Span::from_s(api), Span::from_s(peer));
            let settings = Settings { api_timeout, peer_timeout, ..Settings::default() };
            let (config, warnings) = settings.check().unwrap();
            let wanted = Span::from_s(raised.unwrap_or(peer));
            assert_eq!(config.settings().peer_timeout, wanted);
            assert_eq!(warnings.len(), usize::from(raised.is_some()));
            for warning in warnings {
                let text = warning.to_string();
                assert!(text.contains(&format!("of {peer}.0 s")), "{text}");
                assert!(text.contains(&format!("raised to {}.0 s", wanted.ms / 1000)), "{text}");
            }
        }
    }

    #[test]
    fn what_cannot_work_is_refused_by_its_name() {
        let refused = |settings: Settings| settings.check().unwrap_err().to_string();
        let default = Settings::default();
        assert!(refused(Settings { check_every: Span::ZERO, ..default }).contains("check-every"));
        assert!(refused(Settings { dwell: Span::from_min(61), ..default }).contains("dwell"));
        assert!(refused(Settings { failures: 1, ..default }).contains("failures"));
        assert!(refused(Settings { peers_asked: 2, ..default }).contains("peers-asked"));
        assert!(refused(Settings { stale_readings: 1, ..default }).contains("stale-readings"));
        let soon = Settings { watchdog_timeout: Span::from_s(5), ..default };
        assert!(refused(soon).contains("watchdog-timeout"));
    }
}
