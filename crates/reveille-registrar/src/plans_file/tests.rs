//! What the reader takes from a plans file, and what it refuses, by the place that the author of the file knows.

use super::*;

fn read_text(text: &str) -> Result<Plans, String> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("cloud.conf"), "[Global]\n").unwrap();
    std::fs::write(directory.path().join("bell"), "\u{7}").unwrap();
    std::fs::write(directory.path().join("agent.yaml"), "node-label: [tier=web]\n").unwrap();
    std::fs::write(directory.path().join("patches.yaml"), "patches: {directory: /tmp}\n").unwrap();
    std::fs::write(directory.path().join("server.yaml"), "data-dir: /tmp\n").unwrap();
    let path = directory.path().join("plans.yaml");
    std::fs::write(&path, text).unwrap();
    let pools = [("prod", "workers"), ("prod", "gpu"), ("test", "gpu")];
    let pools = pools.into_iter().map(|(roster, pool)| (roster.into(), pool.into())).collect();
    let mut read = Outcome::default();
    read_into(&path, &pools, &mut read).map_err(|error| error.to_string())?;
    read.refused.first().map_or(Ok(read.plans), |error| Err(error.to_string()))
}

pub(crate) fn plan(pool: &str, rest: &str) -> String {
    let pin = "0a".repeat(32);
    format!(
        "plans:\n- pool: {pool}\n  join: {{distribution: kubeadm, server: \"10.0.0.1:6443\", caPins: [\"sha256:{pin}\"]}}\n{rest}"
    )
}

#[test]
fn plan_config_that_agents_would_refuse_is_refused_by_file_name() {
    let k3s = |file: &str| plan("workers", "").replace("kubeadm,", &format!("k3s, configFile: {file},"));
    let refused = read_text(&k3s("cloud.conf")).unwrap_err();
    assert!(refused.contains("cloud.conf: step 0, the join: config is not taken from a plan"), "{refused}");
    assert_eq!(read_text(&k3s("agent.yaml")).map(drop), Ok(()));
}

#[test]
fn what_an_agent_would_not_take_is_refused_where_it_was_written() {
    let file = |fields: &str| plan("workers", &format!("  files:\n  - {{{fields}}}\n"));
    let config = |distribution: &str, name: &str| {
        plan("workers", "").replace("kubeadm,", &format!("{distribution}, configFile: {name},"))
    };
    let cases = [
        (
            file("path: /etc/crictl.yamlEVIL, mode: \"0600\", content: x"),
            "plan of pool workers: files[0]: /etc/crictl.yamlEVIL is no place",
        ),
        (
            file("path: /etc/cron.d/a, mode: \"0600\", content: x"),
            "it takes /etc/crictl.yaml, /etc/kubernetes/azure.json, ",
        ),
        (file("path: /etc/kubernetes/cloud/a, mode: \"4755\", content: x"), "not executable"),
        (
            config("kubeadm", "patches.yaml"),
            "patches.yaml: step 0, the join: config.patches is not taken from a plan",
        ),
        (
            config("rke2", "server.yaml"),
            "server.yaml: step 0, the join: config.data-dir is not taken from a plan",
        ),
    ];
    for (text, wanted) in cases {
        let refused = read_text(&text).unwrap_err();
        assert!(refused.contains(wanted), "{refused}");
    }
}

#[test]
fn a_plan_is_read_with_its_files() {
    let file = "  needs: [control-plane]\n  files:\n  - {path: /etc/kubernetes/cloud/c.conf, mode: \"0600\", from: cloud.conf, secret: true}\n";
    let plans = read_text(&plan("workers", file)).unwrap();
    let template = &plans.0[&("prod".into(), "workers".into())];
    assert!(
        matches!(&template.files[..], [Step::WriteFile { content, secret: true, .. }] if content.as_str() == "[Global]\n")
    );
    assert!(template.needs.contains(&Role::ControlPlane));
}

#[test]
fn what_cannot_be_followed_is_refused_when_it_is_read() {
    let file = |fields: &str| plan("workers", &format!("  files:\n  - {{{fields}}}\n"));
    let cases = [
        (plan("none", ""), "no roster has this pool"),
        (plan("gpu", ""), "more than one roster"),
        (file("path: etc/a, mode: \"0600\", content: x"), "no place for"),
        (file("path: /etc/kubernetes/cloud/../a, mode: \"0600\", content: x"), "no place for"),
        (
            file("path: /etc/kubernetes/cloud/a, mode: \"0600\", content: x, owner: \"www:www\""),
            "leave owner out",
        ),
        (file("path: /etc/kubernetes/cloud/a, mode: \"9\", content: x"), "write 0600"),
        (file("path: /etc/kubernetes/cloud/a, mode: \"0666\", content: x"), "write 0600"),
        (
            file("path: /etc/kubernetes/cloud/a, mode: \"0600\""),
            "files[0]: /etc/kubernetes/cloud/a needs content or from",
        ),
        (
            file("path: /etc/kubernetes/cloud/a, mode: \"0600\", from: bell"),
            "files[0]: /etc/kubernetes/cloud/a: ",
        ),
        (
            file(
                "path: /etc/kubernetes/cloud/a, mode: \"0600\", content: x}\n  - {path: /etc/kubernetes/cloud/a, mode: \"0777\", content: x",
            ),
            "files[1]: /etc/kubernetes/cloud/a is to have the mode",
        ),
        (
            file("path: /etc/sysctl.d/a.conf, mode: \"0600\", content: kernel.modprobe=/tmp/x"),
            "files[0]: /etc/sysctl.d/a.conf: \"kernel.modprobe\"",
        ),
        (plan("workers", "").replace("kubeadm,", "k3s, configFile: bell,"), "join.configFile: "),
        (file("path: /etc/kubernetes/cloud/a, mode: \"0600\", from: nowhere"), "cannot read"),
        (plan("workers", "").replace("sha256:0a", "0a"), "caPins"),
        (plan("workers", "  run: sh\n"), "no file of plans"),
        (plan("workers", "  needs: [worker]\n"), "for ever"),
    ];
    for (text, wanted) in cases {
        let error = read_text(&text).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}
