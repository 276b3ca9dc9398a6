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
