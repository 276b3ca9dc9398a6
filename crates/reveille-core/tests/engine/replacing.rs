//! What tests of replacements say: a machine fails, another is made, and what is proved and counted.

use reveille_core::effect::Call;
use reveille_core::model::id::IntentId;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::time::Span;
use reveille_core::plan::budget::REPLACEMENT_FAILED;
use reveille_core::record::Record;

use super::fixture::{Field, roster};
use super::steps::min;

pub fn fails(field: &mut Field, id: &str) {
    field.instances.get_mut(id).unwrap().state = InstanceState::Errored;
    field.nodes.remove(id);
}

/// The next machine is made after the last list.
pub fn between_lists(field: &mut Field) {
    while field.now.ms / 10_000 % 3 != 1 {
        field.run(Span::from_s(10));
    }
}

/// Made between two lists: it is seen being born.
pub fn is_made(field: &mut Field, id: &str) {
    between_lists(field);
    field.add_machine(id, true);
}

/// The replacements that were proved, in order.
pub fn proved(field: &Field) -> Vec<IntentId> {
    let proved = |record: &Record| match record {
        Record::Width { proved, .. } => *proved,
        _ => None,
    };
    field.records.iter().filter_map(proved).collect()
}

/// The machines whose replacement is said not to have helped.
pub fn blamed(field: &Field) -> Vec<String> {
    let blamed = |record: &Record| match record {
        Record::FaultSeen { instance, fault, .. } if **fault == *REPLACEMENT_FAILED => {
            Some(instance.to_string())
        }
        _ => None,
    };
    field.records.iter().filter_map(blamed).collect()
}

/// How many replacements that did not help count against the pool.
pub fn counted(field: &Field) -> u32 {
    field.state.context().book.fault_count(field.now, &"workers".into(), REPLACEMENT_FAILED, None)
}

pub fn deletes(field: &Field) -> usize {
    field.calls.iter().filter(|call| matches!(call, Call::DeleteInstance(_))).count()
}

/// Three machines fail one after another, and no successor of theirs comes.
pub fn three_fail(field: &mut Field) {
    for id in ["i001", "i002", "i003"] {
        fails(field, id);
        let calls = field.calls.len();
        field.run_until(min(180), |field| field.calls.len() > calls);
        field.run(min(60));
    }
    assert_eq!(counted(field), 3);
}

/// Three replacements that failed, one after another, and what was counted for them.
pub fn three_failed_replacements() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(min(5));
    three_fail(&mut field);
    field
}
