//! Randomness that is a function of the seed and of nothing else.
//!
//! `SplitMix64`: one 64-bit state, one addition and three xor-shifts a number. It passes the usual statistical tests, needs
//! no crate whose next release may change the sequence, and two generators with different starts do not meet within any
//! run of ours. It is no source of secrets.
//!
//! Each purpose draws from a [`Stream`] of its own. With one common sequence, a new draw for a machine's name would shift
//! every delay after it, and a seed that once failed would fail no more for the wrong reason.

use reveille_core::model::time::Span;

/// What a sequence is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Ids and names of objects.
    Names,
    /// How long requests, boots and controllers take.
    Delays,
    /// Which faults strike whom, and when.
    Faults,
    /// How long the ledger's disk takes.
    Ledger,
    /// What people do, and how soon.
    People,
    /// How long what agents ask for takes.
    Agents,
    /// Which service users there are.
    Users,
    /// What happens to their roles.
    Roles,
    /// How a cloud hosts machines.
    Hosting,
    /// What it does with them.
    Provider,
}

/// One sequence of numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// The sequence of this seed for this purpose.
    pub const fn new(seed: u64, stream: Stream) -> Self {
        let purpose = mix((stream as u64 + 1).wrapping_mul(GAMMA));
        Self { state: mix(seed.wrapping_add(GAMMA)) ^ purpose }
    }

    /// The sequence of this seed for what is named: for aspects of a world that are drawn independently of each other.
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a: stable, and distinct enough for a handful of names.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self { state: mix(seed.wrapping_add(GAMMA)) ^ mix(hash) }
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// A number below `limit`; zero when `limit` is zero. The bias of the remainder is below 2⁻⁴⁰ for every limit used
    /// here.
    pub const fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.bits() % limit }
    }

    /// A length of time from `from` to `to`, both included.
    pub const fn span(&mut self, from: Span, to: Span) -> Span {
        let width = to.ms.saturating_sub(from.ms);
        let width = if width < 0 { 0 } else { width as u64 };
        Span::from_ms(from.ms + self.below(width + 1) as i64)
    }

    /// True in `pct` of a hundred cases.
    pub const fn chance(&mut self, pct: u64) -> bool {
        self.below(100) < pct
    }

    /// One of these; `None` of none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len() as u64) as usize)
    }

    /// `count` letters and digits as clouds put them behind a name, without those that people confuse.
    pub fn suffix(&mut self, count: usize) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..count).map(|_| char::from(LETTERS[self.below(LETTERS.len() as u64) as usize])).collect()
    }

    /// An id of the shape of a random UUID.
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.bits(), self.bits());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_published_generator() {
        // Reference values of SplitMix64 from state 0.
        let mut rng = Rng { state: 0 };
        assert_eq!([rng.bits(), rng.bits()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn streams_and_seeds_do_not_share_a_sequence() {
        let first = |seed, stream| Rng::new(seed, stream).bits();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..1000 {
            for stream in
                [Stream::Names, Stream::Delays, Stream::Faults, Stream::Ledger, Stream::People, Stream::Roles]
            {
                assert!(seen.insert(first(seed, stream)), "seed {seed} {stream:?}");
            }
        }
    }

    #[test]
    fn spans_stay_within_their_borders() {
        let mut rng = Rng::new(7, Stream::Delays);
        let (from, to) = (Span::from_ms(3), Span::from_ms(5));
        let drawn: std::collections::BTreeSet<i64> = (0..200).map(|_| rng.span(from, to).ms).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
    }
}
