//! What cannot be seen: listings that are empty, shrunken or missing, an API that is silent, a process that slept.

use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::Layout;

use crate::field::*;

/// A machine gets well, and just then its cloud's listing cannot be believed: the incident is closed when sight is back.
#[test]
fn an_incident_whose_dwell_ends_in_blindness_closes_when_sight_returns() {
    let mut field = Field::new(Layout::fleet(2, 5));
    let victim = field.machine(0);
    field.fault(Fault::NodeDeletedByPerson(victim.clone()));
    field.run(s(90));
    field.0.world.schedule_kubelet_restart(field.0.now(), &victim);
    field.run(s(20));
    field.fault(Fault::ServersUnlisted { lasts: min(4), denies: false });
    field.run(min(12));
    field.ends_well();
}
