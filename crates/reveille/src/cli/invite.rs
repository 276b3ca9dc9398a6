//! `invite`: a machine is asked to come.

use clap::{Args, ValueEnum};
use reveille_core::model::time::Span;
use reveille_wire::agent::Role;
use reveille_wire::duration::{self, DurationError};

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille invite --pool workers                          one machine, within an hour
  reveille invite --pool workers --uses 20 --ttl 10m      twenty of them, as they start
  reveille invite --pool workers --machine i-0c2f9d2e     that machine and no other
  reveille invite --pool workers --machine w-3 --reimage  a machine that was made anew, when the old one is silent
  reveille invite --rotate-ca                             introduce the next authority; days later: --finish-rotation
  reveille invite --remove w-3                            its certificate counts no more; --readmit w-3 takes that back
  reveille invite --machines                              all machines that registered, and who signed their certificates
  reveille invite --list                                  all invitations; --revoke ID takes one back whose token leaked

Asks the server of `reveille run --listen` on this host, with the same --state. Prints what to do on the machine; the token
in it is shown once and kept nowhere.";

/// `invite`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Invite {
    /// The pool that the machine is to be of
    #[arg(long, value_name = "NAME", group = "form")]
    pub(crate) pool: Option<String>,
    /// The roster, where more than one has a pool of that name
    #[arg(long, value_name = "ROSTER")]
    pub(crate) of: Option<String>,
    /// For this machine alone: instance id, machine id, system UUID, or the name of its node
    #[arg(long, value_name = "ID")]
    pub(crate) machine: Option<String>,
    /// It is a machine that is known, made anew: it gets a new key when the old one is silent
    #[arg(long, requires = "machine")]
    pub(crate) reimage: bool,
    /// With --reimage: at once, because the old one is certainly no more
    #[arg(long, requires = "reimage")]
    pub(crate) at_once: bool,
    /// What it is to run; may be given several times
    #[arg(long = "role", value_name = "ROLE", default_value = "worker")]
    pub(crate) roles: Vec<RoleName>,
    /// How long the invitation lasts
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = ttl)]
    pub(crate) ttl: Span,
    /// How often it may be used
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) uses: u32,
    /// Where machines reach the server [default: the first name it listens under]
    #[arg(long, value_name = "URL", value_parser = super::reached::server)]
    pub(crate) server: Option<String>,
    /// List the invitations: whether they open, for what and how long
    #[arg(long, group = "form")]
    pub(crate) list: bool,
    /// Take an invitation back: nobody comes in by its token any more
    #[arg(long, value_name = "ID", group = "form", value_parser = invitation)]
    pub(crate) revoke: Option<String>,
    /// List the machines: when each was heard, whether it is there or removed, and by which authority its certificate is
    #[arg(long, group = "form")]
    pub(crate) machines: bool,
    /// Introduce another authority; old and new are both accepted and printed from then on
    #[arg(long, group = "form")]
    pub(crate) rotate_ca: bool,
    /// Retire all authorities but the newest; refused while a machine has no certificate of that one
    #[arg(long, group = "form")]
    pub(crate) finish_rotation: bool,
    /// With --finish-rotation: also when machines are locked out by that
    #[arg(long, requires = "finish_rotation")]
    pub(crate) force: bool,
    /// Let this machine in no more
    #[arg(long, value_name = "MACHINE", group = "form")]
    pub(crate) remove: Option<String>,
    /// With --remove: its node is to stay away; the machine itself is still known
    #[arg(long, requires = "remove")]
    pub(crate) node: bool,
    /// Let this machine in again
    #[arg(long, value_name = "MACHINE", group = "form")]
    pub(crate) readmit: Option<String>,
}

/// A role, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleName {
    /// The API server and its controllers
    ControlPlane,
    /// A member of etcd
    Etcd,
    /// Workloads
    Worker,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::ControlPlane => Self::ControlPlane,
            RoleName::Etcd => Self::Etcd,
            RoleName::Worker => Self::Worker,
        }
    }
}

/// An id, or the token that it is the middle of: who took one back has often only that at hand. The secret goes no further.
fn invitation(text: &str) -> Result<String, String> {
    let id = text.strip_prefix("rvi1.").map_or(text, |rest| rest.split('.').next().unwrap_or(rest));
    let is_id = id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let wrong = || "write the invitation's id, 12 hex digits: reveille invite --list shows it".to_owned();
    is_id.then(|| id.to_ascii_lowercase()).ok_or_else(wrong)
}

/// Days are told here, where they are what people mean: an invitation may last a month.
fn ttl(text: &str) -> Result<Span, String> {
    let days = text.trim().strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let span = match days {
        Some(days) => Span::from_min(i64::from(days) * 24 * 60),
        None => duration::parse(text).map_err(|error| unread(text, error))?,
    };
    if span < Span::from_min(1) {
        return Err("at least 1m".to_owned());
    }
    if span > Span::from_min(30 * 24 * 60) {
        return Err("at most 30d".to_owned());
    }
    Ok(span)
}

fn unread(text: &str, error: DurationError) -> String {
    match text.trim().parse::<u32>() {
        Ok(seconds) => {
            let (plain, short) = (format!("{seconds}s"), duration::text(Span::from_s(seconds.into())));
            if plain == short { format!("write {plain}") } else { format!("write {plain} or {short}") }
        }
        Err(_) => format!("it {error}; write a time such as 90s, 15m, 1h30m or 7d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_cannot_be_meant_says_what_to_write() {
        for (text, said) in [
            ("3600", "write 3600s or 1h"),
            ("45", "write 45s"),
            ("400d", "at most 30d"),
            ("721h", "at most 30d"),
            ("10s", "at least 1m"),
            ("soon", "it is not a length of time; write a time such as 90s, 15m, 1h30m or 7d"),
        ] {
            assert_eq!(ttl(text), Err(said.to_owned()), "{text}");
        }
        assert_eq!((ttl("30d"), ttl("1h30m")), (Ok(Span::from_min(43_200)), Ok(Span::from_min(90))));
    }
}
