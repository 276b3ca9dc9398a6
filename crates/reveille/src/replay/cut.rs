//! Cuts a recording down to a regression test: one machine, some neighbours where they matter, a time span.
//!
//! ```text
//!  recording ─▶ the machine and its story ─▶ smallest group with the same story ─▶ played again, every step written
//!               alone · with three of its pool · its pool · all machines
//! ```
//!
//! The neighbours of a machine affect decisions too: a zone that is down blocks a repair. So a cut is used only when it
//! gives the same story of the machine at the same times as the whole recording; the cut with all machines always does.
//! The result is a recording of its own, with the events that this engine got and its effects, as plain lines that a
//! reviewer can read.
//!
//! The beginning stays, because a recording can be played only from its first line on. Quiet spans are one line for each read.

use std::collections::BTreeSet;

use anyhow::{Context as _, anyhow};
use reveille_core::event::{CloudFact, ClusterFact, Event};
use reveille_core::model::id::{InstanceId, NodeName};
use reveille_core::model::instance::Instance;
use reveille_core::model::node::{Node, Provider};
use reveille_core::model::roster::Claim;
use reveille_core::model::time::Time;
use reveille_wire::recording::{Step, Writer};

use super::filter::Filter;
use super::player::Player;
use super::recording::RecordedSteps;
use super::story::{StoryLine, Teller};
use crate::cli::failure::Failure;
use crate::driver::recorder::ENGINE;

/// The number of neighbours of the same pool that are tried before the whole pool.
const COMPANIONS: usize = 3;

/// The result of a cut.
pub(crate) struct Cut {
    /// The cut recording.
    pub(crate) recorded: RecordedSteps,
    /// The story of the machine.
    pub(crate) story: Vec<StoryLine>,
    /// The number of machines that stay.
    pub(crate) machines: usize,
}

/// All machines of the recording.
#[derive(Default)]
struct Census {
    /// The instance, its name, its pool.
    instances: Vec<(InstanceId, String, Option<String>)>,
    /// The Node, and the instance that it names.
    nodes: Vec<(NodeName, Option<InstanceId>)>,
}

impl RecordedSteps {
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

    /// Plays the same events with the present engine; returns them with its effects.
    pub(crate) fn again(&self, filter: Option<&Filter>) -> Self {
        let mut header = self.header.clone();
        if let Some(filter) = filter {
            header.restored = header.restored.as_ref().map(|memory| filter.memory(memory));
        }
        env!("CARGO_PKG_VERSION").clone_into(&mut header.program);
        ENGINE.clone_into(&mut header.engine);
        let mut player = Player::new(&header, None);
        let mut steps: Vec<Step> = Vec::new();
        for step in &self.steps {
            let event = match filter {
                None => Some(step.event.clone()),
                Some(filter) => filter.event(&step.event),
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

    /// The story of one machine or of all.
    pub(crate) fn story(&self, machine: Option<&str>) -> Vec<StoryLine> {
        let mut teller = Teller::knowing(Player::new(&self.header, None).state());
        let told = self.steps.iter().flat_map(|step| {
            step.effects.iter().filter_map(|effect| teller.tell(step.at, effect)).collect::<Vec<_>>()
        });
        told.filter(|told| machine.is_none_or(|machine| told.is_about(machine))).collect()
    }
}

/// Cuts a recording down to one machine, or only to its time span where no machine is named.
pub(crate) fn cut(
    recorded: &RecordedSteps,
    machine: Option<&str>,
    from: Option<Time>,
) -> Result<Cut, Failure> {
    let whole = recorded.again(None);
    let census = Census::of(recorded);
    let Some(machine) = machine else {
        let story = whole.story(None);
        return Ok(Cut { recorded: whole, story, machines: census.instances.len() });
    };
    let counts = |told: &StoryLine| from.is_none_or(|from| told.at >= from);
    let told_of = |recorded: &RecordedSteps| -> Vec<StoryLine> {
        recorded.story(Some(machine)).into_iter().filter(counts).collect()
    };
    let story = told_of(&whole);
    if story.is_empty() {
        return Err(Failure::usage(anyhow!("the recording tells nothing of {machine:?} in that time"))
            .next("see whom it tells of: reveille replay DIR"));
    }
    for filter in census.crowds(machine) {
        let tried = recorded.again(Some(&filter));
        if plain(&told_of(&tried)) == plain(&story) {
            return Ok(Cut {
                recorded: tried,
                story,
                machines: filter.instances.len().max(filter.nodes.len()),
            });
        }
    }
    Ok(Cut { recorded: whole, story, machines: census.instances.len() })
}

/// The parts that are compared: time, kind and text, without the program's own numbers.
pub(crate) fn plain(story: &[StoryLine]) -> Vec<(Time, &'static str, String)> {
    let words = |text: &str| {
        let ours =
            |word: &&str| !(word.starts_with("inc-") || word.starts_with("int-") || word.starts_with("rec-"));
        text.split(' ').filter(ours).collect::<Vec<_>>().join(" ")
    };
    story.iter().map(|told| (told.at, told.word, words(&told.text))).collect()
}

impl Census {
    fn of(recorded: &RecordedSteps) -> Self {
        let mut census = Self::default();
        let mut known: (BTreeSet<InstanceId>, BTreeSet<NodeName>) = Default::default();
        for step in &recorded.steps {
            match &step.event {
                Event::Cloud { cloud, fact: CloudFact::Snapshot { snapshot, .. } } => {
                    for instance in &snapshot.instances {
                        if known.0.insert(instance.id.clone()) {
                            census.instances.push(entry(recorded, cloud, instance));
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

    /// Growing groups around the machine.
    fn crowds(&self, machine: &str) -> Vec<Filter> {
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
            let mut filter = Filter::default();
            filter.instances.extend(this.map(|(id, _, _)| id.clone()));
            filter.instances.extend(neighbours.iter().take(count).map(|id| (*id).clone()));
            filter.nodes.insert(NodeName::from(machine));
            self.add_nodes(&mut filter);
            filter
        };
        vec![crowd(0), crowd(COMPANIONS), crowd(neighbours.len())]
    }

    /// Adds the Nodes of the instances that stay, by their provider ID or by their name.
    fn add_nodes(&self, filter: &mut Filter) {
        let names: BTreeSet<&str> = self
            .instances
            .iter()
            .filter(|(id, _, _)| filter.instances.contains(id))
            .map(|(_, name, _)| name.as_str())
            .collect();
        for (node, says) in &self.nodes {
            if says.as_ref().is_some_and(|id| filter.instances.contains(id)) || names.contains(node.as_str())
            {
                filter.nodes.insert(node.clone());
            }
        }
    }
}

fn entry(
    recorded: &RecordedSteps,
    cloud: &reveille_core::model::id::CloudName,
    instance: &Instance,
) -> (InstanceId, String, Option<String>) {
    let pool = match recorded.header.roster.claim(cloud, instance) {
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
