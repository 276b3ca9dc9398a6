//! Enrolment: the agent asks until it is enrolled, or until asking again is useless, and reports the progress meanwhile.
//!
//! Only this machine sees what stands between it and the server (a captive portal, a proxy, another server). An agent
//! that retries in silence looks like one that does nothing. So the agent reports a failed try: what it tried, what came
//! back, and when it tries again. It reports the first failure and each new cause, and the same cause again after pauses
//! that double.
//!
//! A machine whose certificate does not count any more enrols again if it was given an invitation. It keeps its old
//! credentials until then.

use std::path::Path;
use std::time::Duration;

use reveille_core::diagnose::console::{MASK, mask_secrets};
use reveille_core::model::id::NodeName;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Facts, Identity, Reason, Secret};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{AgentError, Heard, Setup};
use crate::driver::now;
use crate::link::{Enrolment, Keyring, KeyringError, Link, LinkError};
use crate::pause::Pause;

/// The first pause after which the same cause is reported again; the pause doubles each time.
const TOLD_AGAIN: Duration = Duration::from_secs(1);
const TOLD_AGAIN_MOST: Duration = Duration::from_secs(15 * 60);

/// Asks to be enrolled until the server agrees, or until asking again is useless.
pub(super) async fn enrol(
    setup: &Setup,
    folder: &Path,
    identity: &Identity,
    name: Option<NodeName>,
    heard: &mpsc::Sender<Heard>,
) -> Result<Keyring, AgentError> {
    let (Some(link), Some(invitation)) = (&setup.link, &setup.invitation) else {
        return Err(AgentError::NotEnrolled);
    };
    let name = name.map(|name| Word::cut(name.as_str()));
    let wish = Enrolment::kept(folder, identity.clone(), setup.facts.clone(), name);
    let wish = wish.map_err(AgentError::Refused)?;
    let (mut pause, mut tries) = (Pause::default(), Tries::default());
    loop {
        match wish.ask(link, invitation, now()).await {
            Ok((credential, kept)) => {
                let keyring = Keyring::keep(folder, credential, kept)?;
                Enrolment::forget(folder);
                return Ok(keyring);
            }
            Err(failure) if failure.is_final() => {
                // A server with another key is not the registration server, and its answer says nothing about the
                // enrolment.
                if !matches!(failure.reason(), Some(Reason::CaPinMismatch { .. })) {
                    Enrolment::forget(folder);
                }
                return Err(AgentError::Refused(failure));
            }
            Err(failure) => {
                let next = pause.next(failure.retry_after_s());
                // The answer may quote what the agent sent.
                let cause = failure.with_causes().replace(invitation.expose(), MASK);
                if let Some(number) = tries.failed(&cause, Instant::now()) {
                    let (cause, again_s) = (mask_secrets(&cause), next.as_secs_f64().ceil());
                    let told = format!(
                        "try {number} to be enrolled at {} failed: {cause}; again in {again_s} s",
                        link.server
                    );
                    heard.try_send(Heard::Down(told)).ok();
                }
                sleep(next).await;
            }
        }
    }
}

/// An invitation for a machine whose certificate does not count any more. After one refusal it is useless: each further
/// try might count against it, and another invitation needs another start of the agent.
pub(super) struct Reenrol {
    link: Link,
    invitation: Secret,
    name: Option<Word>,
}

/// Why the machine was not enrolled again.
#[derive(Debug, Error)]
pub(super) enum ReenrolError {
    #[error("{0}")]
    Link(LinkError),
    #[error(transparent)]
    Keyring(#[from] KeyringError),
}

impl Reenrol {
    pub(super) fn of(setup: &Setup, name: Option<NodeName>) -> Option<Self> {
        let (link, invitation) = (setup.link.clone()?, setup.invitation.clone()?);
        Some(Self { link, invitation, name: name.map(|name| Word::cut(name.as_str())) })
    }

    /// Tries once. The keyring in this folder is replaced only when the server admits the machine.
    pub(super) async fn enrol(
        &self,
        folder: &Path,
        identity: &Identity,
        facts: &Facts,
    ) -> Result<Keyring, ReenrolError> {
        let wish = Enrolment::kept(folder, identity.clone(), facts.clone(), self.name.clone());
        let asked = match wish {
            Ok(wish) => wish.ask(&self.link, &self.invitation, now()).await,
            Err(failure) => Err(failure),
        };
        let (credential, kept) = asked.map_err(ReenrolError::Link)?;
        let keyring = Keyring::keep(folder, credential, kept)?;
        Enrolment::forget(folder);
        Ok(keyring)
    }

    /// The reason, for people. The answer may quote what the agent sent.
    pub(super) fn told(&self, failure: &ReenrolError) -> String {
        let cause = match failure {
            ReenrolError::Link(failure) => failure.with_causes(),
            ReenrolError::Keyring(failure) => failure.to_string(),
        };
        let cause = cause.replace(self.invitation.expose(), MASK);
        let cause = mask_secrets(&cause);
        format!(
            "its certificate is no longer valid, and enrolling again at {} failed: {cause}",
            self.link.server
        )
    }
}

/// The machine's certificate does not count any more, and waiting does not help. A certificate that is not valid yet is
/// not such a case: it counts later, and an invitation used for it would be missing elsewhere.
pub(super) const fn counts_no_more(failure: &LinkError) -> bool {
    let LinkError::Refused(refused) = failure else { return false };
    matches!(
        refused.reason,
        Reason::CertificateUnknown
            | Reason::CertificateExpired
            | Reason::CertificateRevoked
            | Reason::MachineForgotten
    )
}

/// The server says that this certificate does not count, or not yet. Other failures say nothing about it: a host that
/// stands between could else send the agent back to a certificate that ends sooner.
pub(super) const fn refuses_key(failure: &LinkError) -> bool {
    let LinkError::Refused(refused) = failure else { return false };
    counts_no_more(failure) || matches!(refused.reason, Reason::CertificateNotYetValid)
}

/// Which failures are reported.
#[derive(Debug)]
struct Tries {
    number: u64,
    cause: String,
    quiet: Duration,
    quiet_until: Option<Instant>,
}

impl Default for Tries {
    fn default() -> Self {
        Self { number: 0, cause: String::new(), quiet: TOLD_AGAIN, quiet_until: None }
    }
}

impl Tries {
    /// The number of the try, if this failure has to be reported.
    fn failed(&mut self, cause: &str, at: Instant) -> Option<u64> {
        self.number += 1;
        if self.cause != cause {
            cause.clone_into(&mut self.cause);
            (self.quiet, self.quiet_until) = (TOLD_AGAIN, None);
        }
        if self.quiet_until.is_some_and(|until| at < until) {
            return None;
        }
        self.quiet_until = Some(at + self.quiet);
        self.quiet = (self.quiet * 2).min(TOLD_AGAIN_MOST);
        Some(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_counts_later_uses_no_invitation() {
        let counts = |reason: Reason| !counts_no_more(&LinkError::refused(reason));
        assert!(counts(Reason::CertificateNotYetValid) && counts(Reason::Unavailable));
        assert!(!counts(Reason::CertificateUnknown) && !counts(Reason::CertificateExpired));
    }

    #[test]
    fn refused_next_key_falls_back_to_previous_key_for_four_reasons() {
        for reason in [
            Reason::CertificateUnknown,
            Reason::CertificateExpired,
            Reason::CertificateNotYetValid,
            Reason::CertificateRevoked,
        ] {
            assert!(refuses_key(&LinkError::refused(reason)));
        }
        assert!(!refuses_key(&LinkError::refused(Reason::Unavailable)));
        let (server, what) = ("10.0.0.1:9464".to_owned(), "a portal".to_owned());
        assert!(!refuses_key(&LinkError::Tls { server, what }));
    }

    #[test]
    fn repeated_failure_is_told_at_doubling_pauses_new_one_at_once() {
        let (mut tries, began) = (Tries::default(), Instant::now());
        let told = |tries: &mut Tries, cause: &str, from_s: u64, to_s: u64| {
            let each = (from_s..to_s).step_by(60).map(|s| (s, began + Duration::from_secs(s)));
            each.filter(|(_, at)| tries.failed(cause, *at).is_some()).map(|(s, _)| s / 60).collect::<Vec<_>>()
        };
        let hours = told(&mut tries, "a portal", 0, 4 * 3_600);
        assert_eq!(hours[..8], [0, 1, 2, 3, 4, 5, 6, 8], "once a minute at first");
        assert!(hours.len() < 30 && hours.windows(2).all(|two| two[1] - two[0] <= 15), "{hours:?}");
        assert_eq!(told(&mut tries, "another", 15_000, 15_001).len(), 1);
    }
}
