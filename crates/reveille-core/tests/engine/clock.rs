//! What is waited for goes on although the controller's own clock was set.

use reveille_core::effect::Effect;
use reveille_core::event::{CloudFact, Event};

use super::fixture::{CLOUD, Field, roster};
use super::steps::min;

/// The disk was full for 15 s, and the clock was set back by 23 minutes meanwhile: for as long the ledger was not tried
/// again, and nothing that happened meanwhile was kept (seed 4550315).
#[test]
fn refused_ledger_is_retried_in_time_after_clock_set_back() {
    let mut field = Field::new(roster()).populate(5);
    field.run(min(40));
    field.ports.get_mut("i001").unwrap().groups = Box::new([]);
    let fact = CloudFact::read(field.snapshot());
    for effect in field.step(Event::Cloud { cloud: CLOUD.into(), fact }) {
        if let Effect::Record { id, .. } = effect {
            field.step(Event::RecordFailed(id));
        }
    }
    assert!(field.state.context().ledger_error.is_some());
    field.now = field.now - min(23);
    field.run(min(1));
    assert_eq!(field.state.context().ledger_error, None);
}
