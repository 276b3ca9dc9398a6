//! What Reveille asked of the services, as the fault proxy counted it; and the proxy's faults, set without a program.
//!
//! Scenarios read the services past the proxy and the rig's commands go past it, so whatever is counted here is
//! Reveille's. Logging in is counted apart from reads and writes.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use ureq::Agent;

/// Leases by their path, wherever they are.
const LEASES: &str = "/apis/coordination.k8s.io/";

/// The control port of the fault proxy.
pub struct Proxy {
    agent: Agent,
    control: String,
}

/// How often what was asked.
#[derive(Clone, Debug, Deserialize)]
pub struct Calls {
    /// Since the counts began.
    pub seconds: f64,
    /// By service, then by method and path with ids taken out.
    pub services: BTreeMap<String, BTreeMap<String, Count>>,
}

/// Requests of one kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Count {
    /// How many.
    pub calls: u64,
    /// Bytes of all answers.
    pub bytes_out: u64,
    /// How many of them reached the service.
    pub forwarded: u64,
    /// True when they change something.
    pub write: bool,
}

impl Proxy {
    /// The proxy behind this address.
    pub fn new(control: &str) -> Self {
        Self { agent: agent(Duration::from_secs(10)), control: control.to_owned() }
    }

    /// Arms a fault.
    ///
    /// # Errors
    /// When the proxy does not know it or does not answer.
    pub fn arm(&self, fault: &str, arguments: Value) -> Result<()> {
        let url = format!("{}/faults/{fault}", self.control);
        let mut answer = self.agent.put(url).send_json(arguments).context("the fault proxy")?;
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        ensure!(answer.status().is_success(), "the fault proxy refuses {fault}: {text}");
        Ok(())
    }

    /// Disarms a fault; one that is not armed is no error.
    ///
    /// # Errors
    /// When the proxy does not answer.
    pub fn disarm(&self, fault: &str) -> Result<()> {
        let url = format!("{}/faults/{fault}", self.control);
        self.agent.delete(url).call().map(drop).context("the fault proxy")
    }

    /// How many requests an armed fault has hit.
    ///
    /// # Errors
    /// When the proxy does not answer.
    pub fn hits(&self, fault: &str) -> Result<u64> {
        let url = format!("{}/faults", self.control);
        let faults: Value = self.agent.get(url).call()?.body_mut().read_json()?;
        Ok(faults[fault]["hits"].as_u64().unwrap_or(0))
    }

    /// The counts.
    ///
    /// # Errors
    /// When the proxy does not answer.
    pub fn calls(&self) -> Result<Calls> {
        let url = format!("{}/calls", self.control);
        self.agent.get(url).call()?.body_mut().read_json().context("the proxy's counts")
    }

    /// The counts, which start again from zero.
    ///
    /// # Errors
    /// When the proxy does not answer.
    pub fn reset_calls(&self) -> Result<Calls> {
        let url = format!("{}/calls", self.control);
        self.agent.delete(url).call()?.body_mut().read_json().context("the proxy's counts")
    }
}

/// A client that gives every status as an answer and gives up after `within`. Every request has a connection of its own:
/// the real services close those that idle, and one that is closed just as it is used again fails a test for nothing.
pub(crate) fn agent(within: Duration) -> Agent {
    let config = Agent::config_builder().timeout_global(Some(within)).http_status_as_error(false);
    config.max_idle_connections(0).build().into()
}

impl Calls {
    /// Requests of one kind, say `nova`, `DELETE /v2.1/servers/{id}`.
    pub fn of(&self, service: &str, kind: &str) -> u64 {
        self.services.get(service).and_then(|kinds| kinds.get(kind)).map_or(0, |count| count.calls)
    }

    /// Those that reached the service.
    pub fn forwarded(&self, service: &str, kind: &str) -> u64 {
        self.services.get(service).and_then(|kinds| kinds.get(kind)).map_or(0, |count| count.forwarded)
    }

    /// Bytes of the answers to requests of one kind.
    pub fn bytes(&self, service: &str, kind: &str) -> u64 {
        self.services.get(service).and_then(|kinds| kinds.get(kind)).map_or(0, |count| count.bytes_out)
    }

    /// Everything that was to change something, whether it got through or not. A controller's own Lease, by which two of one
    /// roster find each other, changes nothing of a fleet and is left out.
    pub fn writes(&self) -> Vec<(String, u64)> {
        let mut writes = self.each(|count| count.write);
        writes.retain(|(kind, _)| !kind.contains(LEASES));
        writes
    }

    /// Everything that was asked of Nova and Neutron.
    pub fn of_cloud(&self) -> u64 {
        let services = ["nova", "neutron"].iter().filter_map(|service| self.services.get(*service));
        services.flat_map(BTreeMap::values).map(|count| count.calls).sum()
    }

    /// Nothing was to be changed.
    ///
    /// # Errors
    /// When something was; the error names it.
    pub fn no_writes(&self) -> Result<()> {
        let writes = self.writes();
        ensure!(writes.is_empty(), "something was to be changed: {writes:?}");
        Ok(())
    }

    /// No server was to be deleted, rebooted or started, and no Node deleted.
    ///
    /// # Errors
    /// When one was; the error names it.
    pub fn nothing_destructive(&self) -> Result<()> {
        let hurts = |kind: &str| {
            kind.starts_with("DELETE /v2.1/servers")
                || kind.starts_with("DELETE /api/v1/nodes")
                || kind.contains("/action/reboot")
                || kind.contains("/action/os-st")
                || kind.contains("/action/forceDelete")
        };
        let found: Vec<_> = self.writes().into_iter().filter(|(kind, _)| hurts(kind)).collect();
        ensure!(found.is_empty(), "a call would touch another owner's machine: {found:?}");
        Ok(())
    }

    /// The kinds that were asked since the counts began. One whose answer was still awaited then stands there with none.
    fn each(&self, wanted: impl Fn(&Count) -> bool) -> Vec<(String, u64)> {
        let kinds = self.services.values().flatten().filter(|(_, count)| count.calls > 0 && wanted(count));
        kinds.map(|(kind, count)| (kind.clone(), count.calls)).collect()
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in {:.0} s:", self.seconds)?;
        for (kind, count) in self.services.values().flatten() {
            write!(f, " {kind} ×{}", count.calls)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call hangs while the counts start again from zero, and its answer is given up after that: the proxy then knows its kind,
    /// and no call of it.
    #[test]
    fn write_asked_before_the_counts_began_is_not_counted() {
        let count = |calls| Count { calls, bytes_out: 0, forwarded: calls, write: true };
        let ec2 = [("POST ModifyNetworkInterfaceAttribute".to_owned(), count(0))];
        let kube = [("DELETE /api/v1/nodes/{name}".to_owned(), count(1))];
        let services = [("ec2".to_owned(), ec2.into()), ("kube".to_owned(), kube.into())];
        let calls = Calls { seconds: 79.0, services: services.into() };
        assert_eq!(calls.writes(), [("DELETE /api/v1/nodes/{name}".to_owned(), 1)]);
    }
}
