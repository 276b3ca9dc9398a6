//! Which names tell that their value is a secret: tables, and the question.
//!
//! The words of the tables are facts that two rule sets keep, gitleaks (`config/gitleaks.toml`, rules `generic-api-key`,
//! `database-password` and their allow lists) and detect-secrets (`plugins/keyword.py`, its deny list), and names that node
//! bootstrap has of its own: kubeadm, k3s, cloud-init, WireSafeguard, Ceph, Vault, LDAP, Redis, keepalived.

/// What a name says of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Telling {
    /// Everything to the end of the line is secret: headers and payloads.
    Line,
    /// The value is secret, and may hold spaces when it stands bare.
    Phrase,
    /// The value is secret.
    Word,
    /// The value is secret when it looks random: `key`, `auth` and `session` name harmless things as well.
    IfRandom,
}

/// Wherever they stand in a name, written without `-` and `_`.
const LINES: [&str; 6] =
    ["authorization", "xauthtoken", "xsubjecttoken", "userdata", "cookie", "privatelines"];
/// Bare values of these may hold spaces: phrases that people choose.
const PHRASES: [&str; 10] = [
    "kennwort",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "passwort",
    "contrasena",
    "contraseña",
    "motdepasse",
    "passw0rd",
];
/// Wherever they stand in a name, written without `-` and `_`: `OS_PASSWORD`, `db-password`, `apiToken`.
const WORDS: [&str; 51] = [
    "rediscliauth",
    "setupkey",
    "enrollmentkey",
    "provisioningkey",
    "regcode",
    "registrationcode",
    "secret",
    "token",
    "apikey",
    "privatekey",
    "privkey",
    "accesskey",
    "clientkeydata",
    "credential",
    "certificatekey",
    "authkey",
    "joinkey",
    "appkey",
    "applicationkey",
    "servicekey",
    "accountkey",
    "storagekey",
    "databasekey",
    "dbkey",
    "encryptionkey",
    "encryptkey",
    "decryptionkey",
    "signingkey",
    "masterkey",
    "sharedkey",
    "sessionkey",
    "recoverykey",
    "unsealkey",
    "licensekey",
    "licencekey",
    "deploykey",
    "hmackey",
    "tsigkey",
    "gossipkey",
    "clusterkey",
    "registrationkey",
    "activationkey",
    "lukskey",
    "pskkey",
    "secretid",
    "rolesecret",
    "sessionid",
    "sessid",
    "macaroon",
    "keymaterial",
    "authenticationstring",
];
/// The last word of a name: `DB_PASS`, `adminPass`, `MYSQL_PWD`, `bindpw`.
const LAST: [&str; 35] = [
    "authtok",
    "csrf",
    "xsrf",
    "pass",
    "pwd",
    "psk",
    "pw",
    "cred",
    "creds",
    "rootpw",
    "bindpw",
    "rootbindpw",
    "userpw",
    "adminpw",
    "dbpw",
    "authpw",
    "requirepass",
    "masterauth",
    "storepass",
    "keypass",
    "jwt",
    "bearer",
    "otp",
    "totp",
    "pskhex",
    "passout",
    "passin",
    "sas",
    "kek",
    "dek",
    "pgpass",
    "pbkdf2",
    "sshpw",
    "rocommunity",
    "rwcommunity",
];
/// The last word of a name whose value is secret only when it looks random.
const LAST_IF_RANDOM: [&str; 15] = [
    "encrypt",
    "key",
    "auth",
    "sig",
    "signature",
    "session",
    "sid",
    "community",
    "salt",
    "seed",
    "hmac",
    "sak",
    "cak",
    "keys",
    "webhook",
];
/// Words that end in `pass` and name no password.
const NO_PASSWORD: [&str; 11] = [
    "bypass",
    "compass",
    "trespass",
    "surpass",
    "encompass",
    "overpass",
    "underpass",
    "multipass",
    "onepass",
    "singlepass",
    "firstpass",
];
/// What follows the name of a secret in a name of something else: `token-id`, `secret_name`, `passwordFile`.
const ANOTHER: [&str; 62] = [
    "href",
    "id",
    "name",
    "names",
    "file",
    "files",
    "path",
    "paths",
    "dir",
    "ref",
    "refs",
    "ttl",
    "url",
    "uri",
    "endpoint",
    "mode",
    "config",
    "kubeconfig",
    "type",
    "kind",
    "namespace",
    "expiry",
    "expires",
    "expiration",
    "expirationseconds",
    "duration",
    "lifetime",
    "timeout",
    "count",
    "length",
    "size",
    "policy",
    "policies",
    "accessor",
    "encryption",
    "algorithm",
    "version",
    "provider",
    "audience",
    "audiences",
    "issuer",
    "enabled",
    "required",
    "age",
    "status",
    "state",
    "reason",
    "error",
    "days",
    "interval",
    "format",
    "class",
    "plugin",
    "cacerthash",
    "cacerthashes",
    "ttlseconds",
    "seconds",
    "manager",
    "providers",
    "watch",
    "verification",
    "stdin",
];
/// What may follow a short name and still be the secret: `pass1` aside, `pass_b64`, `pwd_hash`.
const OF_IT: [&str; 11] =
    ["hash", "b64", "base64", "value", "plain", "plaintext", "encoded", "enc", "text", "new", "old"];

/// A word without one of these in it tells nothing; looked for first, because almost every word of a log is such a word.
const fn hints(first: u8) -> &'static [&'static str] {
    match first.to_ascii_lowercase() {
        b'p' => &["pas", "pwd", "psk", "pw"],
        b's' => &["secret", "sess", "sig", "sid", "sas", "seed", "salt", "sak"],
        b't' => &["token", "totp"],
        b'k' => &["key", "kek", "kennw"],
        b'e' => &["encrypt"],
        b'r' => &["regcode", "registrationcode"],
        b'x' => &["xsrf"],
        b'c' => &["cred", "cookie", "contras", "communi", "cak", "csrf"],
        b'a' => &["auth"],
        b'd' => &["data", "dek"],
        b'l' => &["lines"],
        b'm' => &["motdep", "macaroon"],
        b'b' => &["bearer"],
        b'j' => &["jwt"],
        b'o' => &["otp"],
        b'h' => &["hmac"],
        b'w' => &["webhook"],
        _ => &[],
    }
}

/// What this name says of its value; `None` for a name that says nothing.
pub(super) fn telling(name: &str) -> Option<Telling> {
    if !hinted(name) {
        return None;
    }
    let joined: String =
        name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect();
    let parts = parts(name);
    let last = parts.last().map_or("", String::as_str);
    let has = |names: &[&str]| names.iter().any(|part| holds(&joined, part, last));
    // `lock_passwd` and `secretsmanager` are no secrets.
    if matches!(joined.as_str(), "lockpasswd" | "lockpassword") {
        return None;
    }
    if has(&LINES) {
        return Some(Telling::Line);
    }
    if has(&PHRASES) {
        return Some(Telling::Phrase);
    }
    if has(&WORDS) {
        return Some(Telling::Word);
    }
    short(&joined, &parts, last)
}

/// What the name of a setting tells, which may have dots or a few words: `db.password`, `jdbc/password`, `DB Password`.
pub(super) fn of_setting(name: &str) -> Option<Telling> {
    const BYTES_MAX: usize = 128;
    const WORDS_MAX: usize = 4;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b' ');
    if name.len() > BYTES_MAX || !name.bytes().all(is_part) {
        return None;
    }
    let name = name.trim();
    // `token is expired` says something of it.
    let says = |word: &str| matches!(word, "is" | "was" | "not" | "has");
    if name.split(' ').count() > WORDS_MAX || name.split(' ').any(says) {
        return None;
    }
    let last = name.rsplit('/').next().unwrap_or(name);
    telling(&last.replace(['.', ' '], "_"))
}

/// The names that are too short to be looked for within a word.
fn short(joined: &str, parts: &[String], last: &str) -> Option<Telling> {
    let numberless = last.trim_end_matches(|c: char| c.is_ascii_digit());
    let before = parts.len().checked_sub(2).and_then(|at| parts.get(at)).map_or("", String::as_str);
    let is_last = LAST.contains(&numberless) || (OF_IT.contains(&last) && LAST.contains(&before));
    let ends = (joined.ends_with("pass") || joined.ends_with("pwd"))
        && !NO_PASSWORD.iter().any(|word| joined.ends_with(word));
    if is_last || ends {
        // `key_mgmt: WPA-PSK` is a method.
        let holds_spaces = matches!(numberless, "pass" | "pwd" | "pw") || joined == "psk";
        return Some(if holds_spaces { Telling::Phrase } else { Telling::Word });
    }
    LAST_IF_RANDOM.contains(&numberless).then_some(Telling::IfRandom)
}

/// Whether the name holds this part, and is not the name of something else about it.
fn holds(joined: &str, part: &str, last: &str) -> bool {
    let Some(at) = joined.rfind(part) else { return false };
    let rest = &joined[at + part.len()..];
    let names_another = ANOTHER.contains(&rest)
        || ANOTHER.contains(&rest.trim_start_matches('s'))
        || (ANOTHER.contains(&last) && rest.ends_with(last));
    !names_another
}

fn hinted(name: &str) -> bool {
    let bytes = name.as_bytes();
    let is_at = |at: usize, hint: &str| {
        bytes.get(at..at + hint.len()).is_some_and(|part| part.eq_ignore_ascii_case(hint.as_bytes()))
    };
    bytes.iter().enumerate().any(|(at, byte)| hints(*byte).iter().any(|hint| is_at(at, hint)))
}

/// The words of a name, in lower case: `adminPass`, `DB_PASS` and `db-pass` have two each.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let is_seam = matches!(c, '-' | '_');
        if (is_seam || (was_lower && c.is_ascii_uppercase()))
            && parts.last().is_some_and(|part| !part.is_empty())
        {
            parts.push(String::new());
        }
        if let (false, Some(part)) = (is_seam, parts.last_mut()) {
            part.push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    parts.retain(|part| !part.is_empty());
    parts
}
