//! Machines on their way: what comes by itself is waited for, and what does not is told and repaired.

use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::Layout;

use crate::field::*;

/// Route and address pair of a new node are the cloud controller's to make: a join that goes well costs no call.
#[test]
fn a_join_that_goes_well_is_left_alone() {
    for seed in 0..10 {
        let mut field = Field::new(Layout::fleet(seed, 3).routed());
        field.fault(Fault::Launch { pool: workers(), trouble: None });
        field.run(min(10));
        assert_eq!(field.calls(), [], "seed {seed}\n{}", field.tail());
        field.ends_well();
    }
}
