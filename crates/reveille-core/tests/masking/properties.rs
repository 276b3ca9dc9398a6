//! What holds of any text: masking it twice changes nothing, every line stays, and lines around a secret do not hide it.

use std::sync::LazyLock;

use proptest::prelude::*;
use reveille_core::diagnose::console::mask_secrets;

use crate::canaries::Canary;

static ALL: LazyLock<Vec<Canary>> = LazyLock::new(super::all);

/// What texts are put together from: everything that a detector looks for, and what stands between.
const PIECES: [&str; 99] = [
    "password",
    "token",
    "DB_PASS",
    "secret",
    "key",
    "auth",
    "cookie",
    "user-data",
    "--token",
    "name",
    "value",
    "PRIVATE KEY",
    "sig",
    "=",
    ": ",
    ":",
    "=>",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "</",
    "|",
    "||",
    ">-",
    "&",
    "?",
    ",",
    ";",
    "$",
    "${X}",
    "%",
    "#",
    "@",
    "://",
    "/",
    " ",
    "  ",
    "\t",
    "\n",
    "\n  ",
    "\n- ",
    "\\",
    "\\\n",
    "\"",
    "\\\"",
    "'",
    "''",
    "[masked]",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "glpat-",
    "K10ab::server:",
    "eyJhbGciOiJIUzI1NiJ9.",
    "$6$",
    "curl -u ",
    "docker login -p ",
    "echo ",
    " | chpasswd",
    "random' passwords",
    "a:b",
    "Xk29dkeLs0",
    "abcdef.0123456789abcdef",
    "MIIEowIBAAKCAQEA7x3jbPz0Qk1vYt8sWc2Lr9NfUeGh4DmKoXaB5iTqRyZpVu6S",
    "kind: Secret",
    "data:",
    "\u{1b}[31m",
    "\u{fc}",
    "\n+ echo ",
    "\n+ chpasswd",
    "passwd <<EOF\n",
    "\nEOF\n",
    "put a/password ",
    "&quot;",
    "//",
    "path",
    " for x: ",
    " is ",
    " to ",
    "\n|---|\n",
    "map[a/token:",
    "curl -sLu ",
    "\\/\\/u:",
    "HTTP_PROXY=",
    "<password>",
    "</password>",
    "<![CDATA[",
    "]]>",
    "<add key=\"password\" value=\"",
    "\nNAME  TOKEN  TTL\n",
    "\n---  -----\n",
    "\n---+---\n",
    " | ",
    "\n? ",
    "\n: ",
];

/// Lines of machines that are well.
const LINES: [&str; 5] = [
    "Nov 21 01:02:03 host systemd[1]: Started Daily apt download activities.",
    "I1121 01:02:03.000000    1234 kubelet.go:2205] \"SyncLoop (PLEG): event for pod\" pod=\"kube-system/x\" event={}",
    "[    2.345678] EXT4-fs (vda1): mounted filesystem with ordered data mode",
    "{\"level\":\"info\",\"msg\":\"finished scheduled compaction\",\"took\":\"9ms\"}",
    "Pulling image \"registry.k8s.io/pause@sha256:7a0cd3cc18ea132b33e1921b2d74c4bfc516802b4800c89e595ae04b3d1cf3aa\"",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn masking_is_idempotent_for_any_text(pieces in prop::collection::vec(0..PIECES.len(), 0..24)) {
        let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        let masked = mask_secrets(&text);
        prop_assert_eq!(masked.matches('\n').count(), text.matches('\n').count());
        let twice = mask_secrets(&masked);
        prop_assert_eq!(twice.as_ref(), masked.as_ref(), "{:?}", text);
    }

    #[test]
    fn any_characters_are_taken(text in "(?s).{0,200}") {
        let masked = mask_secrets(&text);
        prop_assert_eq!(masked.matches('\n').count(), text.matches('\n').count());
    }

    #[test]
    fn lines_around_a_secret_do_not_hide_it(
        which in any::<prop::sample::Index>(),
        before in prop::collection::vec(0..LINES.len(), 0..4),
        after in prop::collection::vec(0..LINES.len(), 0..4),
    ) {
        let canary = which.get(&ALL);
        // Of the other half nothing is shown, so that a miss of it is none here.
        prop_assume!(!canary.survives(&mask_secrets(&canary.text)));
        let lines = |which: Vec<usize>| which.into_iter().map(|line| format!("{}\n", LINES[line])).collect::<String>();
        let (before, after) = (lines(before), lines(after));
        let masked = mask_secrets(&format!("{before}{}\n{after}", canary.text)).into_owned();
        prop_assert!(!canary.survives(&masked), "{}", canary.form);
        prop_assert!(masked.starts_with(&before), "lines before {} were masked", canary.form);
    }
}
