//! What a canary is, how its secret is drawn, and which half it belongs to.

/// Which half of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// Its misses are printed.
    LookedAt,
    /// Only its figure is.
    Unseen,
}

/// A text with a made-up secret in it, which opens no real account.
#[derive(Clone, Debug)]
pub(crate) struct Canary {
    /// What writes the secret: a name, a service's token, a command, a structure.
    pub(crate) form: String,
    /// Where it is written.
    pub(crate) place: &'static str,
    /// The whole text.
    pub(crate) text: String,
    /// What must not survive.
    pub(crate) secret: String,
}

impl Canary {
    /// By a hash of the form alone: no place of an unseen form is seen.
    pub(crate) fn half(&self) -> Half {
        if hash(&self.form).is_multiple_of(2) { Half::LookedAt } else { Half::Unseen }
    }

    /// Whether the secret or a telling part of it is left.
    pub(crate) fn survives(&self, masked: &str) -> bool {
        const PART: usize = 8;
        let secret: Vec<char> = self.secret.chars().collect();
        if secret.len() <= PART {
            return masked.contains(&self.secret);
        }
        secret.windows(PART).any(|part| masked.contains(&part.iter().collect::<String>()))
    }
}

/// FNV, because it is the same in every run.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        >> 7
}

/// What secrets are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    /// Letters and digits.
    Mixed(usize),
    /// Small letters and digits.
    Lower(usize),
    /// Hexadecimal digits.
    Hex(usize),
    /// Capitals and digits.
    Upper(usize),
    /// Base64 of that many characters.
    Base64(usize),
    /// What a person or a policy of passwords chooses: letters, digits and signs.
    Chosen,
    /// A word and a number.
    Weak,
}

impl Of {
    /// A secret of this make, always the same for one seed.
    pub(crate) fn draw(self, seed: &str) -> String {
        const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
        const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        const DIGITS: &str = "0123456789";
        let mut state = hash(seed) | 1;
        let mut next = |from: &str| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            from.as_bytes()[(state >> 33) as usize % from.len()] as char
        };
        let mut many = |from: &str, count: usize| (0..count).map(|_| next(from)).collect::<String>();
        match self {
            Self::Mixed(count) => many(&format!("{LOWER}{UPPER}{DIGITS}"), count - 3) + "q7K",
            Self::Lower(count) => many(&format!("{LOWER}{DIGITS}"), count - 2) + "7k",
            Self::Hex(count) => many("0123456789abcdef", count - 2) + "7c",
            Self::Upper(count) => many(&format!("{UPPER}{DIGITS}"), count - 2) + "7K",
            Self::Base64(count) => many(&format!("{LOWER}{UPPER}{DIGITS}+/"), count - 4) + "7kQ=",
            Self::Chosen => {
                many(UPPER, 1) + &many(LOWER, 4) + &many("!#%*+.~", 1) + &many(DIGITS, 3) + &many(LOWER, 3)
            }
            Self::Weak => many(LOWER, 7) + &many(DIGITS, 2),
        }
    }
}
