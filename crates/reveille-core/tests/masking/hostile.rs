//! Text that a guest writes to keep a reader busy costs no more than its length.

use std::time::{Duration, Instant};

use reveille_core::diagnose::console::mask_secrets;

const BYTES: usize = 128 * 1024;

/// What is repeated on one line, and what is repeated on lines of its own.
const PIECES: [&str; 47] = [
    "token=",
    "(token=",
    "rootpw ",
    "(pass=",
    "token: ",
    "token",
    "\"token\":\"",
    "token='",
    "token=\\\"",
    "pass=",
    "key=",
    "?token=",
    "&sig=x",
    "--token ",
    "--token,",
    "name: X_PASSWORD ",
    "name:",
    "{name: TOKEN, value: ",
    "<token>",
    "</token>",
    "password ",
    "password is ",
    "curl -u ",
    "docker login -p ",
    "echo | passwd ",
    "<<<chpasswd",
    "chpasswd a:b ",
    "://",
    "://a:b@",
    "a:b@c:1 ",
    "@",
    "K10::",
    "::server:",
    "glpat-",
    "AKIA",
    "eyJ.",
    "eyJhbGciOiJSUzI1NiJ9.",
    "$6$",
    "{SSHA}",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "PRIVATE KEY",
    "\\",
    "\u{1b}[",
    "\u{fc}=",
    "kind: Secret data: ",
    "\"kind\":\"Secret\",\"data\":{",
];
const LINES: [&str; 10] = [
    "password: |\n",
    "  token:\n",
    "- --token\n",
    "--token \\\n",
    "kind: Secret\ndata:\n  a: b\n",
    "apiVersion: v1\n",
    "Set the following 'random' passwords\n",
    "echo | chpasswd\n",
    "MIIEowIBAAKCAQEA7x3jbPz0Qk1vYt8sWc2Lr9NfUeGh4DmKoXaB5iTqRyZpVu6S\n",
    "curl \\\n",
];

/// How long this text takes.
#[allow(clippy::disallowed_methods, reason = "the time that masking takes is what is measured")]
fn of(text: &str) -> Duration {
    let begun = Instant::now();
    let masked = mask_secrets(text);
    assert!(masked.matches('\n').count() == text.matches('\n').count());
    begun.elapsed()
}

/// Work that grows with the square takes ten seconds and more for this much text, and what grows with the length a tenth of one.
#[test]
fn hostile_text_is_walked_once() {
    const LIMIT: Duration = Duration::from_secs(5);
    let growing: String = (0..700).map(|depth| format!("{}token: |\n", " ".repeat(depth))).collect();
    let mut slowest = (Duration::ZERO, "");
    let all = PIECES.iter().chain(&LINES).map(|piece| (*piece, piece.repeat(BYTES / piece.len())));
    for (piece, text) in all.chain([("growing blocks", growing)]) {
        let took = of(&text);
        assert!(took < LIMIT, "{piece:?} took {took:?}");
        slowest = slowest.max((took, piece));
    }
    println!("slowest of {BYTES} bytes: {:?} for {:?}", slowest.0, slowest.1);
}

/// Detectors look so many bytes far; a character may lie across that end.
#[test]
fn long_words_of_any_characters_are_taken() {
    let names = [
        "password ",
        "password '",
        "password 'x ",
        "rootpw ",
        "token ",
        "pwd=",
        "key=",
        "name: ",
        "name: X_PASSWORD, ",
        "a:",
        "@",
        "K10::a:",
        "https://",
    ];
    for name in names {
        for length in 0..4 {
            let text = format!("{name}{}{}@tcp(x 7K", "x".repeat(length), "\u{20ac}\u{fc}".repeat(1500));
            let masked = mask_secrets(&text);
            assert_eq!(mask_secrets(&masked), masked);
        }
    }
    let long = format!("the password is {}", "Xk29dkeLs0".repeat(200));
    assert_eq!(mask_secrets(&long), "the password is [masked]");
}
