//! Cuts a recording down to a regression test: one machine, some companions where they matter, a stretch of time.
//!
//! ```text
//!  recording ─▶ who, and what is told of it ─▶ smallest crowd that tells the same ─▶ played again, every step written
//!               alone · with three of its pool · its pool · everybody
//! ```
//!
//! What a machine's neighbours do decides, too (a zone that went dark holds a repair back), so a cut is only taken when it
//! tells the same of the machine as the whole did, at the same times; everybody always does. The result is a recording of its
//! own: the events that this engine got and what it asked for, as plain lines, so that a reviewer can read them.
//!
//! The beginning stays: a recording is only what it is from its first line on. Quiet stretches are a line for each look.

use std::collections::BTreeSet;

use anyhow::{Context as _, anyhow};
use reveille_core::event::{CloudFact, ClusterFact, Event};
use reveille_core::model::id::{InstanceId, NodeName};
use reveille_core::model::instance::Instance;
use reveille_core::model::node::{Node, Provider};
use reveille_core::model::roster::Claim;
use reveille_core::model::time::Time;
use reveille_wire::recording::{Header, Step, Writer};

use super::filter::Sieve;
use super::player::Player;
use super::recording::Recording;
use super::story::{Teller, Told};
use crate::cli::failure::Failure;
use crate::driver::recorder::ENGINE;

/// So many neighbours of the same pool are tried before the whole pool.
const COMPANIONS: usize = 3;

/// A recording in memory.
#[derive(Clone, Debug)]
pub(crate) struct Reel {
    /// What it begins with.
    pub(crate) header: Header,
    /// Its steps.
    pub(crate) steps: Vec<Step>,
}

/// What came of a cut.
pub(crate) struct Cut {
    /// The cut recording.
    pub(crate) reel: Reel,
    /// What is told of the machine.
    pub(crate) story: Vec<Told>,
    /// Machines that stay.
    pub(crate) machines: usize,
}

/// Everybody who was ever seen.
#[derive(Default)]
struct Census {
    /// Instance, its name, its pool.
    instances: Vec<(InstanceId, String, Option<String>)>,
    /// Node, and the instance that it says it is.
    nodes: Vec<(NodeName, Option<InstanceId>)>,
}

impl Reel {
    /// Reads a recording as far as it is wanted.
    pub(crate) fn read(film: &mut Recording, until: Option<Time>) -> Result<Self, Failure> {
        let mut steps = Vec::new();
        while let Some(step) = film.next_step()? {
            if until.is_some_and(|until| step.at > until) {
                break;
            }
            steps.push(step);
        }
        Ok(Self { header: film.header.clone(), steps })
    }

    /// Its lines.
    pub(crate) fn lines(&self) -> Result<Vec<u8>, Failure> {
        let mut writer = Writer::default();
        let mut out = writer.header(&self.header).context("cannot write the header")?;
        out.push(b'\n');
        for step in &self.steps {
            out.extend(writer.step(step.at, &step.event, &step.effects).context("cannot write a step")?);
            out.push(b'\n');
        }
        Ok(out)
    }

    /// The same events through the engine of now, with what it asks for now.
    pub(crate) fn again(&self, sieve: Option<&Sieve>) -> Self {
        let mut header = self.header.clone();
        if let Some(sieve) = sieve {
            header.restored = header.restored.as_ref().map(|memory| sieve.memory(memory));
        }
        env!("CARGO_PKG_VERSION").clone_into(&mut header.program);
        ENGINE.clone_into(&mut header.engine);
        let mut player = Player::new(&header, None);
        let mut steps: Vec<Step> = Vec::new();
        for step in &self.steps {
            let event = match sieve {
                None => Some(step.event.clone()),
                Some(sieve) => sieve.event(&step.event),
            };
            let Some(event) = event else { continue };
            let sifted = Step { event, ..step.clone() };
            for turn in player.turns(&sifted, None) {
                let number = steps.len() as u64 + 1;
                steps.push(Step { number, at: step.at, event: turn.event, effects: turn.effects });
            }
        }
        Self { header, steps }
    }

    /// What it tells, of one machine or of all.
    pub(crate) fn story(&self, machine: Option<&str>) -> Vec<Told> {
        let mut teller = Teller::knowing(Player::new(&self.header, None).state());
        let told = self.steps.iter().flat_map(|step| {
            step.effects.iter().filter_map(|effect| teller.tell(step.at, effect)).collect::<Vec<_>>()
        });
        told.filter(|told| machine.is_none_or(|machine| told.is_about(machine))).collect()
    }
}

/// Cuts a recording down to one machine, or only to its time where none is named.
pub(crate) fn cut(reel: &Reel, machine: Option<&str>, from: Option<Time>) -> Result<Cut, Failure> {
    let whole = reel.again(None);
    let census = Census::of(reel);
    let Some(machine) = machine else {
        let story = whole.story(None);
        return Ok(Cut { reel: whole, story, machines: census.instances.len() });
    };
    let counts = |told: &Told| from.is_none_or(|from| told.at >= from);
    let told_of =
        |reel: &Reel| -> Vec<Told> { reel.story(Some(machine)).into_iter().filter(counts).collect() };
    let story = told_of(&whole);
    if story.is_empty() {
        return Err(Failure::usage(anyhow!("the recording tells nothing of {machine:?} in that time"))
            .next("see whom it tells of: reveille replay DIR"));
    }
    for sieve in census.crowds(machine) {
        let tried = reel.again(Some(&sieve));
        if plain(&told_of(&tried)) == plain(&story) {
            return Ok(Cut { reel: tried, story, machines: sieve.instances.len().max(sieve.nodes.len()) });
        }
    }
    Ok(Cut { reel: whole, story, machines: census.instances.len() })
}

/// What is compared: when, what, and in which words, without our own numbers.
pub(crate) fn plain(story: &[Told]) -> Vec<(Time, &'static str, String)> {
    let words = |text: &str| {
        let ours =
            |word: &&str| !(word.starts_with("inc-") || word.starts_with("int-") || word.starts_with("rec-"));
        text.split(' ').filter(ours).collect::<Vec<_>>().join(" ")
    };
    story.iter().map(|told| (told.at, told.word, words(&told.text))).collect()
}

impl Census {
    fn of(reel: &Reel) -> Self {
        let mut census = Self::default();
        let mut known: (BTreeSet<InstanceId>, BTreeSet<NodeName>) = Default::default();
        for step in &reel.steps {
            match &step.event {
                Event::Cloud { cloud, fact: CloudFact::Snapshot { snapshot, .. } } => {
                    for instance in &snapshot.instances {
                        if known.0.insert(instance.id.clone()) {
                            census.instances.push(entry(reel, cloud, instance));
                        }
                    }
                }
                Event::Cluster(ClusterFact::Synced(nodes)) => {
                    let new = nodes.iter().filter(|node| known.1.insert(node.name.clone()));
                    census.nodes.extend(new.map(|node| named(node)));
                }
                Event::Cluster(ClusterFact::Applied(node)) if known.1.insert(node.name.clone()) => {
                    census.nodes.push(named(node));
                }
                _ => {}
            }
        }
        census
    }

    /// Ever larger crowds around the machine.
    fn crowds(&self, machine: &str) -> Vec<Sieve> {
        let is_it =
            |(id, name, _): &&(InstanceId, String, Option<String>)| name == machine || id.as_str() == machine;
        let this = self.instances.iter().find(is_it);
        let pool = this.and_then(|(_, _, pool)| pool.clone());
        let neighbours: Vec<&InstanceId> = self
            .instances
            .iter()
            .filter(|one| pool.is_some() && one.2 == pool && Some(one) != this.as_ref())
            .map(|(id, _, _)| id)
            .collect();
        let crowd = |count: usize| {
            let mut sieve = Sieve::default();
            sieve.instances.extend(this.map(|(id, _, _)| id.clone()));
            sieve.instances.extend(neighbours.iter().take(count).map(|id| (*id).clone()));
            sieve.nodes.insert(NodeName::from(machine));
            self.add_nodes(&mut sieve);
            sieve
        };
        vec![crowd(0), crowd(COMPANIONS), crowd(neighbours.len())]
    }

    /// The nodes of the instances that stay, by what they say or by their name.
    fn add_nodes(&self, sieve: &mut Sieve) {
        let names: BTreeSet<&str> = self
            .instances
            .iter()
            .filter(|(id, _, _)| sieve.instances.contains(id))
            .map(|(_, name, _)| name.as_str())
            .collect();
        for (node, says) in &self.nodes {
            if says.as_ref().is_some_and(|id| sieve.instances.contains(id)) || names.contains(node.as_str()) {
                sieve.nodes.insert(node.clone());
            }
        }
    }
}

fn entry(
    reel: &Reel,
    cloud: &reveille_core::model::id::CloudName,
    instance: &Instance,
) -> (InstanceId, String, Option<String>) {
    let pool = match reel.header.roster.claim(cloud, instance) {
        Claim::Pool(pool) => Some(pool.to_string()),
        Claim::Foreign | Claim::Unclaimed | Claim::Contested(_) => None,
    };
    (instance.id.clone(), instance.name.to_string(), pool)
}

fn named(node: &Node) -> (NodeName, Option<InstanceId>) {
    let provider = match &node.provider {
        Provider::Instance(id) => Some(id.clone()),
        Provider::Unset | Provider::Unread(_) => None,
    };
    (node.name.clone(), provider.or_else(|| node.system_uuid.clone()))
}
