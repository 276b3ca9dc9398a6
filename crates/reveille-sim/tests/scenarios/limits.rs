//! How much at once: level, rate, width, minimum, breakers, and trust that has to be earned.

use reveille_core::model::incident::FaultKind;
use reveille_core::record::{Record, Verdict};
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::Layout;

use crate::field::*;

/// A deletion that takes its time proves nothing by that: trust grows when the successor answers, and not before.
#[test]
fn a_slow_deletion_is_no_proof() {
    let mut layout = Layout::fleet(1, 6);
    layout.deletes_within = (min(4), min(4));
    let mut field = Field::new(layout);
    let victim = field.machine(0);
    field.fault(Fault::Errored(victim.clone()));
    field.run(s(165));
    let widened = |record: &Record| matches!(record, Record::Width { width, .. } if *width > 1);
    assert!(field.exists(&victim) && field.deletes() == 1, "{}", field.tail());
    assert_eq!(field.recorded(widened), 0, "{}", field.tail());
    field.run(min(10));
    assert_eq!(field.verdicts(FaultKind::Errored), [Verdict::SubjectGone], "{}", field.tail());
    assert_eq!(field.recorded(widened), 1, "{}", field.tail());
    field.ends_well();
}
