//! Every reason for which an intent is dropped: the samples of the golden file, and the shapes of arbitrary ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use reveille_core::model::attempt::Why;
use reveille_core::model::blocker::{Blocker, Scope};
use reveille_core::model::class::Class;
use reveille_core::model::id::{CloudName, IntentId, PoolName, ZoneName};
use reveille_core::model::time::Span;
use serde_json::{Value, json};

use super::arbitrary::text;
use super::words;

fn blocks(x: &Arc<str>, n: u32, span: Span) -> Vec<Blocker> {
    use Blocker::*;
    let (pool, zone) = (PoolName::new(x.clone()), ZoneName::new(x.clone()));
    let recovering = |scope| Recovering { scope, left: span };
    vec![
        Off(Class::Network),
        Off(Class::Access),
        Propose(Class::Rejoin),
        Propose(Class::Reboot),
        Propose(Class::Replace),
        Propose(Class::Cleanup),
        DryRun,
        Paused { scope: x.clone(), by: x.clone() },
        Blind { source: x.clone(), why: x.clone() },
        Settling(span),
        AgentAwaited(span),
        Ready,
        LeaseFresh { age: span, listed: span },
        AgentHeard(span),
        AgentHolds(x.clone()),
        AgentLeaves(x.clone()),
        AgentWorks { what: x.clone(), attempt: n, of: n },
        AgentLost,
        AskUnderWay(IntentId(u64::from(n))),
        AgentsLost { lost: n, of: n },
        AgentByName,
        NotOwned,
        Contested,
        LostTogether { machines: 2 },
        SharedIdentity(x.clone()),
        ZoneDark { zone: zone.clone(), machines: n },
        FleetDark { silent: n, total: n },
        MostAway { away: n, total: n },
        Breaker { scope: x.clone(), unhealthy: n, total: n, tolerated: n },
        recovering(Scope::Pool(pool.clone())),
        recovering(Scope::Zone(CloudName::new(x.clone()), zone)),
        recovering(Scope::Roster),
        Rolling(pool),
        OtherActor(x.clone()),
        GroupKeeps(x.clone()),
        Locked,
        AtOnce { used: n, limit: n },
        PerHour { used: n, limit: n, free_in: span },
        Width { used: n, width: n },
        CoolingDown(span),
        Kept(span),
        PoolMinimum { live: n, min: n },
        SameFault { times: n, text: x.clone() },
        Futile { times: n },
        RouterFull { used: n, limit: n },
        HistoryUnknown,
        NoNode,
        Ledger(x.clone()),
        NotLeading,
        NoAgent,
        AgentSilent(x.clone()),
    ]
}

fn reasons(x: &Arc<str>, n: u32, span: Span) -> Vec<Why> {
    let held = blocks(x, n, span).into_iter().map(Why::Held);
    [Why::FaultOver, Why::FaultCleared].into_iter().chain(held).collect()
}

/// Every reason once.
pub(crate) fn every_reason() -> Vec<Why> {
    reasons(&Arc::from("X"), 3, Span::from_min(2))
}

pub(crate) fn why() -> impl Strategy<Value = Why> {
    (text(), any::<u32>(), any::<i64>(), any::<Index>()).prop_map(|(text, n, ms, place)| {
        let mut all = reasons(&text, n, Span::from_ms(ms));
        all.swap_remove(place.index(all.len()))
    })
}

#[test]
fn the_golden_file_holds_every_reason() {
    let word = |value: &Value| match value {
        Value::Object(fields) => fields.keys().next().cloned().unwrap_or_default(),
        word => word.as_str().unwrap_or_default().to_owned(),
    };
    let all: Vec<Value> = every_reason().iter().map(|why| json!(why)).collect();
    assert_eq!(all.iter().map(word).collect::<BTreeSet<_>>(), words::<Why>(json!("?")));
    let held = all.iter().filter_map(|why| why.get("held"));
    assert_eq!(held.map(word).collect::<BTreeSet<_>>(), words::<Blocker>(json!("?")));
}
