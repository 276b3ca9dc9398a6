//! The verdict over the peers' answers: is the fault in this machine, in its zone, or in the control plane?
//!
//! ```text
//!  any peer: "the API answers, no order" ─▶ Elsewhere         nothing is done
//!  a majority of all: "order"            ─▶ Reboot(Ordered)   two voices at least
//!  more than half outside: "lost it too" ─▶ ControlPlane      nothing is done
//!  none outside, some of the own zone    ─▶ OwnZone           nothing is done: it is not this machine alone
//!  none at all, of two at least          ─▶ Reboot(Alone)
//!  anything else                         ─▶ NoQuorum          nothing is done, and others are asked
//! ```
//!
//! Whether a peer lost the API server depends on its place, so the agent counts peers in other failure domains where
//! there are any. An order is read from the API, and says the same wherever it is read. One answer never reboots a
//! machine: the first peer that answers may be the faulty one.

use std::fmt;

use crate::model::PeerAnswer;

/// One peer that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voice {
    /// The peer shares this machine's failure domain.
    pub inside: bool,
    /// The peer's answer; none when it did not answer in time.
    pub answer: Option<PeerAnswer>,
}

/// The verdict of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The API server answers other machines, and there is no order: this many peers say so.
    Elsewhere(u32),
    /// This many of this many peers outside the zone lost the API server, too.
    ControlPlane(u32, u32),
    /// No peer outside the zone answers, and this many peers in it do.
    OwnZone(u32),
    /// The agent knows fewer peers than it needs.
    TooFew {
        /// How many are known.
        known: u32,
        /// How many are needed.
        needed: u32,
    },
    /// The answers do not agree, or are too few.
    NoQuorum {
        /// How many answers are for a reboot.
        voices: u32,
        /// How many answers a reboot needs.
        needed: u32,
        /// How many peers the agent asked.
        asked: u32,
    },
    /// Only this machine is cut off.
    Reboot(Ground),
}

/// The reason for a reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// This many of this many peers read an order for this machine in the API.
    Ordered(u32, u32),
    /// None of this many peers answers.
    Alone(u32),
    /// The agent knows no peers, and the settings say to act without any.
    NoPeersNeeded,
}

/// Fewer answers than this are no quorum, however few peers the agent asked.
pub const QUORUM_LEAST: u32 = 2;

/// Judges a round that is over, or that is already clear.
pub fn judge(voices: &[Voice]) -> Verdict {
    let count = |is: &dyn Fn(&Voice) -> bool| voices.iter().filter(|voice| is(voice)).count() as u32;
    let asked = voices.len() as u32;
    let fine = count(&|voice| voice.answer == Some(PeerAnswer::NoOrder));
    if fine > 0 {
        return Verdict::Elsewhere(fine);
    }
    let ordered = count(&|voice| voice.answer == Some(PeerAnswer::Order));
    let majority = (asked / 2 + 1).max(QUORUM_LEAST);
    if ordered >= majority {
        return Verdict::Reboot(Ground::Ordered(ordered, asked));
    }
    let outside = count(&|voice| !voice.inside);
    let counts = |voice: &Voice| outside == 0 || !voice.inside;
    let counted = count(&counts);
    let lost = count(&|voice| counts(voice) && voice.answer == Some(PeerAnswer::LostToo));
    if lost * 2 > counted {
        return Verdict::ControlPlane(lost, counted);
    }
    let heard = count(&|voice| voice.answer.is_some());
    let heard_outside = count(&|voice| !voice.inside && voice.answer.is_some());
    if heard == 0 && asked >= QUORUM_LEAST {
        return Verdict::Reboot(Ground::Alone(asked));
    }
    let lost_inside = count(&|voice| voice.inside && voice.answer == Some(PeerAnswer::LostToo));
    if outside > 0 && heard_outside == 0 && ordered == 0 && lost_inside > 0 {
        return Verdict::OwnZone(lost_inside);
    }
    Verdict::NoQuorum { voices: ordered, needed: majority, asked }
}

/// True when no later answer could make the verdict less careful.
pub fn is_clear(voices: &[Voice]) -> bool {
    voices.iter().any(|voice| voice.answer == Some(PeerAnswer::NoOrder))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elsewhere(1) => {
                f.write_str("does nothing: the API server answers a peer, and there is no order for it")
            }
            Self::Elsewhere(peers) => {
                write!(f, "does nothing: the API server answers {peers} peers, and there is no order for it")
            }
            Self::ControlPlane(lost, of) => {
                write!(f, "does nothing: {lost} of {of} peers have lost the API server, too")
            }
            Self::OwnZone(peers) => write!(
                f,
                "does nothing: no machine outside of its zone answers, and {peers} in it have lost the API server, too"
            ),
            Self::TooFew { known, needed } => {
                write!(f, "does nothing: it knows {known} peers, and {needed} are needed")
            }
            Self::NoQuorum { voices, needed, asked } => {
                write!(f, "does nothing yet: {voices} of {asked} peers speak for a reboot, and {needed} must")
            }
            Self::Reboot(ground) => write!(f, "concludes that it alone is cut off: {ground}"),
        }
    }
}

impl fmt::Display for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ordered(voices, asked) => {
                write!(f, "{voices} of {asked} peers read an order for it in the API")
            }
            Self::Alone(asked) => write!(f, "not one of {asked} peers answers"),
            Self::NoPeersNeeded => f.write_str("no peers are known, and the settings ask for none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `.` silent, `n` no order, `o` order, `l` lost it too; small: outside, large: inside (`,` silent inside).
    fn voices(text: &str) -> Vec<Voice> {
        let answer = |c: char| match c.to_ascii_lowercase() {
            'n' => Some(PeerAnswer::NoOrder),
            'o' => Some(PeerAnswer::Order),
            'l' => Some(PeerAnswer::LostToo),
            _ => None,
        };
        let inside = |c: char| c.is_ascii_uppercase() || c == ',';
        text.chars().map(|c| Voice { inside: inside(c), answer: answer(c) }).collect()
    }

    #[test]
    fn each_pattern_of_answers_has_one_verdict() {
        let no_quorum = |voices, needed, asked| Verdict::NoQuorum { voices, needed, asked };
        for (answers, verdict) in [
            ("n....", Verdict::Elsewhere(1)),
            ("nooooo", Verdict::Elsewhere(1)),
            (".....N", Verdict::Elsewhere(1)),
            ("lll..", Verdict::ControlPlane(3, 5)),
            ("ll...", no_quorum(0, 3, 5)),
            ("lllLL", Verdict::ControlPlane(3, 3)),
            ("....LL", Verdict::OwnZone(2)),
            (".....,,", Verdict::Reboot(Ground::Alone(7))),
            ("..", Verdict::Reboot(Ground::Alone(2))),
            (".", no_quorum(0, 2, 1)),
            ("o", no_quorum(1, 2, 1)),
            ("o..", no_quorum(1, 2, 3)),
            ("oo.", Verdict::Reboot(Ground::Ordered(2, 3))),
            ("o....", no_quorum(1, 3, 5)),
            ("ool..", no_quorum(2, 3, 5)),
            ("o...L", no_quorum(1, 3, 5)),
            ("LLL", Verdict::ControlPlane(3, 3)),
            ("", no_quorum(0, 2, 0)),
        ] {
            assert_eq!(judge(&voices(answers)), verdict, "{answers}");
        }
    }

    #[test]
    fn one_voice_never_reboots_whatever_the_others_are() {
        for others in ["", ".", "l", "L", ",", "ll", ".l", "LL", "..", "l.L,"] {
            let all = format!("o{others}");
            assert!(!matches!(judge(&voices(&all)), Verdict::Reboot(_)), "{all}");
        }
    }
}
