//! A file's words as deeds on the rig: faults by name, machines, nodes, the proxy's lies, Reveille's process.
//!
//! One table, [`Stage::strike`]: a fault of the simulated world on the left, how the same thing is brought about among real
//! services on the right. What stands in no line of it cannot be brought about and is refused by its name before anything
//! begins. How Reveille takes it is not known here.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use reveille_core::effect::ReadErrorKind;
use reveille_core::event::PauseScope;
use reveille_core::model::id::InstanceId;
use reveille_core::model::time::Span;
use reveille_sim::drive::{CrashPoint, Mishap};
use reveille_sim::scenario::{Happening, Happens};
use reveille_sim::world::fault::{CallLie, Fault};
use reveille_sim::world::guest::Trouble;
use serde_json::json;

use super::backstage::Guest;
use super::given::rig_name;
use super::stage::{Dying, Stage};
use crate::cloud::{Service, text};
use crate::wait::{s, until};

/// The status by which a server is denied or not told, when it is asked for by its id.
const DENIED: u64 = 404;
const FAILS: u64 = 503;
/// The proxy holds a call up for longer than anybody waits.
const HELD_UP_MS: u64 = 90_000;

/// Refuses what the rig cannot bring about, by its name.
///
/// # Errors
/// The first statement that cannot be done.
pub(super) fn can_be_done(happenings: &[Happening]) -> Result<()> {
    for happening in happenings {
        let what = match &happening.what {
            Happens::Strikes(faults) => faults.iter().find(|fault| !is_known(fault)).map(Fault::name),
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

const fn is_known(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::GroupLost { slips: false, .. }
            | Fault::SecondPort(_)
            | Fault::PortSecurityOff(_)
            | Fault::PairLost(_)
            | Fault::DuplicateRoute(_)
            | Fault::MissingRoute(_)
            | Fault::RulesLost
            | Fault::RulesWidened
            | Fault::RouteBroken(_)
            | Fault::Breaks(_, Trouble::KubeletHung | Trouble::Broken)
            | Fault::Errored(_)
            | Fault::ShutOff(_)
            | Fault::StuckDeleting(_)
            | Fault::ForeignDelete(_)
            | Fault::NodeDeletedByPerson(_)
            | Fault::ControllerDown(_)
            | Fault::Unmarked(_)
            | Fault::ServersUnlisted { .. }
            | Fault::PortsUnlisted(_)
            | Fault::CloudFails(ReadErrorKind::Throttled | ReadErrorKind::Unavailable, _)
            | Fault::NodesUnlisted(_)
            | Fault::ApiSilent(_)
            | Fault::Call(CallLie::Ignored | CallLie::Unanswered | CallLie::Fails { .. })
    )
}

const fn may_start_with(trouble: Trouble) -> bool {
    matches!(trouble, Trouble::NoNetwork | Trouble::MetadataDown | Trouble::BadToken | Trouble::Broken)
}

/// Something in it strikes more than the file's own machines, so nothing else may be played on the rig meanwhile. A node that
/// outlives its machine is in every roster's cluster, and nobody's.
pub(super) fn touches_others(happenings: &[Happening]) -> bool {
    happenings.iter().any(|happening| match &happening.what {
        Happens::Strikes(faults) => faults.iter().any(|fault| {
            let elsewhere =
                matches!(fault, Fault::RouteBroken(_) | Fault::DuplicateRoute(_) | Fault::MissingRoute(_));
            elsewhere || fault.machine().is_none()
        }),
        Happens::Process(_) => true,
        _ => false,
    })
}

fn time(span: Span) -> Duration {
    Duration::from_millis(u64::try_from(span.ms).unwrap_or_default())
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
                    PauseScope::Roster => None,
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

    fn annotate(&self, name: &str, word: &str) -> Result<()> {
        let rig = rig_name(&self.prefix, name);
        self.kube.ctl(&["annotate", "node", &rig, "--overwrite", word]).map(drop)
    }

    fn confirm(&self, name: &str) -> Result<()> {
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
        let name = fault.machine().map(InstanceId::as_str).unwrap_or_default().to_owned();
        let rig = rig_name(&self.prefix, &name);
        match fault {
            Fault::GroupLost { .. } => self.rig.fault(&["group-off", &rig]),
            Fault::SecondPort(_) => self.rig.fault(&["second-port-without-group", &rig]),
            Fault::PortSecurityOff(_) => {
                self.each_port(&name, &json!({"security_groups": [], "port_security_enabled": false}))
            }
            Fault::PairLost(_) => self.each_port(&name, &json!({"allowed_address_pairs": []})),
            Fault::DuplicateRoute(_) => self.rig.fault(&["duplicate-route", &rig]),
            Fault::MissingRoute(_) => self.rig.fault(&["missing-route", &rig]),
            Fault::RulesLost => self.rig.fault(&["rule-off"]),
            Fault::RulesWidened => self.widen_rules(),
            Fault::RouteBroken(_) => {
                self.unreachable.push(rig.clone());
                self.kube.condition(&rig, "RouteBroken", true)
            }
            Fault::Breaks(_, trouble) => {
                self.guest(&name)?.trouble = Some(*trouble);
                self.silence(&name)
            }
            Fault::Errored(_) => {
                self.rig.fault(&["errored", &rig, "Live migration failed: the host is down."])?;
                self.silence(&name)
            }
            Fault::ShutOff(_) => {
                let id = self.guest(&name)?.made.machine.id.clone();
                self.act(&id, "os-stop")?;
                self.silence(&name)
            }
            Fault::StuckDeleting(_) => {
                self.rig.fault(&["stuck-deleting", &rig])?;
                self.silence(&name)
            }
            Fault::ForeignDelete(_) => self.rig.run(&["machine", "delete", "--no-wait", &rig]).map(drop),
            Fault::NodeDeletedByPerson(_) => {
                self.rig.fault(&["node-delete", &rig])?;
                let guest = self.guest(&name)?;
                (guest.has_node, guest.silent) = (false, false);
                Ok(())
            }
            Fault::Unmarked(_) => self.unmark(&name),
            _ => self.deceive(fault),
        }
    }

    /// What is told falsely, or not at all, for a while.
    fn deceive(&mut self, fault: &Fault) -> Result<()> {
        let lies: &[(&str, serde_json::Value)] = match fault {
            // No cloud controller runs here, so that it is down is so already.
            Fault::ControllerDown(_) => &[],
            Fault::ServersUnlisted { denies, .. } => &[
                ("nova-empty-list", json!({"byId": if *denies { DENIED } else { FAILS }})),
                ("neutron-empty-list", json!({})),
            ],
            Fault::PortsUnlisted(_) => &[("neutron-empty-list", json!({}))],
            Fault::CloudFails(ReadErrorKind::Throttled, _) => {
                &[("nova-429", json!({"retryAfter": 20})), ("neutron-429", json!({"retryAfter": 20}))]
            }
            Fault::CloudFails(..) => &[("nova-500", json!({})), ("neutron-500", json!({}))],
            Fault::NodesUnlisted(_) => &[("nodes-empty-list", json!({})), ("nodes-watch-gone", json!({}))],
            Fault::ApiSilent(_) => {
                self.deaf = true;
                self.rig.fault(&["api-hang"])?;
                &[]
            }
            other => bail!("the rig cannot bring about {}", other.name()),
        };
        for (lie, arguments) in lies {
            self.proxy.arm(lie, arguments.clone())?;
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
        let over = Instant::now() + time(lasts);
        self.lifts.extend(lies.iter().map(|(lie, _)| (over, (*lie).to_owned())));
        if self.deaf {
            self.lifts.push((over, "api-hang".to_owned()));
        }
        Ok(())
    }

    /// The next calls go wrong.
    fn lie(&self, lie: CallLie, times: usize) -> Result<()> {
        let fault = match lie {
            CallLie::Ignored => "neutron-port-put-lost",
            CallLie::Unanswered => "neutron-timeout-after-effect",
            _ => "neutron-write-429",
        };
        self.proxy.arm(fault, json!({"count": times}))
    }

    fn befall(&mut self, mishap: &Mishap) -> Result<()> {
        let (faults, down): (&[&str], Span) = match mishap {
            Mishap::Crash(down) => (&[], *down),
            Mishap::CrashAt(CrashPoint::BeforeCall, down) => {
                (&["neutron-write-slow", "nova-write-slow"], *down)
            }
            Mishap::CrashAt(_, down) => {
                (&["neutron-timeout-after-effect", "nova-timeout-after-effect"], *down)
            }
            other => bail!("the rig cannot bring about {}", other.name()),
        };
        for fault in faults {
            let arguments = if fault.ends_with("slow") { json!({"ms": HELD_UP_MS}) } else { json!({}) };
            self.proxy.arm(fault, arguments)?;
        }
        self.dying = Some(Dying { faults: faults.to_vec(), down: time(down), rises_at: None });
        Ok(())
    }

    /// A pool's owner starts a machine.
    pub(super) fn start(&mut self, name: &str, pool: &str, trouble: Option<Trouble>) -> Result<()> {
        let rig = rig_name(&self.prefix, name);
        let machine = self.rig.machines(&[&rig], &self.roster.tags(pool), &[])?.remove(0);
        self.guests.push(Guest::new(name, pool, machine, trouble));
        match trouble.and_then(|trouble| trouble.console(&rig)) {
            Some(said) => self.rig.console(&rig, &said),
            None => Ok(()),
        }
    }

    fn each_port(&mut self, name: &str, fields: &serde_json::Value) -> Result<()> {
        let id = self.guest(name)?.made.machine.id.clone();
        for port in self.cloud.ports(&id)? {
            self.cloud.set_port(&text(&port["id"]), fields)?;
        }
        Ok(())
    }

    /// One rule that allows everything takes the place of those that are there.
    fn widen_rules(&self) -> Result<()> {
        let group = &self.rig.facts.openstack.security_group;
        let before = self.cloud.rules(group)?;
        self.cloud.add_rule(group, &json!({"remote_ip_prefix": "0.0.0.0/0"}))?;
        let ingress = before.iter().filter(|rule| rule["direction"] == "ingress");
        ingress.map(|rule| text(&rule["id"])).try_for_each(|id| self.cloud.drop_rule(&id))
    }

    fn act(&self, id: &str, action: &str) -> Result<()> {
        let path = format!("/servers/{id}/action");
        let answer = self.cloud.ask("POST", Service::Nova, &path, Some(&json!({action: null})))?;
        ensure!(answer.status < 300, "{action}: {} {}", answer.status, answer.body);
        Ok(())
    }

    fn unmark(&mut self, name: &str) -> Result<()> {
        let made = &self.guest(name)?.made;
        let path = format!("/servers/{}/tags/k8s-pool%3D{}", made.machine.id, made.pool);
        let answer = self.cloud.ask("DELETE", Service::Nova, &path, None).context("taking the mark off")?;
        ensure!(answer.status < 300, "the mark stays: {} {}", answer.status, answer.body);
        Ok(())
    }
}
