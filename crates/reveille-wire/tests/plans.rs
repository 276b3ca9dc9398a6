//! Plans of a registration server that was taken over, held against what a plan may contain.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

use reveille_wire::agent::Distribution;
use reveille_wire::agent::allowed;
use reveille_wire::agent::plan::Step;
use reveille_wire::agent::text::Content;

/// The longest configuration that a plan carries.
const CONTENT_BYTES_MAX: usize = 512 << 10;

/// A plan is as long on the agent as on its way.
#[test]
fn yaml_aliases_do_not_multiply_a_plan_configuration() {
    let word = "x".repeat(500 << 10);
    let text = format!("node-label: [&a {word}{}]\n", ", *a".repeat(99));
    assert!(text.len() <= CONTENT_BYTES_MAX);
    let taken = allowed::config(0, Distribution::K3s, &text);
    let bytes = taken.as_ref().map_or(0, |value| value.to_string().len());
    println!("{} bytes of a plan are {bytes} bytes on the agent", text.len());
    assert!(bytes <= 2 * CONTENT_BYTES_MAX, "{bytes} bytes of {}", text.len());
}

#[test]
fn no_file_of_a_plan_names_a_program_of_containerd() {
    let content = "version = 2\n[stream_processors.\"x\"]\n  accepts = [\"application/vnd.oci.image.layer.v1.tar+gzip\"]\n  \
                   returns = \"application/vnd.oci.image.layer.v1.tar\"\n  path = \"/bin/sh\"\n  args = [\"-c\", \"id >/root/x; gzip -d\"]\n";
    let step = Step::WriteFile {
        path: "/etc/containerd/config.toml".into(),
        mode: "0644".into(),
        owner: None,
        content: Content::cut(content),
        secret: false,
    };
    let taken = allowed::step(0, &step);
    assert!(taken.is_err(), "a plan of a server that was taken over runs a shell as root by containerd");
}

/// The agent tells this error to its log and to the server.
#[test]
fn unreadable_configuration_error_quotes_no_surrounding_lines() {
    let text = "kubelet-arg: [\"v=1\"]\ntoken: c4n4ry0123456789\nnode-label: [\n";
    let refused = allowed::config(1, Distribution::K3s, text).unwrap_err().to_string();
    println!("{refused}");
    assert!(!refused.contains("c4n4ry"), "{refused}");
}

/// The agent reads its own file back: a setting of a plan is one value or a list, and no tree.
#[test]
fn plan_setting_is_a_value_or_a_list_and_no_tree() {
    let long = "x".repeat(2_000);
    for value in ["[[a]]".to_owned(), "{a: b}".to_owned(), "[{a: b}]".to_owned(), format!("[? {long}\n: b]")]
    {
        for key in ["node-label", "node-taint+", "snapshotter"] {
            let text = format!("{key}: {value}\n");
            assert!(allowed::config(0, Distribution::K3s, &text).is_err(), "{key}: {value:.40}");
        }
    }
    for value in ["a", "1", "true", "[a, b]", "[]", ""] {
        assert!(allowed::config(0, Distribution::K3s, &format!("node-label: {value}\n")).is_ok(), "{value}");
    }
}

/// The agent logs each plan that it refuses.
#[test]
fn configuration_refusal_is_short_for_long_keys_and_values() {
    let long = "x".repeat(100_000);
    for text in [
        format!("? {long}\n: a\n"),
        format!("snapshotter: \"{long} y\"\n"),
        format!("kubelet-arg: [{long}]\n"),
        format!("kubelet-arg: [\"v=1,{long}\"]\n"),
        format!("{long}\n"),
    ] {
        let refused = allowed::config(0, Distribution::K3s, &text).unwrap_err().to_string();
        assert!(refused.len() < 5_000, "{:.60}: {}", text, refused.len());
    }
    let refused =
        allowed::config(0, Distribution::K3s, "kubelet-arg: [config=/x]\n").unwrap_err().to_string();
    assert!(refused.contains("system-reserved, v"), "the whole list is told: {refused}");
}
