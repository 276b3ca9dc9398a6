//! What an attacker of the masker found, by families: what has to go, and what stays beside it.

use reveille_core::diagnose::console::mask_secrets;

/// What a logger writes before each line.
pub(crate) const PREFIXES: [&str; 5] = [
    "",
    "Nov 26 06:00:00 w-3 cloud-init[812]: ",
    "2026-11-26T06:00:00.123456789Z stdout F ",
    "2026-11-26T06:00:00+0000 w-3 systemd-bootstrap: ",
    "[   31.402137] cloud-init[1187]: ",
];

/// The text behind each logger's prefix.
pub(crate) fn logged(text: &str) -> impl Iterator<Item = String> {
    PREFIXES.iter().map(move |prefix| {
        text.split('\n').map(|line| format!("{prefix}{line}")).collect::<Vec<_>>().join("\n")
    })
}

/// Everything that holds for each text: lines stay, twice is once.
pub(crate) fn masked(text: &str) -> String {
    let masked = mask_secrets(text).into_owned();
    assert_eq!(masked.matches('\n').count(), text.matches('\n').count(), "{text:?}\n{masked:?}");
    assert_eq!(mask_secrets(&masked), masked, "{text:?}");
    masked
}

/// Checks that none of these texts keeps its secret, behind any logger's prefix.
pub(crate) fn none_survives(table: &[(&str, &str)]) {
    let mut survive = Vec::new();
    for (text, secret) in table {
        assert!(text.contains(secret), "{text}");
        for text in logged(text) {
            let masked = masked(&text);
            if masked.contains(secret) {
                survive.push(format!("{text:?}\n    {masked:?}"));
            }
        }
    }
    assert!(survive.is_empty(), "{} survive:\n{}", survive.len(), survive.join("\n"));
}

#[test]
fn invitation_of_our_own_keeps_its_id_alone() {
    const SECRET: &str = "8f2e1c6d4b3a29187f6e5d4c3b2a19080f1e2d3c4b5a69788796a5b4c3d2e1f0";
    for form in [
        "{}",
        "reveille token {}",
        "token={}",
        "token file holds \"{}\", expected one line",
        "{\\\"msg\\\":\\\"{}\\\\n\\\"}",
        "(umask 077 && cat >/etc/reveille/token) <<'END'\n{}\nEND",
        "<{}>, and ({}).",
    ] {
        for text in logged(&form.replace("{}", &format!("rvi1.6f0c4e21a9b3.{SECRET}"))) {
            let masked = masked(&text);
            assert!(
                !SECRET
                    .as_bytes()
                    .windows(6)
                    .any(|part| { masked.contains(std::str::from_utf8(part).unwrap()) }),
                "{masked}"
            );
            assert!(form.starts_with("token") || masked.contains("rvi1.6f0c4e21a9b3.[masked]"), "{masked}");
        }
    }
    for cut in [63, 40, 16, 8] {
        assert_eq!(masked(&format!("rvi1.6f0c4e21a9b3.{}", &SECRET[..cut])), "rvi1.6f0c4e21a9b3.[masked]");
    }
    for stays in ["rvi1.ID.SECRET", "rvi1.6f0c4e21a9b3 was used up", "form rvi1. is not known", "rvi1.a.b"] {
        assert_eq!(masked(stays), stays);
    }
}

/// A Secret in every spelling that kubectl, helm and people write; the name and what is beside it stay.
#[test]
fn secret_manifests_do_not_survive() {
    const HEAD: &str = "metadata:\n  name: x\n";
    let spelt = [
        "kind: Secret\napiVersion: v1\nstringData:\n  dsn: S",
        "apiVersion: v1\nkind: Secret\nstringData:\n  dsn: S",
        "kind: Secret # of the app\napiVersion: v1\ndata: # base64\n  dsn: S",
        "apiVersion: v1\ndata: {dsn: S, other: \"S\"}\nkind: Secret",
        "kind: 'Secret'\nstringData: {\n  dsn: S,\n  \"x y\": S}",
        "\"kind\": \"Secret\"\n\"stringData\":\n  \"dsn\": \"S\"",
        "kind : Secret\ndata : &all\n  dsn : S",
        "{\n    \"apiVersion\": \"v1\",\n    \"data\": {\n        \"dsn\": \"S\",\n        \"b\": \"S\"\n    },\n    \"kind\": \"Secret\",\n    \"metadata\": {\n        \"name\": \"x\"\n    }\n}",
        "{\n  \"items\": [\n    {\n      \"kind\": \"ConfigMap\"\n    },\n    {\n      \"kind\": \"Secret\",\n      \"data\": {\n        \"dsn\": \"S\"\n      }\n    }\n  ],\n  \"kind\": \"List\"\n}",
        "{\"kind\" : \"Secret\", \"data\" : { \"dsn\" : \"S\", \"b\":\"S\" }}",
        "- {apiVersion: v1, kind: Secret, stringData: {dsn: S}}",
        "apiVersion: v1\nitems:\n- apiVersion: v1\n  data:\n    dsn: S\n  kind: Secret\n- apiVersion: v1\n  data:\n    keep: kept\n  kind: ConfigMap\nkind: List",
        "kind: Secret\ntype: Opaque\nstringData:\n  app.conf: |\n    dsn S\n    [x]\n\n    y S\n  other: >-\n    S",
        "kind: ConfigMap\ndata:\n  x.yaml: |\n    kind: Secret\n    stringData:\n      dsn: S",
        "apiVersion: v1\nkind: Secret\nimmutable: true\ndata:\n  dsn: [masked]S",
        "+kind: Secret\n+stringData:\n+  dsn: S",
    ];
    for secret in ["vR8xKq2LmZ7t", "plain words", "dlI4eEtxMkxtWjd0UTk="] {
        for text in spelt {
            for text in logged(&text.replace('S', secret).replace(&format!("{secret}ecret"), "Secret")) {
                let masked = masked(&text);
                assert!(!masked.contains(secret), "{text}\n\n{masked}");
                assert_eq!(masked.contains("kept"), text.contains("kept"), "{masked}");
            }
        }
    }
    for stays in [
        "kind: ConfigMap\ndata:\n  a: b\n---\nkind: Secret\nmetadata:\n  name: x",
        "kind: Secret\nmetadata:\n  name: x\n---\nkind: ConfigMap\ndata:\n  a: b",
        "- apiVersion: v1\n  kind: Secret\n- apiVersion: v1\n  kind: ConfigMap\n  data:\n    a: b",
        "involvedObject:\n  kind: Secret\n  name: x\ndata:\n  a: b",
        "kind: Secret\ntype: Opaque\n",
    ] {
        for text in logged(&format!("{stays}\n{HEAD}")) {
            assert_eq!(masked(&text), text);
        }
    }
}
