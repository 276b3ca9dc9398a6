//! The settings and every bound of the registry: one struct, passed explicitly.

use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;

/// Bounds and periods, with the defaults that [`Settings::default`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The maximum number of invitations, ended ones included.
    pub invitations_max: usize,
    /// How long the server remembers an ended invitation, so that its token is called expired and not unknown.
    pub invitation_kept: Span,
    /// The maximum number of machines, removed ones included.
    pub machines_max: usize,
    /// The lifetime of a machine's certificate.
    pub certificate_ttl: Span,
    /// The interval of heartbeats.
    pub heartbeat: Span,
    /// A machine without a message for this long is silent.
    pub silent_after: Span,
    /// How long the record of a machine whose instance is gone is kept, counted from its last message.
    pub departed_kept: Span,
    /// How long a machine must have been silent before it may be reimaged, unless an operator says otherwise.
    pub reimage_after: Span,
    /// A join that takes longer is reported as one that did not end in time.
    pub join_within: Span,
    /// The burst of frames of a machine.
    pub frames_burst: u32,
    /// The interval of further frames.
    pub frame_each: Span,
    /// The burst of sessions of a machine: an agent whose network breaks again and again begins one in ten seconds.
    pub sessions_burst: u32,
    /// The interval of further sessions.
    pub session_each: Span,
    /// The burst of certificates of a machine; it needs one in twenty days.
    pub certificates_burst: u32,
    /// The interval of further certificates.
    pub certificate_each: Span,
    /// The burst of questions to the clusters with one token, beside one for each use that is left.
    pub questions_burst: u32,
    /// The interval of further questions.
    pub question_each: Span,
    /// The lifetime of a join's token.
    pub token_ttl: Span,
    /// The time limit for making a token.
    pub token_within: Span,
    /// The maximum number of tokens for a machine in a day.
    pub tokens_a_day: u32,
    /// The maximum number of orders that a machine has at once.
    pub orders_max: usize,
    /// The number of peers that a machine is told about.
    pub peers_told: usize,
    /// A peer may answer on the loopback address: all of them are on one host, as in a test.
    pub peers_on_loopback: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            invitations_max: 10_000,
            invitation_kept: Span::from_min(7 * 24 * 60),
            machines_max: 50_000,
            certificate_ttl: Span::from_min(30 * 24 * 60),
            heartbeat: Span::from_s(15),
            silent_after: Span::from_s(60),
            departed_kept: Span::from_min(24 * 60),
            reimage_after: Span::from_min(10),
            join_within: Span::from_min(120),
            frames_burst: 120,
            frame_each: Span::from_ms(100),
            sessions_burst: 30,
            session_each: Span::from_s(2),
            certificates_burst: 10,
            certificate_each: Span::from_s(30),
            questions_burst: 20,
            question_each: Span::from_s(1),
            token_ttl: Span::from_min(30),
            token_within: Span::from_s(60),
            tokens_a_day: 100,
            orders_max: 16,
            peers_told: 32,
            peers_on_loopback: false,
        }
    }
}

/// A stage that takes longer than this has a problem. The numbers are rounded up from Rancher's many reports of machines
/// that wait for ever. The server shows the problem and does nothing about it.
pub const fn stage_within(stage: Stage) -> Span {
    match stage {
        Stage::Provision | Stage::OsBoot => Span::from_min(15),
        Stage::FetchConfig => Span::from_min(10),
        Stage::Network | Stage::Runtime | Stage::Trust | Stage::Authenticate => Span::from_min(2),
        _ => Span::from_min(5),
    }
}
