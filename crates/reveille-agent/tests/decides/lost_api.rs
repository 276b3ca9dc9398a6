//! The API server does not answer: where the fault is, and what the agent may do.

use std::collections::BTreeMap;

use reveille_agent::effect::Verb;
use reveille_agent::model::{Outcome, PeerAnswer};
use reveille_agent::{Effect, Event, Memory, Settings};
use reveille_core::model::id::NodeName;
use reveille_core::model::time::Span;

use crate::fixture::{Bench, machine, operation};

const HOUR: Span = Span::from_min(60);

fn lost(outside: Option<PeerAnswer>, inside: Option<PeerAnswer>) -> Bench {
    let mut bench = Bench::with_peers(6, 2);
    bench.run(Span::from_min(5));
    bench.peers_say(None, outside);
    bench.peers_say(Some("a"), inside);
    bench.around.api = false;
    bench.run(HOUR);
    bench
}

#[test]
fn each_answer_of_the_peers_has_its_end() {
    use PeerAnswer::{LostToo, NoOrder, Order};
    for (outside, inside, acts, says) in [
        (Some(NoOrder), None, false, "there is no order for it"),
        (None, Some(NoOrder), false, "there is no order for it"),
        (Some(LostToo), Some(LostToo), false, "6 of 6 peers have lost the API server, too"),
        (None, Some(LostToo), false, "no machine outside of its zone answers"),
        (Some(Order), Some(Order), true, "7 of 7 peers read an order"),
        (None, None, true, "not one of 7 peers answers"),
    ] {
        let bench = lost(outside, inside);
        assert_eq!(bench.verbs().contains(&Verb::RebootByWatchdog), acts, "{says}\n{}", bench.all_said());
        assert!(bench.said(says), "{says}\n{}", bench.all_said());
    }
}

#[test]
fn one_voice_for_a_reboot_is_never_enough() {
    let mut bench = Bench::with_peers(6, 0);
    bench.peers_say(None, None);
    let first = bench.around.peers.values_mut().next().unwrap();
    first.1 = Some(PeerAnswer::Order);
    bench.around.api = false;
    bench.run(HOUR);
    assert_eq!(bench.verbs(), []);
    assert!(bench.said("1 of 6 peers speak for a reboot, and 4 must"), "{}", bench.all_said());
}

#[test]
fn without_peers_it_acts_only_where_the_settings_ask_for_none() {
    for (min_peers, acts) in [(1, false), (0, true)] {
        let mut bench = Bench::new(Settings { min_peers, ..Settings::default() }, Memory::default());
        bench.begin();
        bench.around.api = false;
        bench.run(HOUR);
        assert_eq!(!bench.verbs().is_empty(), acts, "{}", bench.all_said());
        assert_eq!(bench.said("it knows 0 peers, and 1 are needed"), !acts);
    }
}

#[test]
fn two_failed_checks_ask_no_peer_and_checks_time_out() {
    let mut bench = Bench::with_peers(4, 0);
    bench.run(Span::from_min(1));
    bench.around.api = false;
    bench.run(Span::from_s(29));
    bench.around.api = true;
    bench.run(Span::from_min(5));
    assert!(!bench.effects.iter().any(|effect| matches!(effect, Effect::AskPeers(..))));
    // No server and no peer answers: the agent's own deadlines count, three of them.
    let (config, warnings) = Settings::default().check().unwrap();
    let start = reveille_agent::Start { name: "w-1".into(), config, warnings, memory: Memory::default() };
    let mut state = reveille_agent::State::new(start);
    let mut now = bench.now;
    let mut asked = false;
    let peers: BTreeMap<_, _> = ["w-2", "w-3"].map(|peer| (NodeName::from(peer), None)).into();
    let mut effects = state.step(now, Event::PeersListed(peers));
    for _ in 0..30 {
        asked |= effects.iter().any(|effect| matches!(effect, Effect::AskPeers(..)));
        let wake = effects.iter().find_map(|effect| match effect {
            Effect::WakeAt(at) => Some(*at),
            _ => None,
        });
        now = wake.unwrap_or(now + Span::from_s(1));
        effects = state.step(now, Event::Tick);
    }
    assert!(asked);
}

#[test]
fn what_answers_while_the_intent_is_written_stops_the_reboot() {
    let (mut bench, record) = about_to_reboot(Bench::with_peers(6, 2));
    bench.around.api = true;
    let id = bench.check_asked();
    bench.hear(Event::ApiChecked { operation: id, silent: None });
    bench.run(Span::from_s(8));
    bench.hear(Event::Recorded(record));
    bench.run(HOUR);
    assert_eq!(bench.verbs(), [], "{}", bench.all_said());
    assert!(bench.said("does not reboot its machine after all"), "{}", bench.all_said());
}

/// An agent that is sure that only its machine is cut off: it is writing its intent, and the function also returns the
/// number of that write.
fn about_to_reboot(mut bench: Bench) -> (Bench, reveille_agent::model::OperationId) {
    bench.run(Span::from_min(1));
    bench.peers_say(None, None);
    (bench.around.api, bench.around.disk) = (false, false);
    loop {
        if let Some(record) = bench.memory_asked() {
            return (bench, record);
        }
        bench.run(Span::from_s(1));
    }
}

impl Bench {
    fn memory_asked(&self) -> Option<reveille_agent::model::OperationId> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Record(id, ..) => Some(*id),
            _ => None,
        })
    }

    fn check_asked(&self) -> reveille_agent::model::OperationId {
        let checks = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::CheckApi(id, _) => Some(*id),
            _ => None,
        });
        checks.unwrap_or(operation(0))
    }
}

#[test]
fn a_machine_that_reboots_in_vain_runs_out_of_reboots() {
    let mut bench = Bench::with_peers(6, 2);
    bench.peers_say(None, None);
    bench.around.api = false;
    for _ in 0..8 {
        bench.run(Span::from_min(20));
        bench.restart();
    }
    assert_eq!(bench.verbs().len(), Settings::default().reboots_a_day as usize, "{}", bench.all_said());
    assert!(bench.said("it has rebooted as often as it may in a day"), "{}", bench.all_said());
}

#[test]
fn a_reboot_that_does_not_happen_is_said_and_is_no_fence() {
    let mut bench = Bench::with_peers(6, 2);
    bench.peers_say(None, None);
    bench.around.api = false;
    bench.run(HOUR);
    assert_eq!(bench.verbs(), [Verb::RebootByWatchdog]);
    assert!(bench.said("asked for a reboot, and the machine still runs"), "{}", bench.all_said());
    assert!(bench.said("cannot reboot its machine: a reboot was asked for and did not happen"));
}

#[test]
fn suspended_machine_restarts_its_failure_count() {
    let mut bench = Bench::with_peers(6, 2);
    bench.run(Span::from_min(5));
    bench.peers_say(None, None);
    bench.around.api = false;
    bench.run(Span::from_s(31));
    // The hypervisor pauses the machine for an hour, and everything answers again afterwards.
    bench.now = bench.now + HOUR;
    bench.around.api = true;
    bench.hear(Event::Tick);
    bench.run(Span::from_min(5));
    assert_eq!(bench.verbs(), []);
    assert!(!bench.said("the API server has not answered"), "{}", bench.all_said());
}

#[test]
fn a_peer_hears_what_was_read_for_it_and_never_a_guess() {
    let mut bench = Bench::with_peers(2, 0);
    let answers = |bench: &Bench| -> Vec<PeerAnswer> {
        let all = bench.effects.iter().filter_map(|effect| match effect {
            Effect::AnswerPeer { answer, .. } => Some(*answer),
            _ => None,
        });
        all.collect()
    };
    bench.hear(Event::PeerAsked { from: "w-2".into(), ask: operation(900) });
    assert_eq!(answers(&bench), [PeerAnswer::NoOrder]);
    bench.around.api = false;
    bench.hear(Event::PeerAsked { from: "w-2".into(), ask: operation(901) });
    assert_eq!(answers(&bench), [PeerAnswer::NoOrder, PeerAnswer::LostToo]);
}

#[test]
fn it_does_not_reboot_where_something_speaks_against_it() {
    use reveille_agent::model::{Device, Machine, Role};
    let none = Machine { watchdog: Device::Absent, may_reboot: false, ..machine() };
    for (odd, says) in [
        (none, "no watchdog and no permission"),
        (Machine { joining: true, ..machine() }, "a join is under way"),
        (Machine { role: Role::ControlPlane { spare: false }, ..machine() }, "keep their quorum"),
    ] {
        let mut bench = Bench::with_peers(6, 2);
        bench.hear(Event::Found(odd));
        bench.peers_say(None, None);
        bench.around.api = false;
        bench.run(HOUR);
        assert_eq!(bench.verbs(), [], "{says}");
        assert!(bench.said("cannot reboot its machine") && bench.said(says), "{}", bench.all_said());
        assert!(bench.said("it is not fenced until its boot id says so"));
    }
    let mut bench = Bench::with_peers(6, 2);
    bench.hear(Event::Found(Machine { role: Role::ControlPlane { spare: true }, ..machine() }));
    bench.around.works = |_, _| Outcome::Done;
    bench.peers_say(None, None);
    bench.around.api = false;
    bench.run(HOUR);
    assert_eq!(bench.verbs(), [Verb::RebootByWatchdog]);
}

/// As the agent's process runs: it may not reboot. Then peers change what the agent reports, and nothing that it does.
#[test]
fn lying_peers_change_no_action_of_the_agent() {
    use PeerAnswer::{LostToo, NoOrder, Order};
    use reveille_agent::model::{Credentials, Device, Machine};
    let acts = |outside, inside, credentials: &Credentials| {
        let mut bench = Bench::with_peers(6, 2);
        bench.hear(Event::Found(Machine { watchdog: Device::Absent, may_reboot: false, ..machine() }));
        bench.run(Span::from_min(5));
        bench.peers_say(None, outside);
        bench.peers_say(Some("a"), inside);
        bench.around.api = false;
        bench.run(HOUR);
        bench.around.api = true;
        bench.node_goes(credentials.clone(), None);
        bench.run(HOUR);
        bench.acts
    };
    for credentials in [Credentials::Accepted, Credentials::Refused, Credentials::Nothing] {
        let alone = acts(Some(NoOrder), Some(NoOrder), &credentials);
        for outside in [None, Some(NoOrder), Some(Order), Some(LostToo)] {
            for inside in [None, Some(NoOrder), Some(Order), Some(LostToo)] {
                let found = acts(outside, inside, &credentials);
                assert_eq!(found, alone, "{outside:?} {inside:?} {credentials:?}");
                assert!(!found.iter().any(|(_, verb)| verb.is_reboot()));
            }
        }
        assert_eq!(alone.is_empty(), credentials == Credentials::Nothing, "{credentials:?}: {alone:?}");
    }
}

#[test]
fn a_peer_that_speaks_twice_is_believed_the_first_time() {
    let mut bench = Bench::with_peers(3, 0);
    bench.run(Span::from_min(1));
    bench.peers_say(None, None);
    bench.around.api = false;
    let round = |bench: &Bench| {
        bench.effects.iter().rev().find_map(|effect| match effect {
            Effect::AskPeers(id, ..) => Some(*id),
            _ => None,
        })
    };
    while round(&bench).is_none() {
        bench.run(Span::from_s(1));
    }
    let asked = round(&bench).unwrap();
    let say = |bench: &mut Bench, peer: &str, answer| {
        bench.hear(Event::PeerAnswered { operation: asked, peer: peer.into(), answer });
    };
    for peer in ["w-2", "w-3"] {
        say(&mut bench, peer, PeerAnswer::LostToo);
        say(&mut bench, peer, PeerAnswer::Order);
    }
    bench.run(Span::from_s(11));
    assert_eq!(bench.verbs(), [], "{}", bench.all_said());
    assert!(bench.said("2 of 3 peers have lost the API server, too"), "{}", bench.all_said());
}

#[test]
fn cancelled_reboot_is_not_requested_again_while_still_possible() {
    let mut bench = Bench::with_peers(6, 0);
    bench.run(Span::from_min(1));
    bench.peers_say(None, None);
    bench.around.api = false;
    while bench.verbs().is_empty() {
        bench.run(Span::from_s(1));
    }
    bench.hear(Event::Cancelled);
    bench.hear(Event::Resumed);
    // Two effects of one kind in flight would be a violation.
    bench.run(Span::from_s(170));
    assert_eq!(bench.verbs().len(), 1, "{}", bench.all_said());
}

#[test]
fn second_reboot_answer_does_not_feed_expiring_watchdog() {
    let mut bench = Bench::with_peers(6, 0);
    bench.run(Span::from_min(1));
    bench.peers_say(None, None);
    bench.around.api = false;
    while bench.verbs().is_empty() {
        bench.run(Span::from_s(1));
    }
    let asked = bench.effects.iter().rev().find_map(|effect| match effect {
        Effect::Act(id, Verb::RebootByWatchdog, _) => Some(*id),
        _ => None,
    });
    let before = bench.effects.len();
    bench.hear(Event::Done { operation: asked.unwrap(), outcome: Outcome::Failed("no".into()) });
    bench.run(Span::from_min(1));
    assert!(!bench.effects[before..].contains(&Effect::FeedWatchdog), "{}", bench.all_said());
}

#[test]
fn a_voice_that_comes_late_may_keep_a_reboot_from_happening() {
    let (mut bench, record) = about_to_reboot(Bench::with_peers(6, 0));
    let round = bench.effects.iter().rev().find_map(|effect| match effect {
        Effect::AskPeers(id, ..) => Some(*id),
        _ => None,
    });
    bench.hear(Event::PeerAnswered {
        operation: round.unwrap(),
        peer: "w-2".into(),
        answer: PeerAnswer::LostToo,
    });
    bench.hear(Event::Recorded(record));
    bench.run(Span::from_s(15));
    assert_eq!(bench.verbs(), [], "{}", bench.all_said());
    assert!(bench.said("does not reboot its machine after all"), "{}", bench.all_said());
}
