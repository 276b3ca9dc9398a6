//! A whole join of a k3s agent by the shipped loop: real files in a folder, real requests, and a substitute for
//! `systemctl`. The substitute does to the files what the agent does at its start. The program itself is not there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use reveille_agent::effect::Verb;

use super::*;
use crate::driver::Begin;
use crate::executor::{Executor, JoinSettings, TokenError};
use crate::inspect::tests::{Cluster, Here, MACHINE, ready_node};
use crate::memory_file::MemoryFile;
use crate::target::{Kind, Token};

struct Given(Token);

impl Tokens for Given {
    async fn token(&self) -> Result<Token, TokenError> {
        Ok(self.0.clone())
    }
}

/// Records its arguments, and puts the agent's certificate in place at each start.
fn systemctl(here: &Here) -> std::path::PathBuf {
    let path = here.root.at("/systemctl");
    let (log, ready, agent) =
        (here.root.at("/asked"), here.root.at("/prepared"), here.root.at(here.agent("")));
    let script = format!(
        "#!/bin/sh\necho \"$@\" >>{log}\ncase \"$1\" in restart) mkdir -p {agent}; cp {ready}/* {agent}/ ;; esac\n",
        log = log.display(),
        ready = ready.display(),
        agent = agent.display(),
    );
    here.put("/systemctl", &script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn k3s_agent_joins_and_unit_restart_restores_its_lost_node() {
    let cluster = Cluster::new("ours");
    let (server, _) = cluster.serve(Kind::K3s).await;
    let here = Here::new(Kind::K3s);
    // The files that the agent has after its start, set aside until then.
    here.has_joined(&cluster);
    fs::rename(here.root.at(here.agent("")), here.root.at("/prepared")).unwrap();
    let inspector = Arc::new(here.inspector(server.port, &cluster.token()));
    let token = inspector.target().token.clone().unwrap();
    let settings = JoinSettings {
        copies: here.root.at("/copies"),
        systemctl: Some(systemctl(&here)),
        ..JoinSettings::default()
    };
    let executor = Executor::new(Arc::clone(&inspector), Given(token), settings);
    let times = Settings {
        check_every: Span::from_s(1),
        inspect_every: Span::from_s(1),
        backoff: Span::from_s(1),
        back_within: Span::from_s(2),
        ..super::settings(Span::from_s(1))
    };
    let memory = MemoryFile::within(&here.root.at("/memory"));
    let driver =
        Driver::new(Begin { inspector, executor, memory, config: times.check().unwrap().0, peer_set: None })
            .unwrap();
    let asked = || fs::read_to_string(here.root.at("/asked")).unwrap_or_default();
    let (mut undone, mut told) = (Vec::new(), Vec::new());
    let ended = join(driver, Duration::from_secs(60), |_, said| {
        if let Said::Undone(verb, why) = said {
            undone.push((*verb, why.clone()));
        }
        told.push(format!("{said:?}"));
        if asked().matches("restart").count() > 1 {
            *cluster.node.lock().unwrap() = ready_node(MACHINE);
        }
    })
    .await;
    assert_eq!((ended, undone), (Ended::Joined, Vec::<(Verb, String)>::new()), "{told:#?}");
    let lines = asked();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[..2], ["enable k3s-agent", "restart --no-block k3s-agent"]);
    assert!(
        lines[2..].iter().all(|line| *line == "restart --no-block k3s-agent"),
        "{lines:?}: nothing was reset"
    );
    let kept = fs::read_to_string(here.root.at("/etc/rancher/k3s/reveille-token")).unwrap();
    assert_eq!(kept, cluster.token());
    let mode = |path: &str| fs::metadata(here.root.at(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("/etc/rancher/k3s/reveille-token"), 0o600);
    assert_eq!(mode("/etc/rancher/k3s/config.yaml.d/90-reveille.yaml"), 0o600);
}
