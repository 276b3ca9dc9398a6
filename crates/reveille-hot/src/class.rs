//! The kinds of competing writes, as data: the sign of each, its trigger, and its cure.
//!
//! ```text
//!  Flips, writers ─▶ first row whose sign fits ─▶ Class { name, means, ends_with }
//! ```
//!
//! A class is what the evidence looks like. It is no proof of who is at fault, and its words say so.

use crate::flips::{Flip, Flips};
use crate::path::Path;

/// One class.
#[derive(Debug, PartialEq, Eq)]
pub struct Class {
    /// A name for programs.
    pub name: &'static str,
    /// What it looks like, and what is known to set it off.
    pub means: &'static str,
    /// What ends it.
    pub ends_with: &'static str,
    sign: Sign,
}

/// How a class is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// A value comes back below this field.
    FightBelow(&'static str),
    /// A value comes back in one of these fields of the spec.
    FightOver(&'static [&'static str]),
    /// Values come back, all of them in finalizers and annotations.
    FightOfFinalizers,
    /// Values come back, all of them in labels and annotations.
    FightOfLabels,
    /// Only times differ.
    TimesAlone,
    /// Only the order of a list differs.
    OrderAlone,
    /// Values come back, and several wrote them.
    Fight,
    /// Values come back, and one name wrote them all.
    FightOfOne,
    /// Versions in which nothing differs.
    Nothing,
    /// One writer, no value comes back.
    OneWriter,
    /// Several writers, no value comes back.
    SeveralWriters,
    /// A kind is written and hardly changes: told by counts alone.
    Metrics,
    /// Only the count is known.
    Unseen,
}

const CLASSES: &[Class] = &[
    Class {
        name: "docker-info",
        means: "what two machines say of their runtime takes turns: two agents with one identity, as with a host name used twice",
        ends_with: "stop the agent on the machine that does not belong to the object, and give it a name of its own",
        sign: Sign::FightBelow("dockerInfo"),
    },
    Class {
        name: "roles",
        means: "roles are switched on and off: an agent registers with other roles than the labels of its node say",
        ends_with: "start the agent with the roles that its node has, or label the node as it is meant",
        sign: Sign::FightOver(&["etcd", "worker", "controlPlane"]),
    },
    Class {
        name: "finalizers",
        means: "finalizers or annotations are put on and taken off: controllers of two versions at once",
        ends_with: "run one version of the controller: end the rollout that stands still, or the older replicas",
        sign: Sign::FightOfFinalizers,
    },
    Class {
        name: "labels",
        means: "labels or annotations take turns: two objects copy theirs to one, or two controllers own the same key",
        ends_with: "find the second object or controller that sets this key, and let one of them go",
        sign: Sign::FightOfLabels,
    },
    Class {
        name: "heartbeat",
        means: "only times differ: a heartbeat is copied into a condition that is compared, so that each one is a change",
        ends_with: "take a version of the controller that compares conditions without their times",
        sign: Sign::TimesAlone,
    },
    Class {
        name: "order",
        means: "only the order of a list differs: a comparison that minds the order is never satisfied",
        ends_with: "take a version of the controller that sorts before it compares",
        sign: Sign::OrderAlone,
    },
    Class {
        name: "two-writers",
        means: "values come back that another has just replaced: two writers want it otherwise",
        ends_with: "stop one of the writers",
        sign: Sign::Fight,
    },
    Class {
        name: "two-under-one-name",
        means: "values come back, and all were written under one name: two processes of one program, or one that wavers",
        ends_with: "find the second process (audit log: addresses and users), and stop it",
        sign: Sign::FightOfOne,
    },
    Class {
        name: "no-op-writes",
        means: "writes that change nothing: a comparison that is never equal (nothing against empty, order), or an update without any",
        ends_with: "stop or update the controller that writes; the audit log names it",
        sign: Sign::Metrics,
    },
    Class {
        name: "empty-changes",
        means: "versions in which nothing differs but the server's own books",
        ends_with: "stop or update the controller that writes",
        sign: Sign::Nothing,
    },
    Class {
        name: "several-writers",
        means: "several write it, and no value comes back: they add to it in turn",
        ends_with: "ask each writer why it writes so often",
        sign: Sign::SeveralWriters,
    },
    Class {
        name: "busy-writer",
        means: "one writer, each time with another value: a counter, a progress or a loop without a pause",
        ends_with: "ask the writer why it writes so often; what changes in it is named here",
        sign: Sign::OneWriter,
    },
    Class {
        name: "unseen",
        means: "what changes, and who changes it, was not seen",
        ends_with: "look while it goes on, or give an audit log",
        sign: Sign::Unseen,
    },
];

/// Metadata that controllers put their marks on.
fn is_mark(path: &Path, fields: &[&str]) -> bool {
    fields.iter().any(|field| path.begins(&["metadata", field]))
}

impl Sign {
    fn fits(self, flips: &[Flip], seen: &Flips) -> bool {
        let mut fights = flips.iter().filter(|flip| flip.is_fight());
        // Times differ with whatever else does.
        let all = |test: &dyn Fn(&Path) -> bool| {
            flips.iter().any(Flip::is_fight)
                && flips.iter().all(|flip| flip.path.is_time() || test(&flip.path))
        };
        let fought = flips.iter().any(|flip| flip.is_fight() && !flip.path.is_time());
        match self {
            Self::FightBelow(field) => fights.any(|flip| flip.path.passes(field)),
            Self::FightOver(fields) => {
                fights.any(|flip| fields.iter().any(|field| flip.path.begins(&["spec", field])))
            }
            Self::FightOfFinalizers => {
                all(&|path| is_mark(path, &["finalizers", "annotations"]))
                    && fights.any(|flip| is_mark(&flip.path, &["finalizers"]))
            }
            Self::FightOfLabels => all(&|path| is_mark(path, &["labels", "annotations"])) && fought,
            Self::TimesAlone => !flips.is_empty() && flips.iter().all(|flip| flip.path.is_time()),
            Self::OrderAlone => {
                let order = |path: &Path| matches!(path.0.last(), Some(crate::path::Step::Order));
                !flips.is_empty() && flips.iter().all(|flip| flip.path.is_time() || order(&flip.path))
            }
            Self::Fight => fought && seen.writers().len() > 1,
            Self::FightOfOne => fought,
            Self::Nothing => seen.versions() > 0 && flips.is_empty(),
            Self::SeveralWriters => seen.writers().len() > 1,
            Self::OneWriter => seen.writers().len() == 1,
            Self::Metrics => false,
            Self::Unseen => true,
        }
    }
}

/// What it looks like.
pub fn class(flips: &[Flip], seen: &Flips) -> &'static Class {
    let enough = seen.versions() > 0;
    CLASSES.iter().find(|class| enough && class.sign.fits(flips, seen)).unwrap_or_else(unseen)
}

/// Only the count is known.
pub fn unseen() -> &'static Class {
    by_sign(Sign::Unseen)
}

/// A kind that is written and hardly changes.
pub fn no_ops() -> &'static Class {
    by_sign(Sign::Metrics)
}

/// Several that write under one name, or several names: as a log tells writers.
pub fn of_clients(count: usize) -> &'static Class {
    by_sign(match count {
        0 => Sign::Unseen,
        1 => Sign::OneWriter,
        _ => Sign::SeveralWriters,
    })
}

fn by_sign(sign: Sign) -> &'static Class {
    // Each sign has its row; the last row is for objects without a sign.
    CLASSES.iter().find(|class| class.sign == sign).unwrap_or(&CLASSES[CLASSES.len() - 1])
}

/// Every class, for pages that describe them.
pub fn all() -> &'static [Class] {
    CLASSES
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(nth: u32, manager: &str, change: &Value) -> Value {
        let mut object = json!({"metadata": {"name": "m", "managedFields": [
            {"manager": manager, "time": nth.to_string(), "fieldsV1": {"f:metadata": {}, "f:spec": {}, "f:status": {}}}]}});
        for (key, value) in change.as_object().unwrap() {
            match key.split_once('.') {
                Some((top, field)) => object[top][field] = value.clone(),
                None => object[key] = value.clone(),
            }
        }
        object
    }

    fn named(hands: [&str; 2], change: impl Fn(u32) -> Value) -> &'static str {
        let mut flips = Flips::default();
        for nth in 0..12 {
            flips.version(object(nth, hands[nth as usize % 2], &change(nth)));
        }
        class(&flips.flips(), &flips).name
    }

    #[test]
    fn each_fight_is_known_by_what_flips() {
        let turn = |nth: u32| ["a", "b"][nth as usize % 2];
        let two = ["first", "second"];
        assert_eq!(named(two, |n| json!({"spec.rkeNode": {"dockerInfo": {"name": turn(n)}}})), "docker-info");
        assert_eq!(named(two, |n| json!({"spec.worker": n % 2 == 0})), "roles");
        assert_eq!(
            named(two, |n| json!({"metadata.finalizers": if n % 2 == 0 { json!(["x"]) } else { json!([]) }})),
            "finalizers"
        );
        assert_eq!(named(two, |n| json!({"metadata.labels": {"zone": turn(n)}})), "labels");
        assert_eq!(named(two, |n| json!({"spec.anything": turn(n)})), "two-writers");
        assert_eq!(named(["one", "one"], |n| json!({"spec.anything": turn(n)})), "two-under-one-name");
        assert_eq!(named(["one", "one"], |n| json!({"spec.anything": n})), "busy-writer");
        assert_eq!(named(two, |n| json!({"spec.anything": n})), "several-writers");
        let conditions = |n: u32| json!({"status.conditions": [{"type": "Ready", "lastHeartbeatTime": n}]});
        assert_eq!(named(["one", "one"], conditions), "heartbeat");
        let order = |n: u32| {
            let mut all = vec![json!({"type": "A"}), json!({"type": "B"})];
            all.rotate_left(n as usize % 2);
            json!({"status.conditions": all})
        };
        assert_eq!(named(["one", "one"], order), "order");
        assert_eq!(named(two, |_| json!({"spec.anything": 1})), "empty-changes");
    }

    #[test]
    fn what_was_not_seen_is_not_named() {
        assert_eq!(class(&[], &Flips::default()).name, "unseen");
        assert_eq!(of_clients(0).name, "unseen");
    }
}
