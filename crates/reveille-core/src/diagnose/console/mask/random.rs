//! Whether a word looks as if a machine had drawn it.
//!
//! Two measures: Shannon's entropy, as gitleaks and detect-secrets use it, and how often the class of the characters turns.
//! Entropy alone takes a long path for a secret; words of people keep their class for some characters on end.

/// Entropy below this (bits for a character) is a repetition: gitleaks asks for 2 to 4, most often 3.
const ENTROPY_MIN: f64 = 2.5;

/// Whether the word looks random enough to be a secret where something beside it says so.
pub(super) fn looks_random(word: &str) -> bool {
    const BYTES_MIN: usize = 8;
    const OF_LOWER_BYTES_MIN: usize = 12;
    let seen = Classes::of(word);
    if word.len() < BYTES_MIN || seen.is_path_like || is_uuid(word) {
        return false;
    }
    let turns_often = seen.turns * 3 >= word.len();
    let mixed = seen.lower > 0 && seen.upper > 0 && seen.digits > 0 && turns_often;
    let with_signs = seen.signs > 0 && seen.digits > 0 && seen.lower + seen.upper > 2;
    let letters = seen.lower + seen.upper;
    let of_one_case = word.len() >= OF_LOWER_BYTES_MIN
        && seen.signs == 0
        && seen.digits >= 3
        && letters >= 3
        && turns_often;
    (mixed || with_signs || of_one_case) && entropy(word) >= ENTROPY_MIN && !is_digest(word)
}

/// Whether the class of the characters changes at every third, at least: `VMExtensionError` has words in it.
pub(super) fn turns_often(word: &str) -> bool {
    Classes::of(word).turns * 3 >= word.len()
}

/// A long run of hexadecimal digits, of which nothing else is known.
pub(super) fn is_long_hex(word: &str) -> bool {
    word.len() >= 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Base64 of its own: 40 characters or more whose class turns as often as chance has it turn (at 62 of 100).
pub(super) fn is_random_base64(word: &str) -> bool {
    let seen = Classes::of(word);
    let is_base64 =
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    let padded = word.len().is_multiple_of(4) && !word.starts_with('/');
    is_base64
        && padded
        && seen.upper > 4
        && seen.lower > 4
        && seen.digits > 1
        && seen.turns * 5 >= word.len() * 2
}

/// Bits for a character.
fn entropy(word: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in word.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length: f64 = counts.iter().copied().map(f64::from).sum();
    let bits = |count: &u32| {
        let share = f64::from(*count) / length;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36 && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// A digest with its method in front of it: an image's, a certificate authority's.
pub(super) fn is_digest(word: &str) -> bool {
    ["sha256:", "sha512:", "sha384:", "sha1:", "md5:", "SHA256:"].iter().any(|method| word.contains(method))
}

/// What a word is made of.
#[derive(Clone, Copy, Debug, Default)]
struct Classes {
    lower: usize,
    upper: usize,
    digits: usize,
    signs: usize,
    /// How often the next character is of another class.
    turns: usize,
    /// It holds what paths, names, addresses, dates and versions are joined with.
    is_path_like: bool,
}

impl Classes {
    fn of(word: &str) -> Self {
        let mut seen = Self::default();
        let mut before = None;
        for byte in word.bytes() {
            let class = match byte {
                b'a'..=b'z' => 0,
                b'A'..=b'Z' => 1,
                b'0'..=b'9' => 2,
                _ => 3,
            };
            match class {
                0 => seen.lower += 1,
                1 => seen.upper += 1,
                2 => seen.digits += 1,
                _ => seen.signs += 1,
            }
            seen.is_path_like |= matches!(
                byte,
                b'/' | b'.' | b':' | b',' | b'(' | b')' | b'[' | b'{' | b'<' | b'"' | b'-' | b'|'
            );
            seen.turns += usize::from(before.is_some_and(|before| before != class));
            before = Some(class);
        }
        seen
    }
}
