//! Logs whether the data sources can be trusted: one line when that changes, none in between.
//!
//! The engine makes no record of it, because nothing depends on it after a restart. Operators need to know it, because no
//! machine is judged or repaired while a source cannot be trusted.

use std::collections::BTreeMap;

use reveille_core::observe::source::{Source, Trust};
use reveille_core::plan::context::PlanContext;

/// The last log line of each source.
#[derive(Clone, Debug, Default)]
pub(super) struct SourceLog {
    believed: BTreeMap<String, bool>,
}

impl SourceLog {
    /// Logs what changed since the last time.
    pub(super) fn review(&mut self, context: &PlanContext<'_>) {
        self.one(context, "cluster", &context.cluster.source);
        for (name, cloud) in context.clouds {
            self.one(context, name.as_str(), &cloud.source);
        }
    }

    fn one(&mut self, context: &PlanContext<'_>, name: &str, source: &Source) {
        let trust = source.trust(context.now);
        // The source has not answered or failed yet; the start is not logged.
        if source.last_good().is_none() && source.failing().is_none() {
            return;
        }
        let before = self.believed.insert(name.to_owned(), trust.is_given());
        if before == Some(trust.is_given()) {
            return;
        }
        let roster = context.roster.name.as_str();
        match (trust, before) {
            (Trust::No(why), _) => {
                tracing::warn!(
                    roster,
                    source = name,
                    "no reliable data from {name}; repairs that need it wait: {why}"
                );
            }
            (Trust::Since(_), Some(false)) => {
                tracing::info!(
                    roster,
                    source = name,
                    "{name} is available again; every timer that depends on it restarts"
                );
            }
            (Trust::Since(_), _) => tracing::info!(roster, source = name, "{name}: first complete data"),
        }
    }
}
