//! One copy of each text that many nodes share: zones, condition types and reasons, kubelet versions.
//!
//! Ten thousand nodes say the same few dozen words. Texts go in as borrowed slices and come out as shared bytes. The
//! set is bounded, because what it holds is never taken out: beyond the bound texts are still right, only not shared.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Texts kept at most; far above what any fleet needs, and small enough not to matter.
const KEPT_MAX: usize = 4096;

/// Texts longer than this are not worth sharing: they are messages, not names.
const SHARED_MAX_BYTES: usize = 128;

/// The set of shared texts.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    kept: Mutex<BTreeSet<Arc<str>>>,
}

impl Interner {
    /// The one copy of this text.
    pub(crate) fn share(&self, text: &str) -> Arc<str> {
        if text.len() > SHARED_MAX_BYTES {
            return Arc::from(text);
        }
        // A panic elsewhere cannot leave a set of immutable texts half changed.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(text) {
            return known.clone();
        }
        let fresh: Arc<str> = Arc::from(text);
        if kept.len() < KEPT_MAX {
            kept.insert(fresh.clone());
        }
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_the_same_bytes() {
        let interner = Interner::default();
        assert!(Arc::ptr_eq(&interner.share("nova-a"), &interner.share("nova-a")));
        assert!(!Arc::ptr_eq(&interner.share("nova-a"), &interner.share("nova-b")));
    }

    #[test]
    fn beyond_the_bound_texts_are_right_and_nothing_more_is_kept() {
        let interner = Interner::default();
        for number in 0..KEPT_MAX + 10 {
            assert_eq!(&*interner.share(&format!("v{number}")), format!("v{number}"));
        }
        assert_eq!(interner.kept.lock().unwrap().len(), KEPT_MAX);
        interner.share(&"x".repeat(SHARED_MAX_BYTES + 1));
        assert_eq!(interner.kept.lock().unwrap().len(), KEPT_MAX);
    }
}
