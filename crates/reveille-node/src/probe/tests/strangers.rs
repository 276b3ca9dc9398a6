//! A server at the address of an API server, whose cluster-info names files of this machine.

use super::*;

/// A cluster-info that names a file as its CA.
fn naming(path: &str) -> String {
    let text = format!(
        "clusters:\n- cluster: {{server: 'https://10.0.0.1:6443', certificate-authority: '{path}'}}\n  name: ''\n"
    );
    serde_json::json!({"data": {"kubeconfig": text}}).to_string()
}

async fn answering(authority: &Authority, path: &str) -> Answering {
    serve(authority.server("127.0.0.1"), Says { cluster_info: naming(path), is_known: true, node: None })
        .await
}

/// A file of this machine with the certificate of a CA.
fn certificate_file(authority: &Authority) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    fs::write(&path, pem::certificates(&[authority.der()])).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[tokio::test]
async fn hostile_server_on_disk_reads_and_learns_no_host_file() {
    let (hostile, secret) = (Authority::new("hostile"), Authority::new("authority-of-the-host-alone"));
    let (_host, file) = certificate_file(&secret);
    let mut said = Vec::new();
    for path in [file.as_str(), "/nowhere/is/this", "/etc/shadow"] {
        let server = answering(&hostile, path).await;
        let disk = tempfile::tempdir().unwrap();
        let root = Root::new(disk.path());
        let data = STANDARD.encode(pem::certificates(&[hostile.der()]));
        let conf = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: l\n  cluster: \
             {{server: 'https://{}', certificate-authority-data: {data}}}\ncontexts:\n- name: c\n  context: \
             {{cluster: l, user: u}}\nusers:\n- name: u\n  user: {{}}\n",
            server.endpoint
        );
        fs::create_dir_all(root.at("/etc/kubernetes")).unwrap();
        fs::write(root.at("/etc/kubernetes/kubelet.conf"), conf).unwrap();
        let target = Target::of_machine(&root).unwrap().unwrap();
        let facts = Probe::of_folder(root).facts(Ok(Some(&target))).await;
        let text = format!("{:?}\n{:?}", facts.servers[0].authorities, facts.servers[0].cluster_info);
        assert!(text.contains("Malformed"), "{text}");
        said.push(text.replace(path, ""));
    }
    assert!(!said[0].contains("authority-of-the-host-alone"), "{}", said[0]);
    assert!(said.iter().all(|one| *one == said[0]), "what the host has is told: {said:#?}");
}

#[tokio::test]
async fn intermediary_cannot_pass_ca_pin_by_naming_a_local_file() {
    let (hostile, ours) = (Authority::new("hostile"), Authority::new("kubernetes"));
    let (_here, file) = certificate_file(&ours);
    let server = answering(&hostile, &file).await;
    let checks = checks_of(&target(&server.endpoint, &[ours.pin()])).await;
    assert_ne!(came(&checks, "ca-pin"), Came::Passed, "it told no authority at all");
}

/// A user of the machine listens on the kubelet's port before the kubelet does, and sends root's agent to a place that only
/// root may ask. The metadata of a cloud is such a place on many machines.
#[tokio::test]
async fn what_listens_on_the_kubelets_port_sends_root_nowhere_else() {
    let (listener, metadata) = listener().await;
    let asked = tokio::spawn(async move { listener.accept().await.is_ok() });
    let away = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://{metadata}/latest/meta-data\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    let kubelet = plain(away.leak().as_bytes()).await;
    let said = kubelet::healthz(&kubelet.endpoint, std::time::Duration::from_secs(5)).await;
    assert!(!asked.is_finished(), "root asked what a user named: {said:?}");
    assert_eq!(said.unwrap(), (302, String::new()));
}
