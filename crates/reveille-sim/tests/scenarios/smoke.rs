use crate::field::*;
use reveille_sim::world::fault::Fault;
use reveille_sim::world::guest::Trouble;
use reveille_sim::world::layout::Layout;

#[test]
fn play() {
    let mut field = Field::new(Layout::fleet(1, 6).routed());
    field.run(min(3));
    let m = field.machines();
    field.0.fault_in(s(0), Fault::GroupLost { machine: m[0].clone(), slips: false });
    field.0.fault_in(min(5), Fault::NodeDeletedByController(m[1].clone()));
    field.0.fault_in(min(20), Fault::DuplicateRoute(m[2].clone()));
    field.0.fault_in(min(22), Fault::Launch { pool: workers(), trouble: Some(Trouble::NoNetwork) });
    field.0.fault_in(min(60), Fault::Launch { pool: workers(), trouble: Some(Trouble::BuildFails) });
    field.0.fault_in(min(70), Fault::Breaks(m[3].clone(), Trouble::KubeletHung));
    field.0.fault_in(min(100), Fault::ServersUnlisted { lasts: min(5), denies: true });
    field.run(min(150));
    println!("{}", field.0.log().tail(1000));
    println!("{:?} {:?}", field.0.counts(), field.open());
    field.clean();
}
