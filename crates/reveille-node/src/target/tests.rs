//! Inputs of operators are read as they are, and invalid ones are refused; the canary is a token that no output may show.

use std::fs;

use base64::Engine as _;
use secrecy::ExposeSecret as _;

use super::*;
use crate::certificate::Presented;

const HASH: &str = "sha256:7a0cd3cc18ea132b33e1921b2d74c4bfc516802b4800c89e595ae04b3d1cf3aa";
const SECRET: &str = "c4naryc4naryc4na";

fn arguments(words: &[&str]) -> Arguments {
    Arguments {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        token: Some(format!("abcdef.{SECRET}").into()),
        ca_cert_hashes: vec![HASH.to_owned()],
        ..Arguments::default()
    }
}

fn empty() -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    for path in ["/etc/kubernetes", "/var/lib/kubelet/pki"] {
        fs::create_dir_all(root.at(path)).unwrap();
    }
    (folder, root)
}

fn found(arguments: &Arguments) -> Target {
    Target::find(arguments, &empty().1).unwrap().unwrap()
}

#[test]
fn printed_kubeadm_join_line_is_read_with_or_without_prefix() {
    for words in [
        &["10.0.0.1:6443"][..],
        &["kubeadm", "join", "10.0.0.1:6443"],
        &["sudo", "/usr/bin/kubeadm", "join", "10.0.0.1:6443"],
    ] {
        let target = found(&arguments(words));
        assert_eq!(target.endpoints, [Endpoint { host: "10.0.0.1".to_owned(), port: 6443 }]);
        assert_eq!(target.pins.iter().map(ToString::to_string).collect::<Vec<_>>(), [HASH]);
        let token = target.token.unwrap();
        assert_eq!(token.id(), "abcdef");
        assert_eq!(token.whole().expose_secret(), format!("abcdef.{SECRET}"));
    }
}

#[test]
fn a_target_never_shows_its_secret() {
    let target = found(&arguments(&["api.lan:6443"]));
    let shown = format!("{target:?} {target:#?} {:?} {}", target.token, target.token.clone().unwrap());
    assert!(shown.contains("abcdef") && !shown.contains(SECRET), "{shown}");
    assert!(!format!("{:?}", arguments(&["x"])).contains(SECRET));
}

#[test]
fn endpoints_are_read_as_people_write_them() {
    for (text, host, port) in [
        ("api.lan:6443", "api.lan", 6443),
        ("https://api.lan:8443/", "api.lan", 8443),
        ("https://api.lan", "api.lan", 443),
        ("[fd00::1]:6443", "fd00::1", 6443),
        ("https://[fd00::1]", "fd00::1", 443),
        ("[fe80::1%eth0]:6443", "fe80::1%eth0", 6443),
        ("api_1.lan.:6443", "api_1.lan.", 6443),
    ] {
        let read = Endpoint::parse("x", text).unwrap();
        assert_eq!((read.host.as_str(), read.port), (host, port), "{text}");
        assert_eq!(Endpoint::parse("x", &read.to_string()).unwrap(), read);
    }
}

#[test]
fn invalid_argument_is_refused_with_its_place_and_correction() {
    let token = |text: &str| Arguments { token: Some(text.into()), ..arguments(&["a:1"]) };
    let hash = |text: &str| Arguments { ca_cert_hashes: vec![text.to_owned()], ..arguments(&["a:1"]) };
    for (arguments, place, wrong, write) in [
        (arguments(&["10.0.0.1"]), "HOST:PORT", "it has no port", "10.0.0.1:6443"),
        (arguments(&["fd00::1"]), "HOST:PORT", "it has no port", "[fd00::1]:6443"),
        (arguments(&["http://a:80"]), "HOST:PORT", "speaks HTTPS", "HOST:PORT"),
        (arguments(&["a:99999"]), "HOST:PORT", "not a number", "HOST:PORT"),
        (arguments(&[":6443"]), "HOST:PORT", "no host", "HOST:PORT"),
        (arguments(&["x;curl${IFS}a|sh;:6443"]), "HOST:PORT", "no name or address", "HOST:PORT"),
        (arguments(&["https://$(reboot)"]), "HOST:PORT", "no name or address", "HOST:PORT"),
        (arguments(&["x\u{1b}[2J\n:6443"]), "HOST:PORT", "no name or address", "HOST:PORT"),
        (arguments(&["-x:6443"]), "HOST:PORT", "no name or address", "HOST:PORT"),
        (arguments(&["[fe80::1%;reboot]:6443"]), "HOST:PORT", "no name or address", "HOST:PORT"),
        (token("${TOKEN}"), "--token", "placeholder", "kubeadm token create"),
        (token(&format!("abcde.{SECRET}")), "--token", "22 characters", "kubeadm token create"),
        (token(""), "--token", "empty", "kubeadm token create"),
        (hash("7a0c"), "--discovery-token-ca-cert-hash", "does not begin with \"sha256:\"", "64 hexadecimal"),
        (hash("sha256:7a0c"), "--discovery-token-ca-cert-hash", "not sha256: and 64", "64 hexadecimal"),
        (
            hash(&HASH.replace('7', "x")),
            "--discovery-token-ca-cert-hash",
            "not sha256: and 64",
            "64 hexadecimal",
        ),
    ] {
        let error = Target::find(&arguments, &empty().1).unwrap_err();
        let said = error.to_string();
        assert!(error.place.contains(place) && error.wrong.contains(wrong), "{said}");
        assert!(error.write.contains(write), "{said}: {}", error.write);
        assert!(!said.contains(SECRET), "{said}");
    }
}

#[test]
fn pins_may_be_several_for_a_rotation() {
    let other = HASH.replace('7', "8");
    let two = Arguments { ca_cert_hashes: vec![format!("{HASH},{other}")], ..arguments(&["a:1"]) };
    assert_eq!(found(&two).pins.len(), 2);
}

fn joined(version: &str, rest: &str) -> String {
    format!(
        "# written by a person\n---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nport: 1\n---\n\
         apiVersion: kubeadm.k8s.io/{version}\nkind: JoinConfiguration\n{rest}"
    )
}

#[test]
fn join_configuration_is_read_in_both_versions_among_documents() {
    let discovery = format!(
        "discovery:\n  bootstrapToken: {{apiServerEndpoint: 'api.lan:6443', token: abcdef.{SECRET}, caCertHashes: ['{HASH}']}}\n"
    );
    let three =
        "nodeRegistration:\n  name: w-1\n  criSocket: unix:///run/x.sock\n  kubeletExtraArgs: {v: '4'}\n";
    let four = "nodeRegistration:\n  name: w-1\n  criSocket: unix:///run/x.sock\n  kubeletExtraArgs: [{name: v, value: '4'}]\ntimeouts: {discovery: 5m}\n";
    for (version, rest) in [("v1beta3", three), ("v1beta4", four)] {
        let target = file::parse(&joined(version, &format!("{discovery}{rest}")), &Root::default()).unwrap();
        assert_eq!(target.endpoints[0].to_string(), "api.lan:6443");
        assert_eq!(target.node_name, Some(NodeName::from("w-1")));
        assert_eq!(target.cri_socket.as_deref(), Some("unix:///run/x.sock"));
        assert_eq!(target.token.unwrap().id(), "abcdef");
        assert!(!target.is_control_plane);
    }
    let leads =
        joined("v1beta4", &format!("{discovery}controlPlane:\n  localAPIEndpoint: {{bindPort: 1}}\n"));
    assert!(file::parse(&leads, &Root::default()).unwrap().is_control_plane);
}

#[test]
fn invalid_join_configuration_is_refused_with_its_field() {
    let with = |token: &str, rest: &str| {
        joined("v1beta4", &format!("discovery:\n  bootstrapToken: {{token: '{token}', {rest}}}\n"))
    };
    let good = format!("abcdef.{SECRET}");
    let at = "apiServerEndpoint: 'a:1'";
    for (text, place, wrong) in [
        (String::new(), "kind", "nothing of a kind"),
        (
            "kind: ClusterConfiguration\napiVersion: kubeadm.k8s.io/v1beta4\n".to_owned(),
            "kind",
            "ClusterConfiguration",
        ),
        (joined("v1beta1", ""), "apiVersion", "v1beta1"),
        (joined("v1beta4", ""), "discovery", "neither"),
        (with(&good, "apiServerEndpoint: a"), "discovery.bootstrapToken.apiServerEndpoint", "no port"),
        (with(&good, at), "discovery.bootstrapToken.caCertHashes", "no pin"),
        (
            with("{{ token }}", &format!("{at}, caCertHashes: ['{HASH}']")),
            "discovery.bootstrapToken.token",
            "placeholder",
        ),
        (format!("kind: JoinConfiguration\n\t- {good}"), "line ", "cannot be read"),
        (joined("v1beta4", &format!("discovery: {good}\n")), "line ", "cannot be read"),
    ] {
        let error = file::parse(&text, &Root::default()).unwrap_err();
        assert!(error.place.contains(place) && error.wrong.contains(wrong), "{text}: {error:?}");
        assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    }
}

#[test]
fn a_file_and_an_address_are_not_both_taken() {
    let both = Arguments { config: Some("join.yaml".into()), ..arguments(&["a:1"]) };
    assert_eq!(Target::find(&both, &empty().1).unwrap_err().place, "--config");
}

#[test]
fn a_token_is_read_from_a_file() {
    let (folder, root) = empty();
    let path = folder.path().join("token");
    fs::write(&path, format!("abcdef.{SECRET}\n")).unwrap();
    let set = |mode| fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    set(0o644);
    let of_file = Arguments { token: None, token_file: Some(path.clone()), ..arguments(&["a:1"]) };
    let refused = Target::find(&of_file, &root).unwrap_err();
    assert!(refused.wrong.contains("chmod 0600"), "others may read it: {refused:?}");
    set(0o600);
    let target = Target::find(&of_file, &root).unwrap().unwrap();
    assert_eq!(target.token.unwrap().whole().expose_secret(), format!("abcdef.{SECRET}"));
    fs::remove_file(&path).unwrap();
    assert!(Target::find(&of_file, &root).unwrap_err().wrong.contains("not there"));
}

/// A kubeconfig as kubeadm writes it, with this CA.
fn kubelet_conf(authority_pem: &str, user: &str) -> String {
    let data = base64::engine::general_purpose::STANDARD.encode(authority_pem);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- cluster:\n    certificate-authority-data: {data}\n    server: https://10.0.0.1:6443\n  name: kubernetes\n\
         contexts:\n- context: {{cluster: kubernetes, user: u}}\n  name: c\nusers:\n- name: u\n  user: {user}\n"
    )
}

fn authority() -> rcgen::Certificate {
    let key = rcgen::KeyPair::generate().unwrap();
    rcgen::CertificateParams::default().self_signed(&key).unwrap()
}

#[test]
fn a_joined_machine_says_what_it_is_joined_to() {
    let (_folder, root) = empty();
    assert!(Target::of_machine(&root).unwrap().is_none(), "nothing is there");
    let authority = authority();
    let pin = Presented::read(authority.der()).key.unwrap();
    let put = |path: &str, text: &str| fs::write(root.at(path), text).unwrap();
    put(BOOTSTRAP_KUBECONFIG, &kubelet_conf(&authority.pem(), &format!("{{token: abcdef.{SECRET}}}")));
    let target = Target::of_machine(&root).unwrap().unwrap();
    assert_eq!(target.told_by, ToldBy::Machine(BOOTSTRAP_KUBECONFIG.into()));
    assert_eq!((target.pins.as_slice(), target.token.unwrap().id()), (&[pin][..], "abcdef"));

    let current = "/var/lib/kubelet/pki/kubelet-client-current.pem";
    put(
        KUBECONFIG,
        &kubelet_conf(&authority.pem(), &format!("{{client-certificate: {current}, client-key: {current}}}")),
    );
    put(
        KUBELET_FLAGS,
        "KUBELET_KUBEADM_ARGS=\"--hostname-override=w-9 --container-runtime-endpoint unix:///run/c.sock --v=2\"\n",
    );
    let target = Target::of_machine(&root).unwrap().unwrap();
    assert_eq!(target.told_by, ToldBy::Machine(KUBECONFIG.into()));
    assert_eq!(target.node_name, Some(NodeName::from("w-9")));
    assert_eq!(target.cri_socket.as_deref(), Some("unix:///run/c.sock"));
    let read = kubeconfig::Kubeconfig::read(&root, KUBECONFIG).unwrap().unwrap();
    assert!(!read.client.as_ref().unwrap().is_whole(), "the certificate's file is not there");
    put(
        current,
        &format!("{}-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n", authority.pem()),
    );
    let client = kubeconfig::Kubeconfig::read(&root, KUBECONFIG).unwrap().unwrap().client.unwrap();
    assert_eq!(client.certificates(), [authority.der().clone()]);
    assert!(!format!("{client:?}").contains(SECRET));
}

#[test]
fn empty_join_files_say_nothing_and_malformed_ones_are_refused() {
    let (_folder, root) = empty();
    fs::write(root.at(KUBECONFIG), "").unwrap();
    assert!(Target::of_machine(&root).unwrap().is_none());
    fs::write(root.at(KUBECONFIG), format!("users: [{{token: abcdef.{SECRET}\n")).unwrap();
    let error = Target::of_machine(&root).unwrap_err();
    assert!(error.place.starts_with(KUBECONFIG), "{error:?}");
    assert!(!format!("{error:?}").contains(SECRET));
}

#[test]
fn the_last_of_a_flag_counts() {
    let flags = KubeletFlags::parse("# --a=0\nX=\"--a=1 --b 2 --c\"\nY='--a=3'\n");
    assert_eq!(
        (flags.get("a"), flags.get("b"), flags.get("c"), flags.get("d")),
        (Some("3"), Some("2"), Some(""), None)
    );
}

#[test]
fn distribution_is_as_given_or_as_found_and_else_kubeadm() {
    let of_unit = "/etc/systemd/system/k3s-agent.service";
    for (said, words, unit, wanted) in [
        (None, &["a:1"][..], "", Kind::Kubeadm),
        (None, &["a:1"], "[Service]\nExecStart=/usr/local/bin/k3s agent\n", Kind::K3s),
        (None, &["kubeadm", "join", "a:1"], "[Service]\n", Kind::Kubeadm),
        (Some(Kind::Rke2), &["a:1"], "[Service]\n", Kind::Rke2),
    ] {
        let (_folder, root) = empty();
        if !unit.is_empty() {
            fs::create_dir_all(root.at(of_unit).parent().unwrap()).unwrap();
            fs::write(root.at(of_unit), unit).unwrap();
        }
        let written = Arguments { distribution: said, ..arguments(words) };
        assert_eq!(Target::find(&written, &root).unwrap().unwrap().kind, wanted, "{words:?}");
    }
}

#[test]
fn unit_flag_cannot_be_overridden_and_k3s_takes_no_kubeadm_file() {
    let (_folder, root) = empty();
    fs::create_dir_all(root.at("/etc/systemd/system")).unwrap();
    let unit = "[Service]\nExecStart=/usr/local/bin/k3s agent --server https://b.lan:6443\n";
    fs::write(root.at("/etc/systemd/system/k3s-agent.service"), unit).unwrap();
    let error = Target::find(&arguments(&["a.lan:6443"]), &root).unwrap_err();
    assert!(error.place.ends_with("k3s-agent.service") && error.wrong.contains("--server"), "{error:?}");
    assert!(Target::find(&arguments(&["b.lan:6443"]), &root).is_ok(), "it says the same");
    let of_file = Arguments {
        distribution: Some(Kind::K3s),
        config: Some("/x".into()),
        words: Vec::new(),
        ..arguments(&[])
    };
    assert!(Target::find(&of_file, &root).unwrap_err().wrong.contains("kubeadm"));
}

/// The configuration of a disk may name files of the host on which the disk is looked at.
#[test]
fn file_named_in_config_is_read_from_machine_not_host() {
    let (folder, root) = empty();
    let conf = |server: &str| format!("clusters:\n- name: ''\n  cluster: {{server: 'https://{server}'}}\n");
    let host = tempfile::NamedTempFile::new().unwrap();
    fs::write(host.path(), conf("of-the-host:6443")).unwrap();
    fs::write(root.at("/etc/kubernetes/discovery.conf"), conf("of-the-disk:6443")).unwrap();
    let config = folder.path().join("join.yaml");
    let named = |path: &str| {
        let discovery =
            format!("discovery:\n  file: {{kubeConfigPath: {path}}}\n  tlsBootstrapToken: abcdef.{SECRET}\n");
        fs::write(&config, joined("v1beta4", &discovery)).unwrap();
        let text = fs::read_to_string(&config).unwrap();
        assert!(
            Target::token_of_config(&text)
                .is_some_and(|token| token.whole().expose_secret().ends_with(SECRET))
        );
        Target::find(&Arguments { config: Some(config.clone()), ..Arguments::default() }, &root)
    };
    let disk = named("/etc/kubernetes/discovery.conf").unwrap().unwrap();
    assert_eq!(disk.endpoints[0].to_string(), "of-the-disk:6443");
    let refused = named(host.path().to_str().unwrap()).unwrap_err();
    assert!(refused.to_string().contains("not there"), "{refused}");
}
