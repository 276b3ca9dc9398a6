//! The words about agents on the machines: which machine has one, what the agent finds there, what it says and does.
//!
//! Three tables, one for each section. The shipped agent crate decides what an agent does. This module holds only the facts
//! around the agent; `agent_claim` compares claims about it with what it said and did.

use reveille_agent::Settings;
use reveille_agent::effect::Verb;
use reveille_core::model::id::PoolName;
use reveille_core::model::time::Span;

use crate::world::World;
use crate::world::agent_plan::{Oddity, Whom};
use crate::world::agents::Cut;
use crate::world::agents::reports::Way;
use crate::world::kubelet_credentials::KubeletCredentials;

use super::agent_claim::AgentClaim;
use super::claim::Claim;
use super::deed::{Deed, Made, hand};
use super::phrase::{Phrase, Slots};
use super::stage::Change;
use super::words::{self, Machines};

#[rustfmt::skip]
pub(crate) const GIVEN: &[Phrase<Change>] = &[
    Phrase { form: "an agent runs on {machines}", make: |s| {
        let whom = whom(s.machines()?);
        Ok(Box::new(move |stage| { stage.layout.agents.on.push(whom); Ok(()) }))
    } },
    Phrase { form: "the agent of {machines} reports to Reveille", make: |s| {
        let whom = whom(s.machines()?);
        Ok(Box::new(move |stage| { stage.layout.agents.speaks.push(whom); Ok(()) }))
    } },
    Phrase { form: "the agent of {machines} knows nothing of it but its name", make: |s| odd(s, Oddity::KnowsOnlyItsName) },
    Phrase { form: "the agent of {machines} says that it does what it is asked, and does nothing", make: |s| odd(s, Oddity::SaysDone) },
    Phrase { form: "agent setting {word} {span} in pool {pool}", make: |s| set_span(s, Some(s.pool()?)) },
    Phrase { form: "agent setting {word} {count} in pool {pool}", make: |s| set_count(s, Some(s.pool()?)) },
    Phrase { form: "agent setting {word} {span}", make: |s| set_span(s, None) },
    Phrase { form: "agent setting {word} {count}", make: |s| set_count(s, None) },
    Phrase { form: "{machines} [has|have] no watchdog", make: |s| odd(s, Oddity::NoWatchdog) },
    Phrase { form: "the agent of {machines} may not open the watchdog", make: |s| odd(s, Oddity::WatchdogForbidden) },
    Phrase { form: "the agent of {machines} has no permission to reboot", make: |s| odd(s, Oddity::MayNotReboot) },
    Phrase { form: "the agent of {machines} knows no peers", make: |s| odd(s, Oddity::KnowsNoPeers) },
    Phrase { form: "{machines} [runs|run] a control plane that can spare it", make: |s| odd(s, Oddity::ControlPlane(true)) },
    Phrase { form: "{machines} [runs|run] a control plane that needs it", make: |s| odd(s, Oddity::ControlPlane(false)) },
    Phrase { form: "{machines} [has|have] the credentials of an earlier join: {papers}", make: |s| {
        odd(s, Oddity::KubeletCredentials(KubeletCredentials::from_clause(s.text("papers"))?))
    } },
    Phrase { form: "whatever joins {machines}, the API server refuses it again", make: |s| odd(s, Oddity::JoinsInVain) },
    Phrase { form: "no component gives out bootstrap tokens", make: |_| {
        Ok(Box::new(|stage| { stage.layout.agents.no_tokens = true; Ok(()) }))
    } },
];

#[rustfmt::skip]
pub(crate) const WHEN: &[Phrase<Deed>] = &[
    Phrase { form: "{machines} [is|are] cut off from the API server for {span}", make: |s| cut(s, Cut::Api) },
    Phrase { form: "{machines} [is|are] cut off from everybody for {span}", make: |s| cut(s, Cut::All) },
    Phrase { form: "the reports of {machines} get lost for {span}", make: |s| way(s, Way::Lost) },
    Phrase { form: "the reports of {machines} come twice for {span}", make: |s| way(s, Way::Twice) },
    Phrase { form: "the reports of {machines} come late and out of order for {span}", make: |s| way(s, Way::Late) },
    Phrase { form: "an order to go down stands in the API for {machines}", make: |s| hand(s, World::order_down) },
    Phrase { form: "{machines} [says|say] wrongly that an order stands for {machine}", make: |s| {
        let about = words::machine(s.text("machine"), s.known)?.0;
        hand(s, move |world, id| world.slander(id, &about))
    } },
    Phrase { form: "the credentials of {machines} go bad: {papers}", make: |s| {
        let kubelet_credentials = KubeletCredentials::from_clause(s.text("papers"))?;
        hand(s, move |world, id| world.spoil_credentials(id, kubelet_credentials))
    } },
    Phrase { form: "a join begins on {machines}", make: |s| hand(s, |world, id| world.set_joining(id, true)) },
    Phrase { form: "the join on {machines} is over", make: |s| hand(s, |world, id| world.set_joining(id, false)) },
    Phrase { form: "the control plane needs {machines}", make: |s| hand(s, |world, id| world.set_spare(id, false)) },
    Phrase { form: "the control plane can spare {machines}", make: |s| hand(s, |world, id| world.set_spare(id, true)) },
    Phrase { form: "the agent of {machines} is told to do nothing", make: |s| hand(s, |world, id| world.tell_agent(id, true)) },
    Phrase { form: "the agent of {machines} may act again", make: |s| hand(s, |world, id| world.tell_agent(id, false)) },
    Phrase { form: "the watchdog of {machines} does not obey any more", make: |s| hand(s, World::break_watchdog) },
];

#[rustfmt::skip]
pub(crate) const THEN: &[Phrase<Claim>] = &[
    Phrase { form: "the agent of {machines} says: {text}", make: |s| claim(s, AgentClaim::Says(s.quoted()?)) },
    Phrase { form: "the agent of {machines} reboots it", make: |s| claim(s, AgentClaim::Reboots) },
    Phrase { form: "the agent of {machines} restarts its kubelet", make: |s| claim(s, AgentClaim::Does(Verb::RestartKubelet)) },
    Phrase { form: "the agent of {machines} asks for a token", make: |s| claim(s, AgentClaim::Does(Verb::RequestToken)) },
    Phrase { form: "the agent of {machines} starts its kubelet with a new token", make: |s| claim(s, AgentClaim::Does(Verb::Bootstrap)) },
    Phrase { form: "the agent of {machines} resets it", make: |s| claim(s, AgentClaim::Does(Verb::Reset)) },
    Phrase { form: "the agent of {machines} joins it", make: |s| claim(s, AgentClaim::Does(Verb::Join)) },
    Phrase { form: "the agent of {machines} can reboot it", make: |s| claim(s, AgentClaim::CanReboot) },
    Phrase { form: "the watchdog of {machines} is armed", make: |s| claim(s, AgentClaim::Armed(true)) },
    Phrase { form: "the watchdog of {machines} is disarmed", make: |s| claim(s, AgentClaim::Armed(false)) },
];

fn whom(machines: Machines) -> Whom {
    match machines {
        Machines::Named(names) => Whom::Named(names),
        Machines::OfPool(pool) => Whom::OfPool(pool),
        Machines::OfZone(zone) => Whom::OfZone(zone),
        Machines::All => Whom::All,
    }
}

fn odd(slots: &Slots<'_>, oddity: Oddity) -> Result<Change, String> {
    let whom = whom(slots.machines()?);
    Ok(Box::new(move |stage| {
        stage.layout.agents.odd.push((whom, oddity));
        Ok(())
    }))
}

fn claim(slots: &Slots<'_>, claim: AgentClaim) -> Result<Claim, String> {
    Ok(Claim::Agent(slots.machines()?, claim))
}

fn cut(slots: &Slots<'_>, cut: Cut) -> Made {
    let lasts = slots.span()?;
    hand(slots, move |world, id| world.cut_off(id, cut, lasts))
}

fn way(slots: &Slots<'_>, way: Way) -> Made {
    let lasts = slots.span()?;
    hand(slots, move |world, id| world.spoil_way(id, way, lasts))
}

fn set_span(slots: &Slots<'_>, pool: Option<PoolName>) -> Result<Change, String> {
    let span = slots.span()?;
    let put: fn(&mut Settings, Span) = match slots.text("word") {
        "check-every" => |settings, span| settings.check_every = span,
        "api-timeout" => |settings, span| settings.api_timeout = span,
        "peer-timeout" => |settings, span| settings.peer_timeout = span,
        "ask-again" => |settings, span| settings.ask_again = span,
        "watchdog-timeout" => |settings, span| settings.watchdog_timeout = span,
        "inspect-every" => |settings, span| settings.inspect_every = span,
        "backoff" => |settings, span| settings.backoff = span,
        "backoff-max" => |settings, span| settings.backoff_max = span,
        "back-within" => |settings, span| settings.back_within = span,
        "dwell" => |settings, span| settings.dwell = span,
        other => {
            return Err(format!(
                "`{other}` is no time of an agent; one of: check-every, api-timeout, peer-timeout, ask-again, watchdog-timeout, \
                 inspect-every, backoff, backoff-max, back-within, dwell"
            ));
        }
    };
    set(pool, move |settings| put(settings, span))
}

fn set_count(slots: &Slots<'_>, pool: Option<PoolName>) -> Result<Change, String> {
    let count = slots.count()?;
    let put: fn(&mut Settings, u32) = match slots.text("word") {
        "failures" => |settings, count| settings.failures = count,
        "min-peers" => |settings, count| settings.min_peers = count,
        "peers-asked" => |settings, count| settings.peers_asked = count,
        "reboots-a-day" => |settings, count| settings.reboots_a_day = count,
        "stale-readings" => |settings, count| settings.stale_readings = count,
        "attempts" => |settings, count| settings.attempts = count,
        other => {
            return Err(format!(
                "`{other}` is no count of an agent; one of: failures, min-peers, peers-asked, reboots-a-day, stale-readings, attempts"
            ));
        }
    };
    set(pool, move |settings| put(settings, count))
}

/// Settings that an agent would refuse are refused here, in its words.
fn set(pool: Option<PoolName>, put: impl Fn(&mut Settings) + 'static) -> Result<Change, String> {
    Ok(Box::new(move |stage| {
        let plan = &mut stage.layout.agents;
        let settings = match pool {
            Some(pool) => plan.of_pool.entry(pool).or_insert(plan.settings),
            None => &mut plan.settings,
        };
        put(settings);
        settings.check().map(drop).map_err(|error| error.to_string())
    }))
}
