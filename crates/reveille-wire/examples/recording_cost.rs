//! This example measures what a recording of a quiet fleet costs: bytes for a day and microseconds for each event.
//!
//! The example makes the events itself, so that it measures only the writing. It encodes and compresses each step and
//! writes it to a recording in a temporary folder, which it flushes as often as the recorder does. `--example recording_cost
//! -- HOURS MACHINES…`

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reveille_core::effect::Effect;
use reveille_core::event::{CloudFact, CloudSnapshot, ClusterFact, Event, Scope};
use reveille_core::model::instance::{Instance, InstanceState, Mark, Port, PortStatus};
use reveille_core::model::lease::{Leases, Renewal};
use reveille_core::model::node::{Node, NodeIntent, Provider, Ready};
use reveille_core::model::time::Time;
use reveille_record::recording::{RecordingConfig, RecordingWriter};
use reveille_wire::recording::Writer;

const BEGIN_MS: i64 = 1_792_400_400_000;

struct Fleet {
    instances: Vec<Arc<Instance>>,
    ports: Vec<(reveille_core::model::id::InstanceId, Arc<Port>)>,
    nodes: Vec<Arc<Node>>,
    renewed: Vec<u64>,
}

/// A scattered number, the same on every run.
const fn scatter(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn uuid(n: u64) -> String {
    let (a, b) = (scatter(n), scatter(n ^ 0xffff_0000));
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xffff,
        b >> 48,
        b & 0xffff_ffff_ffff
    )
}

impl Fleet {
    fn new(machines: usize) -> Result<Self, Box<dyn Error>> {
        let marks = Arc::new(BTreeSet::from([
            Mark::Tag("k8s-cluster=prod".into()),
            Mark::Tag("k8s-pool=workers".into()),
        ]));
        let (mut instances, mut ports, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..machines as u64 {
            let (id, name) = (uuid(n), format!("kks-prod-workers-{:05}", scatter(n) % 100_000));
            let address = format!("10.{}.{}.{}", n >> 16, n >> 8 & 255, n & 255).parse()?;
            instances.push(Arc::new(Instance {
                id: id.as_str().into(),
                name: name.as_str().into(),
                state: InstanceState::Active,
                task: None,
                fault: None,
                zone: Some("nova-a".into()),
                image: Some("img-1".into()),
                marks: marks.clone(),
                addresses: Box::new([address]),
                config_drive: true,
                locked: false,
                created: Some("2026-10-19T09:00:00Z".into()),
                hostname: None,
                hosting: None,
            }));
            let port = Port {
                id: uuid(n + 1_000_000).as_str().into(),
                network: "net-1".into(),
                addresses: Box::new([address]),
                groups: Box::new(["sg-1".into()]),
                pairs: Box::new([]),
                security: true,
                status: PortStatus::Active,
                revision: 4,
            };
            ports.push((id.as_str().into(), Arc::new(port)));
            nodes.push(Arc::new(Node {
                name: name.as_str().into(),
                uid: uuid(n + 2_000_000).as_str().into(),
                provider: Provider::Instance(id.as_str().into()),
                system_uuid: Some(id.as_str().into()),
                boot_id: Some(uuid(n + 3_000_000).into()),
                kubelet: Some("v1.34.0".into()),
                addresses: Box::new([address]),
                pod_ranges: Box::new([]),
                ready: Ready::True,
                conditions: Box::new([]),
                zone: Some("nova-a".into()),
                cordoned: false,
                intent: NodeIntent::default(),
                uninitialized: false,
                taints: Box::default(),
            }));
        }
        Ok(Self { instances, ports, nodes, renewed: vec![0; machines] })
    }

    /// A listing as the adapter makes it: new objects with the content of the last ones.
    fn snapshot(&self, scope: Scope) -> Event {
        let fresh = |one: &Arc<Instance>| Arc::new(Instance::clone(one));
        let snapshot = CloudSnapshot {
            instances: if scope == Scope::Full {
                self.instances.iter().map(fresh).collect()
            } else {
                Vec::new()
            },
            begun: None,
            scope,
            ports: self.ports.iter().map(|(of, port)| (of.clone(), Arc::new(Port::clone(port)))).collect(),
            in_use: Arc::default(),
            groups: Some(Vec::new()),
            routers: Vec::new(),
        };
        Event::Cloud { cloud: "os".into(), fact: CloudFact::read(snapshot) }
    }

    fn leases(&mut self, second: u64) -> Event {
        for (n, renewed) in self.renewed.iter_mut().enumerate() {
            if !scatter(second ^ (n as u64) << 20).is_multiple_of(30) {
                *renewed = second;
            }
        }
        let leases = self.nodes.iter().zip(&self.renewed);
        let leases: Leases =
            leases.map(|(node, renewed)| (node.name.clone(), Renewal::nth(*renewed))).collect();
        Event::Cluster(ClusterFact::Leases(leases))
    }

    /// What happens in one second.
    fn second(&mut self, second: u64) -> Vec<Event> {
        let mut events = vec![Event::Cluster(ClusterFact::Alive)];
        if second == 0 {
            events.push(Event::Cluster(ClusterFact::Synced(self.nodes.clone())));
        }
        if second.is_multiple_of(30) {
            events.push(self.snapshot(if second.is_multiple_of(600) { Scope::Full } else { Scope::Changes }));
        }
        if second.is_multiple_of(10) {
            events.push(self.leases(second));
            events.push(Event::Tick);
        }
        events
    }
}

fn measure(hours: u64, machines: usize) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut recording = RecordingWriter::create(folder.path(), "run", RecordingConfig::STANDARD)?;
    let mut fleet = Fleet::new(machines)?;
    let mut writer = Writer::default();
    let (mut spent, mut events, mut text_bytes) = (Duration::ZERO, 0_u32, 0_u64);
    let mut first_bytes = 0;
    for second in 0..hours * 3600 {
        for event in fleet.second(second) {
            let at = Time::from_ms(BEGIN_MS + i64::try_from(second * 1000 + u64::from(events % 7))?);
            let wake = [Effect::WakeAt(Time::from_ms(at.ms + 9_000))];
            let effects = if matches!(event, Event::Tick) { &wake[..] } else { &[] };
            let began = Instant::now();
            let line = writer.step(at, &event, effects)?;
            recording.append(&line)?;
            spent += began.elapsed();
            events += 1;
            text_bytes += line.len() as u64 + 1;
        }
        if second.is_multiple_of(5) {
            let began = Instant::now();
            recording.flush()?;
            spent += began.elapsed();
        }
        if second == 0 {
            first_bytes = recording.bytes();
        }
    }
    let day = (recording.bytes() - first_bytes) * 24 / hours;
    println!(
        "{machines} machines, {hours} h: {events} events, {:.1} us each; first look {first_bytes} bytes, then {day} bytes a day \
         ({:.1} MB of text compressed {:.0} times)",
        spent.as_secs_f64() * 1e6 / f64::from(events),
        text_bytes as f64 / 1e6,
        text_bytes as f64 / recording.bytes() as f64,
    );
    recording.end()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|text| text.parse()).collect();
    let numbers = numbers?;
    let (hours, fleets) =
        numbers.split_first().map_or((24, &[100, 1_000, 10_000][..]), |(hours, rest)| (*hours, rest));
    for machines in fleets {
        measure(hours, usize::try_from(*machines)?)?;
    }
    Ok(())
}
