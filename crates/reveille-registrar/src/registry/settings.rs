//! What may be set, and every bound of the registry: one struct, passed explicitly.

use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;

/// Bounds and periods, with the defaults that [`Settings::default`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Invitations that are kept, those that are over included.
    pub invitations_max: usize,
    /// An invitation that is over is remembered for so long, so that its token is called expired and not unknown.
    pub invitation_kept: Span,
    /// Machines that are kept, removed ones included.
    pub machines_max: usize,
    /// A machine's certificate lasts so long.
    pub certificate_ttl: Span,
    /// A heartbeat is expected this often.
    pub heartbeat: Span,
    /// A machine that was not heard for so long is silent.
    pub silent_after: Span,
    /// The record of a machine whose instance is gone for good is kept for so long, counted from its last word.
    pub departed_kept: Span,
    /// A machine that is to be made anew has to have been silent for so long, unless a person says otherwise.
    pub reimage_after: Span,
    /// A join that takes longer is told of as one that was not over in time.
    pub join_within: Span,
    /// Frames that a machine may send at once.
    pub frames_burst: u32,
    /// And on the long run, one in so long.
    pub frame_each: Span,
    /// Sessions that a machine may begin at once: an agent whose network breaks again and again begins one in ten seconds.
    pub sessions_burst: u32,
    /// And on the long run, one in so long.
    pub session_each: Span,
    /// Certificates that a machine may ask for at once; it needs one in twenty days.
    pub certificates_burst: u32,
    /// And on the long run, one in so long.
    pub certificate_each: Span,
    /// Times that clusters may be asked for Nodes at once with one token, beside one for each use that it has left.
    pub questions_burst: u32,
    /// And on the long run, one in so long.
    pub question_each: Span,
    /// The join's token lasts so long.
    pub token_ttl: Span,
    /// Making a token may take so long.
    pub token_within: Span,
    /// Tokens that a machine may be given in a day.
    pub tokens_a_day: u32,
    /// Orders that a machine may have at once.
    pub orders_max: usize,
    /// Peers that a machine is told of.
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

/// A stage that takes longer than this has not gone as it should. What Rancher's many reports of machines that wait for ever
/// suggest, rounded up; it is shown, and nothing is done because of it here.
pub const fn stage_within(stage: Stage) -> Span {
    match stage {
        Stage::Provision | Stage::OsBoot => Span::from_min(15),
        Stage::FetchConfig => Span::from_min(10),
        Stage::Network | Stage::Runtime | Stage::Trust | Stage::Authenticate => Span::from_min(2),
        _ => Span::from_min(5),
    }
}
