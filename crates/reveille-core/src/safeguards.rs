//! One list of safeguards, and the switch by which a test build takes some away: what each engine with safeguards begins with.
//!
//! ```text
//!  safeguards! { /// one clause … Name = "word", … } ─▶ Safeguard, Safeguard::ALL, stands(Safeguard)
//!                                  feature "sabotage" of the crate that lists ─▶ without(&[Safeguard], || …)
//! ```
//!
//! It is a macro because the switch is a feature of the crate that is shipped without it, and because a list of at most
//! 128 names, their words and their clauses is to be written once.

/// Makes `Safeguard` of a list, with its names and clauses, and `stands`, which is the constant true unless the calling crate is
/// built with its feature `sabotage`.
#[macro_export]
macro_rules! safeguards {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal),+ $(,)?) => {
        /// One safeguard.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Safeguard { $($(#[doc = $doc])+ $name),+ }

        impl Safeguard {
            /// Every safeguard, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The name in tables.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// What it does, as a clause.
            pub const fn says(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+)),+ }
            }
        }

        /// Whether this safeguard stands. Without the feature `sabotage`: always.
        #[cfg(not(feature = "sabotage"))]
        pub(crate) const fn stands(_safeguard: Safeguard) -> bool {
            true
        }

        #[cfg(feature = "sabotage")]
        pub(crate) use sabotage::stands;
        #[cfg(feature = "sabotage")]
        pub use sabotage::without;

        #[cfg(feature = "sabotage")]
        mod sabotage {
            use std::cell::Cell;

            use super::Safeguard;

            const _: () = assert!(Safeguard::ALL.len() <= 128, "a bit for each");

            thread_local! {
                /// One bit for each safeguard that is away.
                static ABSENT: Cell<u128> = const { Cell::new(0) };
            }

            const fn bit(safeguard: Safeguard) -> u128 {
                1 << safeguard as u64
            }

            /// Whether this safeguard stands on this thread.
            pub(crate) fn stands(safeguard: Safeguard) -> bool {
                ABSENT.with(|absent| absent.get() & bit(safeguard) == 0)
            }

            struct Restore(u128);

            impl Drop for Restore {
                fn drop(&mut self) {
                    ABSENT.with(|absent| absent.set(self.0));
                }
            }

            /// Runs this on this thread with these safeguards taken away; they stand again afterwards, also after a panic.
            pub fn without<T>(safeguards: &[Safeguard], run: impl FnOnce() -> T) -> T {
                let away = safeguards.iter().fold(0, |bits, safeguard| bits | bit(*safeguard));
                let _restore = Restore(ABSENT.with(|absent| absent.replace(absent.get() | away)));
                run()
            }
        }
    };
}
