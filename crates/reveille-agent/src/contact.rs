//! Contact with the API server: checks, each with a deadline of its own, and rounds of asking peers when it is lost.
//!
//! ```text
//!  check ─ok─▶ failed = 0                    round ─▶ answers ─┬─ a clear one, all, or the deadline ─▶ verdict
//!    └ silent, or late ─▶ failed + 1 ─ N ─▶ lost ─▶ ask …      └─ nothing agreed: others are asked, after a pause
//! ```
//!
//! A verdict lasts until the next round or until the API server answers. After this machine slept, the agent drops what
//! it waited for and what it counted before.

use std::collections::BTreeMap;

use reveille_core::model::id::{NodeName, ZoneName};
use reveille_core::model::time::{Span, Time};

use crate::effect::{Effect, Report};
use crate::model::{Operation, OperationId, PeerAnswer};
use crate::peers;
use crate::settings::Settings;
use crate::step_context::StepContext;
use crate::verdict::{self, Ground, Verdict, Voice};

/// The longest pause between two rounds.
const ASK_AGAIN_MAX: Span = Span::from_min(5);

/// What the agent knows about the API server and the peers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contact {
    check: Option<Operation>,
    next_check_at: Option<Time>,
    failed: u32,
    answered: bool,
    peers: BTreeMap<NodeName, Option<ZoneName>>,
    round: Option<Round>,
    /// The round that the verdict comes from: a late answer can still contradict it.
    judged: Option<Round>,
    rounds: u32,
    next_round_at: Option<Time>,
    /// Answers of the last round may arrive until then: the agent begins no other round before.
    asked_until: Option<Time>,
    verdict: Option<Verdict>,
    told: Option<Verdict>,
}

#[derive(Clone, Debug)]
struct Round {
    operation: Operation,
    asked: Vec<(NodeName, bool)>,
    answers: BTreeMap<NodeName, PeerAnswer>,
}

impl Round {
    fn voices(&self) -> Vec<Voice> {
        let voice = |(peer, inside): &(NodeName, bool)| Voice {
            inside: *inside,
            answer: self.answers.get(peer).copied(),
        };
        self.asked.iter().map(voice).collect()
    }
}

impl Contact {
    /// An empty list proves nothing: the agent still asks the peers that it knew.
    pub(crate) fn know(&mut self, own: &NodeName, peers: BTreeMap<NodeName, Option<ZoneName>>) {
        if self.peers.is_empty() || peers.keys().any(|peer| peer != own) {
            self.peers = peers;
        }
    }

    /// The API server answered the last check, and none has failed since.
    pub(crate) const fn is_there(&self) -> bool {
        self.answered && self.failed == 0
    }

    /// So many checks in a row failed that the agent asks peers.
    pub(crate) const fn is_lost(&self, settings: &Settings) -> bool {
        self.failed >= settings.failures
    }

    /// The verdict of the last round, while the API server is silent.
    pub(crate) const fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// The reason for a reboot now, if there is one.
    pub(crate) const fn ground(&self) -> Option<Ground> {
        match self.verdict {
            Some(Verdict::Reboot(ground)) => Some(ground),
            _ => None,
        }
    }

    /// The reason for a reboot is used up; the next round may find it again.
    pub(crate) const fn forget_ground(&mut self) {
        self.verdict = None;
    }

    /// This machine slept: what the agent knew before does not count.
    pub(crate) fn slept(&mut self) {
        (self.check, self.next_check_at, self.round, self.judged) = (None, None, None, None);
        (self.failed, self.answered) = (0, false);
        (self.rounds, self.next_round_at, self.asked_until, self.verdict) = (0, None, None, None);
    }

    pub(crate) fn checked(&mut self, context: &mut StepContext<'_>, operation: OperationId, silent: bool) {
        if self.check.is_none_or(|check| check.id != operation) {
            return;
        }
        self.check = None;
        if silent { self.fail(context) } else { self.succeed(context) }
    }

    fn succeed(&mut self, context: &mut StepContext<'_>) {
        if self.failed >= context.settings.failures {
            context.report(Report::ApiAnswers);
        }
        (self.failed, self.answered) = (0, true);
        (self.round, self.judged, self.rounds, self.next_round_at) = (None, None, 0, None);
        (self.verdict, self.told) = (None, None);
    }

    fn fail(&mut self, context: &mut StepContext<'_>) {
        self.failed = self.failed.saturating_add(1);
        if self.failed == context.settings.failures {
            context.report(Report::ApiLost(self.failed));
            self.next_round_at = Some(self.asked_until.map_or(context.now, |until| until.max(context.now)));
        }
    }

    pub(crate) fn answered(
        &mut self,
        context: &mut StepContext<'_>,
        operation: OperationId,
        peer: NodeName,
        answer: PeerAnswer,
    ) {
        if let Some(round) = self.round.as_mut().filter(|round| round.operation.id == operation)
            && round.asked.iter().any(|(asked, _)| *asked == peer)
        {
            // The first answer of a peer counts; a second answer of the same peer is not a second voice.
            round.answers.entry(peer).or_insert(answer);
            return;
        }
        if let Some(round) = self.judged.as_mut().filter(|round| round.operation.id == operation)
            && round.asked.iter().any(|(asked, _)| *asked == peer)
        {
            round.answers.entry(peer).or_insert(answer);
            let voices = round.voices();
            self.think_again(context, verdict::judge(&voices));
        }
    }

    /// A late answer never causes a reboot; it can prevent one.
    fn think_again(&mut self, context: &mut StepContext<'_>, verdict: Verdict) {
        if self.ground().is_some() && !matches!(verdict, Verdict::Reboot(_)) {
            (self.verdict, self.told) = (Some(verdict), Some(verdict));
            context.report(Report::Concluded(verdict));
        }
    }

    /// Does what is due.
    pub(crate) fn advance(&mut self, context: &mut StepContext<'_>, own: &NodeName, zone: Option<&ZoneName>) {
        if self.check.is_some_and(|check| context.is_over(check)) {
            self.check = None;
            self.fail(context);
        }
        if self.check.is_none() && self.next_check_at.is_none_or(|at| at <= context.now) {
            let operation = context.fly(context.settings.api_timeout);
            context.out.push(Effect::CheckApi(operation.id, context.settings.api_timeout));
            self.check = Some(operation);
            self.next_check_at =
                Some(context.now + context.settings.check_every.max(context.settings.api_timeout));
        }
        self.close_round(context);
        let due = self.next_round_at.is_some_and(|at| at <= context.now);
        if self.failed >= context.settings.failures && self.round.is_none() && due {
            self.begin_round(context, own, zone);
        }
    }

    fn begin_round(&mut self, context: &mut StepContext<'_>, own: &NodeName, zone: Option<&ZoneName>) {
        let needed = context.settings.min_peers;
        let others = self.peers.keys().filter(|peer| *peer != own).count() as u32;
        if others < needed {
            return self.conclude(context, Verdict::TooFew { known: others, needed });
        }
        if others == 0 {
            return self.conclude(context, Verdict::Reboot(Ground::NoPeersNeeded));
        }
        let most = context.settings.peers_asked as usize;
        let chosen = peers::choose(own, zone, &self.peers, most, self.rounds);
        let operation = context.fly(context.settings.peer_timeout);
        context.out.push(Effect::AskPeers(operation.id, chosen.clone(), context.settings.peer_timeout));
        let inside = |peer: &NodeName| peers::is_inside(zone, self.peers.get(peer).and_then(Option::as_ref));
        let asked = chosen.into_iter().map(|peer| (peer.clone(), inside(&peer))).collect();
        // The next round begins without a verdict.
        self.verdict = None;
        self.asked_until = Some(operation.until);
        self.judged = None;
        self.round = Some(Round { operation, asked, answers: BTreeMap::new() });
    }

    fn close_round(&mut self, context: &mut StepContext<'_>) {
        let Some(round) = &self.round else { return };
        let voices = round.voices();
        let all = round.answers.len() == round.asked.len();
        if all || verdict::is_clear(&voices) || context.is_over(round.operation) {
            self.judged = self.round.take();
            self.conclude(context, verdict::judge(&voices));
        }
    }

    fn conclude(&mut self, context: &mut StepContext<'_>, verdict: Verdict) {
        let pause =
            context.settings.ask_again.doubled(self.rounds, ASK_AGAIN_MAX.max(context.settings.ask_again));
        self.rounds = self.rounds.saturating_add(1);
        let next = context.now + pause;
        self.next_round_at = Some(self.asked_until.map_or(next, |until| until.max(next)));
        self.verdict = Some(verdict);
        if self.told != Some(verdict) {
            self.told = Some(verdict);
            context.report(Report::Concluded(verdict));
        }
    }

    /// Everything that is waited for or due.
    pub(crate) fn moments(&self) -> impl Iterator<Item = Time> {
        let operations = [self.check, self.round.as_ref().map(|round| round.operation)];
        let idle = self.check.is_none().then_some(self.next_check_at).flatten();
        let next = self.round.is_none().then_some(self.next_round_at).flatten();
        operations.into_iter().flatten().map(|operation| operation.until).chain(idle).chain(next)
    }
}
