//! Arguments of `invite`, which lets a machine enrol.

use clap::{Args, ValueEnum};
use reveille_core::model::time::Span;
use reveille_wire::agent::Role;
use reveille_wire::duration::{self, DurationError};

pub(super) const EXAMPLES: &str = "\
Examples:
  reveille invite --pool workers                          one machine, within an hour
  reveille invite --pool workers --uses 20 --ttl 10m      twenty machines within ten minutes
  reveille invite --pool workers --machine i-0c2f9d2e     only this machine
  reveille invite --pool workers --machine w-3 --reimage  a known machine with a new disk, once its old agent is silent
  reveille invite --rotate-ca                             add the next authority; days later: --finish-rotation
  reveille invite --remove w-3                            revoke its certificate; undo with --readmit w-3
  reveille invite --machines                              list registered machines and the authority of their certificates
  reveille invite --list                                  list invitations; revoke a leaked token with --revoke ID

Asks the registration server on this host (`reveille run --listen`, same --state). The printed token is shown once and
not stored.";

/// `invite`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Invite {
    /// Pool of the machine
    #[arg(long, value_name = "NAME", group = "form")]
    pub(crate) pool: Option<String>,
    /// Roster, if several have a pool of that name
    #[arg(long, value_name = "ROSTER")]
    pub(crate) of: Option<String>,
    /// Only for this machine: instance id, machine id, system UUID, or name of its Node
    #[arg(long, value_name = "ID")]
    pub(crate) machine: Option<String>,
    /// The machine is known and has a new disk: give it a new key once its old agent is silent
    #[arg(long, requires = "machine")]
    pub(crate) reimage: bool,
    /// With --reimage: do not wait for the old agent to fall silent
    #[arg(long, requires = "reimage")]
    pub(crate) at_once: bool,
    /// Role of the machine; repeatable
    #[arg(long = "role", value_name = "ROLE", default_value = "worker")]
    pub(crate) roles: Vec<RoleName>,
    /// Lifetime of the invitation
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = ttl)]
    pub(crate) ttl: Span,
    /// Number of machines that may use it
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) uses: u32,
    /// Address of the server for machines [default: its first listen name]
    #[arg(long, value_name = "URL", value_parser = super::reached::server)]
    pub(crate) server: Option<String>,
    /// List invitations: state, pool, lifetime
    #[arg(long, group = "form")]
    pub(crate) list: bool,
    /// Revoke an invitation
    #[arg(long, value_name = "ID", group = "form", value_parser = invitation)]
    pub(crate) revoke: Option<String>,
    /// List registered machines: last contact, state, authority of the certificate
    #[arg(long, group = "form")]
    pub(crate) machines: bool,
    /// Add an authority; the old and the new one are accepted from now on
    #[arg(long, group = "form")]
    pub(crate) rotate_ca: bool,
    /// Retire all authorities but the newest; refused while a machine has no certificate from it
    #[arg(long, group = "form")]
    pub(crate) finish_rotation: bool,
    /// With --finish-rotation: even if machines are locked out
    #[arg(long, requires = "finish_rotation")]
    pub(crate) force: bool,
    /// Revoke the certificate of this machine and refuse it
    #[arg(long, value_name = "MACHINE", group = "form")]
    pub(crate) remove: Option<String>,
    /// With --remove: keep its Node away, but keep the machine registered
    #[arg(long, requires = "remove")]
    pub(crate) node: bool,
    /// Undo --remove for this machine
    #[arg(long, value_name = "MACHINE", group = "form")]
    pub(crate) readmit: Option<String>,
}

/// A role, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleName {
    /// API server and its controllers
    ControlPlane,
    /// Member of etcd
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

/// An id, or a whole token, of which the id is the middle part: an operator who revokes an invitation often has only the
/// token. The secret is dropped here.
fn invitation(text: &str) -> Result<String, String> {
    let id = text.strip_prefix("rvi1.").map_or(text, |rest| rest.split('.').next().unwrap_or(rest));
    let is_id = id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let wrong = || "write the invitation's id, 12 hex digits: reveille invite --list shows it".to_owned();
    is_id.then(|| id.to_ascii_lowercase()).ok_or_else(wrong)
}

/// Days are accepted here, and only here, because an invitation may last a month.
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
