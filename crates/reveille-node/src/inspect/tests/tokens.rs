//! Which server is shown a token that is found on a machine, when a plan names another cluster than the token's own.

use super::*;
use crate::target::BOOTSTRAP_KUBECONFIG;

/// The plan of a registration server: a supervisor and pins, as `agent/plan.rs` makes a target of it.
fn planned(kind: Kind, port: u16, pins: &[&Authority]) -> Target {
    let arguments = Arguments {
        distribution: Some(kind),
        words: vec![format!("127.0.0.1:{port}")],
        token: Some(if kind == Kind::Kubeadm { "abcdef.0123456789abcdef" } else { "x" }.into()),
        ca_cert_hashes: pins.iter().map(|authority| authority.pin().to_string()).collect(),
        ..Arguments::default()
    };
    Target { token: None, ..Target::find(&arguments, &Root::new("/nowhere")).unwrap().unwrap() }
}

fn inspector(here: &Here, target: Target) -> Inspector {
    let way = distribution::of(here.kind, &here.root).unwrap();
    Inspector::new(here.root.clone(), target, NodeName::from("w-1"), way)
}

fn shown(heard: &Std<Vec<Heard>>) -> Vec<String> {
    let heard = heard.lock().unwrap();
    heard.iter().filter_map(|asked| asked.headers.get("authorization").cloned()).collect()
}

/// Its agent runs, and has not joined yet. The pin of its own cluster beside the stranger's does not help the stranger.
#[tokio::test]
async fn found_token_is_not_shown_to_supervisor_with_other_hash() {
    let (ours, theirs) = (Cluster::new("ours"), Cluster::new("theirs"));
    for (token, wanted) in [
        (ours.token(), Credentials::TokenDead),
        (PASSWORD.to_owned(), Credentials::CannotTell("".into())),
        ("abcdef.c4naryc4naryc4na".to_owned(), Credentials::CannotTell("".into())),
    ] {
        for pins in [vec![&theirs.authority], vec![&ours.authority, &theirs.authority]] {
            let (server, heard) = theirs.serve(Kind::K3s).await;
            let here = Here::new(Kind::K3s);
            here.is_told(1, &token);
            here.runs();
            here.put("/etc/rancher/node/password", NODE_PASSWORD);
            let found = inspector(&here, planned(Kind::K3s, server.port, &pins)).inspect().await;
            assert!(heard.lock().unwrap().iter().any(|asked| asked.path == "/cacerts"));
            assert_eq!(shown(&heard), Vec::<String>::new());
            let credentials = match found.inspection.credentials {
                Credentials::CannotTell(why) => {
                    assert!(!why.contains("c4nary") && why.contains("shown"), "{why}");
                    Credentials::CannotTell("".into())
                }
                other => other,
            };
            assert_eq!(credentials, wanted);
        }
    }
}

/// A short token names no cluster: it is tried where its own agent shows it, or where the authority is that its agent took.
#[tokio::test]
async fn found_short_token_is_tried_with_cluster_of_its_agent() {
    let cluster = Cluster::new("ours");
    for (has_server, keeps_authority) in [(true, false), (false, true)] {
        let (server, heard) = cluster.serve(Kind::K3s).await;
        let here = Here::new(Kind::K3s);
        here.is_told(if has_server { server.port } else { 1 }, PASSWORD);
        if keeps_authority {
            here.put(&here.agent("server-ca.crt"), &cluster.bundle());
        }
        here.runs();
        let target = planned(Kind::K3s, server.port, &[&cluster.authority]);
        let found = inspector(&here, target).inspect().await;
        assert_eq!(found.inspection.credentials, Credentials::Bootstrapping);
        assert_eq!(shown(&heard).len(), 1);
    }
}

/// The token of a kubelet that has no certificate yet goes to the cluster whose authority stands beside it.
#[tokio::test]
async fn found_bootstrap_token_is_not_shown_to_other_authority() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    for (own, wanted) in [(&ours, 0), (&theirs, 2)] {
        let data = base64_of(&pem::certificates(&[ours.der(), theirs.der()]));
        let info = format!(
            "clusters:\n- cluster: {{server: 'https://10.0.0.1:6443', certificate-authority-data: {data}}}\n  name: ''\n"
        );
        let info = serde_json::json!({ "data": { "kubeconfig": info } }).to_string();
        let heard = Arc::new(Std::new(Vec::new()));
        let log = Arc::clone(&heard);
        let server = serve(&theirs, move |asked| {
            log.lock().unwrap().push(asked.clone());
            match asked.path.as_str() {
                path if path.ends_with("/cluster-info") => (200, info.clone().into_bytes()),
                path if path.starts_with("/apis/certificates") => (200, br#"{"items":[]}"#.to_vec()),
                _ => (404, b"{}".to_vec()),
            }
        })
        .await;
        let here = Here::new(Kind::Kubeadm);
        let conf = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: l\n  cluster: {{server: \"https://127.0.0.1:{}\", certificate-authority-data: {}}}\n\
             contexts:\n- name: c\n  context: {{cluster: l, user: u}}\nusers:\n- name: u\n  user: {{token: abcdef.c4naryc4naryc4na}}\n",
            server.port,
            base64_of(&pem::certificates(&[own.der()])),
        );
        here.put(BOOTSTRAP_KUBECONFIG, &conf);
        here.put("/var/lib/kubelet/config.yaml", "");
        here.runs();
        here.put("/proc/77/cmdline", "/usr/bin/kubelet\0");
        let target = planned(Kind::Kubeadm, server.port, &[&ours, &theirs]);
        let found = inspector(&here, target).inspect().await;
        assert_eq!(shown(&heard).len(), wanted, "{:?}", found.inspection.credentials);
    }
}

#[tokio::test]
async fn given_token_is_shown_only_to_cluster_that_it_names() {
    let (ours, theirs) = (Cluster::new("ours"), Cluster::new("theirs"));
    let (server, heard) = theirs.serve(Kind::K3s).await;
    let here = Here::new(Kind::K3s);
    let inspector = inspector(&here, planned(Kind::K3s, server.port, &[&theirs.authority]));
    let token = Token::parse_for(Kind::K3s, "test", &ours.token().into()).unwrap();
    let refusal = inspector.try_token(&token).await.unwrap_err();
    assert!(refusal.contains("another cluster") && !refusal.contains("c4nary"), "{refusal}");
    assert_eq!(shown(&heard), Vec::<String>::new());
}
