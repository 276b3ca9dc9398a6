//! A file's words as deeds on the rig: faults by name, machines, nodes, the proxy's lies, Reveille's process.
//!
//! Tables: a fault of the simulated world on the left, how the same thing is brought about among real services on the right. What
//! is of the cluster and of Reveille's process stands here, what is of a cloud with that cloud ([`super::host`]). What stands in
//! no line cannot be brought about and is refused by its name before anything begins. How Reveille takes it is not known here.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use reveille_core::event::PauseScope;
use reveille_core::model::time::Span;
use reveille_sim::drive::{CrashPoint, Mishap};
use reveille_sim::scenario::{Happening, Happens};
use reveille_sim::world::fault::{CallLie, Fault};
use reveille_sim::world::vm::Trouble;
use serde_json::{Value, json};

use super::backstage::Guest;
use super::given::rig_name;
use super::host::Kind;
use super::stage::{Dying, Stage};
use crate::wait::{s, until};

/// So long after a host broke its provider tells of it: after the silence was seen, and before anything is done about it.
const CHECKED_AFTER: Duration = Duration::from_secs(28);
/// The proxy delays a call for longer than any client waits.
const HELD_UP_MS: u64 = 90_000;

/// Refuses what the rig cannot bring about, by its name.
///
/// # Errors
/// The first statement that cannot be done.
pub(super) fn can_be_done(happenings: &[Happening], kind: Kind) -> Result<()> {
    for happening in happenings {
        let what = match &happening.what {
            Happens::Strikes(faults) => faults.iter().find(|fault| !kind.knows(fault)).map(Fault::name),
            Happens::Starts { trouble, .. } => {
                trouble.filter(|t| !may_start_with(*t)).map(|_| "such a start")
            }
            Happens::Process(Mishap::Crash(_)) => None,
            Happens::Process(Mishap::CrashAt(CrashPoint::BeforeCall | CrashPoint::BeforeDone, _)) => None,
            Happens::Process(mishap) => Some(mishap.name()),
            Happens::Pauses { .. } | Happens::Resumes | Happens::KubeletsRestart(_) => None,
            Happens::Annotates { .. } | Happens::Confirms(_) => None,
        };
        if let Some(what) = what {
            bail!("line {}: the rig cannot bring about {what}: {}", happening.line, happening.text);
        }
    }
    Ok(())
}

const fn may_start_with(trouble: Trouble) -> bool {
    matches!(trouble, Trouble::NoNetwork | Trouble::MetadataDown | Trouble::BadToken | Trouble::Broken)
}

/// Something in it strikes more than the file's own machines, so nothing else may be played on the rig meanwhile. A node that
/// outlives its machine is in every roster's cluster, and belongs to no roster.
pub(super) fn touches_others(happenings: &[Happening], kind: Kind) -> bool {
    let of_all = |fault: &Fault| match fault {
        Fault::RouteBroken(_) | Fault::DuplicateRoute(_) | Fault::MissingRoute(_) => true,
        Fault::NodesUnlisted(_) | Fault::ApiSilent(_) => true,
        // No cloud controller runs here, so that it is down is so already.
        Fault::ControllerDown(_) => kind == Kind::OpenStack,
        other => other.machine().is_none() && !kind.scopes_faults(),
    };
    happenings.iter().any(|happening| match &happening.what {
        Happens::Strikes(faults) => faults.iter().any(of_all),
        Happens::Process(_) => true,
        _ => false,
    })
}

impl Stage<'_> {
    /// Makes it happen.
    pub(super) fn happen(&mut self, what: &Happens) -> Result<()> {
        match what {
            Happens::Strikes(faults) => self.strike_all(faults),
            Happens::Starts { names, pool, trouble } => {
                names.iter().try_for_each(|name| self.start(name, pool.as_str(), *trouble))
            }
            Happens::KubeletsRestart(names) => {
                for name in names {
                    let guest = self.guest(name)?;
                    guest.trouble = guest.trouble.filter(|trouble| *trouble != Trouble::KubeletHung);
                    guest.boots_at = Some(Instant::now());
                }
                Ok(())
            }
            Happens::Process(mishap) => self.befall(mishap),
            Happens::Pauses { scope, by, reason } => {
                let scope = match scope {
                    PauseScope::Roster | PauseScope::OtherController => None,
                    PauseScope::Pool(name) => Some(format!("pool/{name}")),
                    PauseScope::Machine(name) => Some(rig_name(&self.prefix, name)),
                };
                let words: Vec<&str> = ["pause"].into_iter().chain(scope.as_deref()).collect();
                self.command(&[&words[..], &["--reason", reason, "--by", by]].concat())
            }
            Happens::Resumes => self.command(&["resume", "--all"]),
            Happens::Annotates { names, key, value } => {
                let word = value.as_ref().map_or_else(|| format!("{key}-"), |value| format!("{key}={value}"));
                names.iter().try_for_each(|name| self.annotate(name, &word))
            }
            Happens::Confirms(names) => names.iter().try_for_each(|name| self.confirm(name)),
        }
    }

    fn annotate(&mut self, name: &str, word: &str) -> Result<()> {
        let node = self.guest(name)?.made.machine.node().to_owned();
        self.kube.ctl(&["annotate", "node", &node, "--overwrite", word]).map(drop)
    }

    fn confirm(&mut self, name: &str) -> Result<()> {
        let rig = rig_name(&self.prefix, name);
        let ledger = self.place.ledger()?;
        let mut open = ledger.incidents.iter().filter(|one| one.label == rig && one.verdict.is_none());
        open.try_for_each(|one| self.annotate(name, &format!("reveille.dev/confirm={}", one.id)))
    }

    fn command(&self, words: &[&str]) -> Result<()> {
        let ended = self.reveille.ask(&self.place, words)?;
        ensure!(ended.code == Some(0), "reveille {words:?}: {}", ended.stderr);
        Ok(())
    }

    /// The same lie about several calls in a row is one fault with a count.
    fn strike_all(&mut self, faults: &[Fault]) -> Result<()> {
        match faults {
            [Fault::Call(lie), ..] => self.lie(*lie, faults.len()),
            _ => faults.iter().try_for_each(|fault| self.strike(fault)),
        }
    }

    fn strike(&mut self, fault: &Fault) -> Result<()> {
        let Some(name) = fault.machine().map(|id| id.as_str().to_owned()) else {
            return self.strike_all_machines(fault);
        };
        let made = self.guest(&name)?.made.clone();
        let node = made.machine.node();
        match fault {
            Fault::RouteBroken(_) => {
                self.unreachable.push(node.to_owned());
                self.kube.condition(node, "RouteBroken", true)
            }
            Fault::Breaks(_, trouble) => {
                self.guest(&name)?.trouble = Some(*trouble);
                self.silence(&name)
            }
            Fault::NodeDeletedByPerson(_) => {
                self.rig.fault(&["node-delete", node])?;
                let guest = self.guest(&name)?;
                (guest.has_node, guest.silent) = (false, false);
                Ok(())
            }
            Fault::HostImpaired(_) => {
                self.guest(&name)?.host_broken = true;
                let about = vec![made.machine.id.clone()];
                let told_at = Instant::now() + CHECKED_AFTER;
                for (lie, arguments) in self.host.deceptions(fault) {
                    self.due_faults.push((told_at, lie, arguments, about.clone()));
                }
                self.silence(&name)
            }
            _ => {
                self.host.strike(&made.machine, &made.pool, fault)?;
                let dies = matches!(fault, Fault::Errored(_) | Fault::ShutOff(_) | Fault::StuckDeleting(_));
                if dies { self.silence(&name) } else { Ok(()) }
            }
        }
    }

    fn strike_all_machines(&mut self, fault: &Fault) -> Result<()> {
        match fault {
            // No cloud controller runs here, so that it is down is so already.
            Fault::ControllerDown(_) => Ok(()),
            Fault::RulesLost | Fault::RulesWidened => {
                let any = self.guests.first().map(|guest| guest.made.clone());
                let any = any.context("a file without machines")?;
                self.host.strike(&any.machine, &any.pool, fault)
            }
            _ => self.deceive(fault),
        }
    }

    /// What is told falsely, or not at all, for a while.
    fn deceive(&mut self, fault: &Fault) -> Result<()> {
        let lies = match fault {
            Fault::NodesUnlisted(_) => vec![("nodes-empty-list", json!({})), ("nodes-watch-gone", json!({}))],
            Fault::ApiSilent(_) => {
                self.deaf = true;
                self.rig.fault(&["api-hang"])?;
                Vec::new()
            }
            other => self.host.deceptions(other),
        };
        ensure!(!lies.is_empty() || self.deaf, "the rig cannot bring about {}", fault.name());
        let about = self.host.about()?;
        let mut armed = Vec::new();
        for (lie, arguments) in lies {
            armed.push(self.arm(lie, arguments, about.as_deref())?);
        }
        if matches!(fault, Fault::NodesUnlisted(_)) {
            until("the empty list to be read", s(30), || {
                let hits = self.proxy.hits("nodes-watch-gone")?.min(self.proxy.hits("nodes-empty-list")?);
                ensure!(hits > 0, "not yet");
                Ok(())
            })?;
            self.proxy.disarm("nodes-watch-gone")?;
        }
        let Some(lasts) = fault.lasts() else { return Ok(()) };
        let over = Instant::now() + Duration::from(lasts);
        self.lifts.extend(armed.into_iter().map(|lie| (over, lie)));
        if self.deaf {
            self.lifts.push((over, "api-hang".to_owned()));
        }
        Ok(())
    }

    /// Arms a fault of the proxy and gives the name under which it is armed: this file's own where it is about its machines.
    pub(super) fn arm(&self, lie: &str, mut arguments: Value, about: Option<&[String]>) -> Result<String> {
        let Some(about) = about.filter(|_| lie.starts_with("ec2-")) else {
            self.proxy.arm(lie, arguments)?;
            return Ok(lie.to_owned());
        };
        arguments["about"] = json!(about);
        let own = format!("{lie}@{}", self.prefix);
        self.proxy.arm(&own, arguments)?;
        Ok(own)
    }

    /// Ends a fault of the proxy that this file has armed for itself, or was about to.
    pub(super) fn end_own_fault(&mut self, lie: &str) -> Result<()> {
        self.due_faults.retain(|(_, due, ..)| *due != lie);
        self.proxy.disarm(&format!("{lie}@{}", self.prefix))
    }

    /// The next calls go wrong.
    fn lie(&self, lie: CallLie, times: usize) -> Result<()> {
        let about = self.host.about()?;
        self.arm(self.host.lie(lie), json!({"count": times}), about.as_deref()).map(drop)
    }

    fn befall(&mut self, mishap: &Mishap) -> Result<()> {
        let (faults, down): (&[&str], Span) = match mishap {
            Mishap::Crash(down) => (&[], *down),
            Mishap::CrashAt(point, down) => {
                (self.host.held_up(matches!(point, CrashPoint::BeforeCall)), *down)
            }
            other => bail!("the rig cannot bring about {}", other.name()),
        };
        for fault in faults {
            let arguments = if fault.ends_with("slow") { json!({"ms": HELD_UP_MS}) } else { json!({}) };
            self.proxy.arm(fault, arguments)?;
        }
        self.dying = Some(Dying { faults: faults.to_vec(), down: down.into(), rises_at: None });
        Ok(())
    }

    /// A pool's owner starts a machine.
    pub(super) fn start(&mut self, name: &str, pool: &str, trouble: Option<Trouble>) -> Result<()> {
        let rig = rig_name(&self.prefix, name);
        let machine = self.host.launch(&self.prefix, pool, &[&rig], false)?.remove(0);
        self.guests.push(Guest::new(name, pool, machine.clone(), trouble));
        match trouble.and_then(|trouble| trouble.console(&rig)) {
            Some(said) => self.host.console(&machine, &said),
            None => Ok(()),
        }
    }
}
