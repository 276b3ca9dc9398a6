//! When the driver reads the machine again.

use reveille_agent::Settings;
use reveille_agent::model::{Credentials, Inspection, Role};
use reveille_core::model::agent::Ask;

use super::*;
use crate::executor::{JoinSettings, TokenError};
use crate::root::Root;
use crate::target::{Endpoint, Kind, Target, Token, ToldBy};

struct NoTokens;

impl Tokens for NoTokens {
    async fn token(&self) -> Result<Token, TokenError> {
        Err(TokenError::Refused("none in a test".to_owned()))
    }
}

fn driver(folder: &tempfile::TempDir) -> Driver<NoTokens> {
    let target = Target {
        kind: Kind::Kubeadm,
        told_by: ToldBy::Arguments,
        endpoints: vec![Endpoint::parse("server", "127.0.0.1:1").unwrap()],
        pins: Vec::new(),
        bundle: None,
        is_unpinned_on_purpose: false,
        token: None,
        node_name: None,
        cri_socket: None,
        config_file: None,
        is_control_plane: false,
    };
    let root = Root::new(folder.path());
    let distribution = crate::distribution::of(Kind::Kubeadm, &root).unwrap();
    let inspector = Arc::new(Inspector::new(root, target, NodeName::from("w-1"), distribution));
    let executor = Executor::new(Arc::clone(&inspector), NoTokens, JoinSettings::default());
    let memory = MemoryFile::within(folder.path());
    let (config, _) = Settings::default().check().unwrap();
    Driver::new(Begin { inspector, executor, memory, config, peer_set: None }).unwrap()
}

fn inspected(node: NodeSeen) -> Event {
    let found = Inspection {
        node,
        came_and_went: false,
        credentials: Credentials::Accepted,
        leaving: None,
        clock_is_right: true,
    };
    Event::Inspected { operation: OperationId(1), found }
}

#[tokio::test]
async fn ready_machine_is_read_rarely_and_again_on_change_or_request() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = driver(&folder);
    assert!(driver.look_at_machine().is_some() && driver.look_at_machine().is_none(), "changes are told");
    for (event, is_read, every) in [
        (inspected(NodeSeen::NotReady), false, MACHINE_EVERY),
        (inspected(NodeSeen::Ready), false, MACHINE_EVERY_SETTLED),
        (Event::Tick, false, MACHINE_EVERY_SETTLED),
        (Event::Asked(Ask::Rejoin), true, MACHINE_EVERY_SETTLED),
        (inspected(NodeSeen::Absent), true, MACHINE_EVERY),
        (inspected(NodeSeen::Absent), false, MACHINE_EVERY),
        (inspected(NodeSeen::Ready), false, MACHINE_EVERY_SETTLED),
        (inspected(NodeSeen::CannotTell), true, MACHINE_EVERY),
    ] {
        assert_eq!((driver.unsettles(&event), driver.machine_every()), (is_read, every), "{event:?}");
    }
    let marks = driver.inspector.root().at("/etc/kubernetes/manifests/kube-apiserver.yaml");
    std::fs::create_dir_all(marks.parent().unwrap()).unwrap();
    std::fs::write(marks, "").unwrap();
    let Some(Event::Found(machine)) = driver.look_at_machine() else { panic!("it leads now") };
    assert_eq!(machine.role, Role::ControlPlane { spare: false });
}
