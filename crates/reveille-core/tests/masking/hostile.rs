//! Text that a guest writes to keep a reader busy costs no more than its length.

use std::time::{Duration, Instant};

use reveille_core::diagnose::console::mask_secrets;

/// Of the longer of two texts.
const BYTES: usize = 256 * 1024;

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

/// Patterns that were found to be walked again for each of their matches, and others of their kind.
const WALKED_AGAIN: [&str; 90] = [
    "curl -u ",
    "{name: X_PASSWORD, value: ",
    "{name:X_PASSWORD;value:",
    "sshpass -p ",
    "sshpass -p \"",
    "sshpass -p '",
    "vault login x; ",
    "mysql -p",
    "--from-literal=a=",
    "kind: Secret\ndata:\n",
    "kind: Secret\nstringData: {a: b}\n",
    "K10::",
    "K10a::b:",
    "rvi1.",
    "rvi1.aaaa.",
    "password\t",
    "| password | ",
    "cookie: ",
    "cookie:[masked]",
    "https://hooks.slack.com/services/",
    "http://a:b/",
    "-----BEGIN PRIVATE KEY-----\n",
    "PRIVATE KEY-----",
    "AKIA/",
    "tokens: [",
    "tokens:\n- a\n",
    "Private-Lines: 9\n",
    "define('TOKEN', '",
    "iscsi:a:b",
    "user a on >b ",
    "+ echo a\n+ chpasswd\n",
    "+ chpasswd\n+ echo ",
    "(echo | passwd ",
    "passwd x <<EOF\n",
    "a/password: ",
    "a/token=",
    "map[a/token:",
    "put a/password ",
    "name: node.password --value ",
    "value: a, name: X_PASSWORD, ",
    "<property name=\"password\">",
    "password:\n- a\n",
    "password = [\n\"a\"\n",
    "password for a: ",
    "| password |\n|---|\n",
    "|password",
    "//a:b@",
    "\\/\\/a:b@",
    "proxy=a:b@c ",
    "&quot;token&quot;:&quot;",
    "Admin password:\n  ",
    "+ x.sh:1: ",
    "| tee a",
    "> /etc/token",
    "path: token\ncontent: |\n",
    "path: token\nowner:\n",
    "password....",
    "&#34;token&#34;:&#34;",
    "token=a\\ ",
    "'a'\\'",
    "<",
    "<password value='",
    "<password value=\"x\" ",
    "<token><![CDATA[",
    "<key>password</key>",
    "<key>password</key>\n<value>",
    "&lt;token&gt;",
    "\\u003ctoken\\u003e",
    "|",
    "-+",
    "---  ",
    "a  ",
    "TOKEN  ",
    "TOKEN\t",
    "TOKEN  A\nx  y\n",
    "user | password\n---+---\na | b\n",
    "-[ RECORD 1 ]\npassword | x\n",
    "password: \"a\\\n  ",
    "password: 'a\n",
    "password: a\n b\n",
    "{password:\n",
    "? password\n: ",
    "? password ",
    "- name: X_PASSWORD\n  # a\n",
    "{password: {value:",
    "password:\n  value",
    "<string>TOKEN</string>",
    "<token><!-- ",
    "user,password\n\"a,b\n",
    "password:\n- >\n",
];
/// What follows them on the last line, as much again: spaces, and one long word of what tokens may end with.
const TAILS: [&str; 2] = [" ", "./"];

/// The processor's time that this text takes: another test on the same core costs none of it.
#[allow(clippy::disallowed_methods, reason = "the time that masking takes is what is measured")]
fn of(text: &str) -> Duration {
    let spent = || {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        stat.split(' ').next().and_then(|spent| spent.parse().ok()).map(Duration::from_nanos)
    };
    let (begun, before) = (Instant::now(), spent());
    let masked = mask_secrets(text);
    assert!(masked.matches('\n').count() == text.matches('\n').count());
    match (before, spent()) {
        (Some(before), Some(after)) if after > before => after - before,
        _ => begun.elapsed(),
    }
}

/// Sixteen times the text costs sixteen times the work, and many times that when each match walks to the end of the line.
#[test]
fn work_grows_with_the_length_of_hostile_text() {
    const TIMES: usize = 16;
    const RATIO_MAX: u32 = 48;
    const TRIES: usize = 4;
    /// Below this much work a clock's grain is seen, and not a square.
    const LEAST: Duration = Duration::from_millis(4);
    let mut worst = (0.0, "", "");
    for piece in PIECES.iter().chain(&LINES).chain(&WALKED_AGAIN) {
        let tails = if WALKED_AGAIN.contains(piece) { &TAILS[..] } else { &[""][..] };
        for tail in tails {
            let text =
                |bytes: usize| piece.repeat(bytes / piece.len()) + &tail.repeat(bytes / tail.len().max(1));
            let (small, large) = (text(BYTES / TIMES), text(BYTES));
            let ratio = || of(&large).as_secs_f64() / of(&small).max(LEAST).as_secs_f64();
            let least = (0..TRIES).map(|_| ratio()).find(|ratio| *ratio < f64::from(RATIO_MAX));
            let ratio = least.unwrap_or(f64::INFINITY);
            assert!(ratio.is_finite(), "{piece:?} before {tail:?}: work grows faster than the text");
            if ratio > worst.0 {
                worst = (ratio, piece, tail);
            }
        }
    }
    println!(
        "{BYTES} bytes cost at most {:.1} times their sixteenth: {:?} before {:?}",
        worst.0, worst.1, worst.2
    );
}

/// Each deeper block is within the one above.
#[test]
fn growing_blocks_are_walked_once() {
    let growing = |depths: usize| -> String {
        (0..depths).map(|depth| format!("{}token: |\n", " ".repeat(depth))).collect()
    };
    let (small, large) = (growing(350), growing(1400));
    // Four times the depth is sixteen times the text.
    assert!(large.len() > 12 * small.len());
    assert!(of(&large) < of(&small).max(Duration::from_millis(4)) * 64);
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
