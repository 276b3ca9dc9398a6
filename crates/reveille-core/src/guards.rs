//! One list of guards, and the switch by which a test build takes some away: what each engine with guards begins with.
//!
//! ```text
//!  guards! { /// one clause … Name = "word", … } ─▶ Guard, Guard::ALL, stands(Guard)
//!                                  feature "sabotage" of the crate that lists ─▶ without(&[Guard], || …)
//! ```
//!
//! It is a macro because the switch is a feature of the crate that is shipped without it, and because a list of at most
//! 128 names, their words and their clauses is to be written once.

/// Makes `Guard` of a list, with its names and clauses, and `stands`, which is the constant true unless the calling crate is
/// built with its feature `sabotage`.
#[macro_export]
macro_rules! guards {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal),+ $(,)?) => {
        /// One guard.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Guard { $($(#[doc = $doc])+ $name),+ }

        impl Guard {
            /// Every guard, in the order of the list.
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

        /// Whether this guard stands. Without the feature `sabotage`: always.
        #[cfg(not(feature = "sabotage"))]
        pub(crate) const fn stands(_guard: Guard) -> bool {
            true
        }

        #[cfg(feature = "sabotage")]
        pub(crate) use sabotage::stands;
        #[cfg(feature = "sabotage")]
        pub use sabotage::without;

        #[cfg(feature = "sabotage")]
        mod sabotage {
            use std::cell::Cell;

            use super::Guard;

            const _: () = assert!(Guard::ALL.len() <= 128, "a bit for each");

            thread_local! {
                /// One bit for each guard that is away.
                static ABSENT: Cell<u128> = const { Cell::new(0) };
            }

            const fn bit(guard: Guard) -> u128 {
                1 << guard as u64
            }

            /// Whether this guard stands on this thread.
            pub(crate) fn stands(guard: Guard) -> bool {
                ABSENT.with(|absent| absent.get() & bit(guard) == 0)
            }

            struct Restore(u128);

            impl Drop for Restore {
                fn drop(&mut self) {
                    ABSENT.with(|absent| absent.set(self.0));
                }
            }

            /// Runs this on this thread with these guards taken away; they stand again afterwards, also after a panic.
            pub fn without<T>(guards: &[Guard], run: impl FnOnce() -> T) -> T {
                let away = guards.iter().fold(0, |bits, guard| bits | bit(*guard));
                let _restore = Restore(ABSENT.with(|absent| absent.replace(absent.get() | away)));
                run()
            }
        }
    };
}
