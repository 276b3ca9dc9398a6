//! Claims about agents: what one said, did and can do.

use reveille_agent::effect::Verb;
use reveille_core::model::id::InstanceId;

use super::scene::Scene;
use super::words::shown;

/// A claim about the agent of a machine.
#[derive(Clone, Debug)]
pub(crate) enum AgentClaim {
    /// It said this.
    Says(String),
    /// It did this.
    Does(Verb),
    /// It rebooted its machine, by whichever way.
    Reboots,
    /// It can reboot its machine.
    CanReboot,
    /// The watchdog is armed, or is not.
    Armed(bool),
}

impl AgentClaim {
    pub(crate) fn holds(&self, scene: &Scene<'_>, id: &InstanceId) -> bool {
        let world = &scene.drive.world;
        let acts = |is: &dyn Fn(Verb) -> bool| {
            let mut acts = world.agent_acts().iter().filter(|act| act.machine == *id && act.at >= scene.from);
            acts.any(|act| is(act.verb))
        };
        match self {
            Self::Says(text) => {
                let mut said = world.agents_said().iter();
                said.any(|said| said.machine == *id && said.at >= scene.from && said.text.contains(text))
            }
            Self::Does(verb) => acts(&|did| did == *verb),
            Self::Reboots => acts(&Verb::is_reboot),
            Self::CanReboot => world.agent(id).is_some_and(|agent| agent.unable().is_none()),
            Self::Armed(armed) => world.agent(id).is_some() && world.is_watchdog_armed(id) == *armed,
        }
    }

    pub(crate) fn tell(&self, scene: &Scene<'_>, name: &str, id: &InstanceId) -> String {
        let world = &scene.drive.world;
        let Some(agent) = world.agent(id) else { return format!("no agent runs on {name}") };
        match self {
            Self::Says(_) => {
                let said = world.agents_said().iter().filter(|said| said.machine == *id).rev().take(3);
                let said: Vec<&str> = said.map(|said| said.text.as_str()).collect();
                format!("the agent of {name} said last: {}", said.join(" / "))
            }
            Self::Does(_) | Self::Reboots => {
                let acts = world.agent_acts().iter().filter(|act| act.machine == *id && act.at >= scene.from);
                let acts: Vec<String> = acts
                    .take(6)
                    .map(|act| format!("{} {}", shown(act.at.since(scene.start)), act.verb))
                    .collect();
                if acts.is_empty() { format!("the agent of {name} did nothing") } else { acts.join(", ") }
            }
            Self::CanReboot => match agent.unable() {
                None => format!("the agent of {name} can reboot it"),
                Some(why) => format!("the agent of {name} cannot reboot it: {why}"),
            },
            Self::Armed(_) => {
                let word = if world.is_watchdog_armed(id) { "armed" } else { "disarmed" };
                format!("the watchdog of {name} is {word}")
            }
        }
    }
}
