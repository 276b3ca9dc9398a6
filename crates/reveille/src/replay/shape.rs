//! The content of an effect, without the numbers that depend on everything before it.
//!
//! Reads, records and intents get consecutive numbers. Once two engines differ, the same request has another number. The
//! shape is the request without its numbers, and two requests with one shape are the same request.

use reveille_core::effect::Effect;
use serde_json::Value;

/// The shape as JSON text. An effect that cannot be written as JSON has its debug text as shape.
pub(crate) fn of(effect: &Effect) -> String {
    serde_json::to_value(effect).map_or_else(
        |_| format!("{effect:?}"),
        |mut value| {
            strip(&mut value);
            value.to_string()
        },
    )
}

/// True for a decision: a record or a call. Reads, listings and wake-ups only serve decisions.
pub(crate) const fn is_decision(effect: &Effect) -> bool {
    matches!(effect, Effect::Record { .. } | Effect::Call { .. })
}

/// Effects of `ours` that `theirs` lacks, each counted as often as it occurs.
pub(crate) fn beyond(ours: &[Effect], theirs: &[Effect]) -> Vec<Effect> {
    let mut left: Vec<String> = theirs.iter().map(of).collect();
    let mut beyond = Vec::new();
    for effect in ours {
        let shape = of(effect);
        match left.iter().position(|other| *other == shape) {
            Some(place) => {
                left.swap_remove(place);
            }
            None => beyond.push(effect.clone()),
        }
    }
    beyond
}

/// Removes consecutive numbers. Ids of objects are text, so a number in a field of that name is one of the program's.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                !(matches!(name.as_str(), "id" | "intent" | "incident") && value.is_number())
            });
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use reveille_core::effect::{Call, Look};
    use reveille_core::model::id::{Fence, IntentId, LookId};
    use reveille_core::model::instance::Mark;
    use reveille_core::model::roster::Ownership;
    use reveille_core::remedies::StartInstance;

    use super::*;

    fn look(number: u64, instance: &str) -> Effect {
        Effect::Look { id: LookId(number), look: Look::Ports("os".into(), instance.into()) }
    }

    #[test]
    fn the_same_request_under_another_number_has_the_same_shape() {
        assert_eq!(of(&look(1, "7f3a")), of(&look(9, "7f3a")));
        assert_ne!(of(&look(1, "7f3a")), of(&look(1, "8b1c")));
        let owned = || Ownership::of_cluster(Mark::Tag("k8s-cluster=prod".into()));
        let start = |number| Effect::Call {
            intent: IntentId(number),
            fence: Fence(1),
            call: Call::Start(StartInstance { cloud: "os".into(), instance: "7f3a".into(), owned: owned() }),
        };
        assert_eq!(of(&start(1)), of(&start(2)));
    }

    #[test]
    fn what_is_there_twice_is_missed_once() {
        let (ours, theirs) = ([look(1, "a"), look(2, "a"), look(3, "b")], [look(7, "a"), look(8, "c")]);
        assert_eq!(beyond(&ours, &theirs), [look(2, "a"), look(3, "b")]);
        assert_eq!(beyond(&theirs, &ours), [look(8, "c")]);
    }
}
