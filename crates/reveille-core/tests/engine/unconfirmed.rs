//! What was tried for a machine, and asked of us, ends while its incident waits for a person to confirm that it is well.

use reveille_core::model::incident::FaultKind;
use reveille_core::model::node::{Asks, Ready};
use reveille_core::model::roster::{Mode, Roster};

use super::fixture::Field;
use super::steps::{made, min, roster_with, set};

const ONE: &str = "i004";

/// A person confirms that a problem is over, and no kubelet is restarted before the reboot.
fn confirming() -> Roster {
    roster_with(|pool| {
        pool.repair.rejoin = Mode::Off;
        pool.deadlines.confirm = true;
    })
}

fn goes_on(mut field: Field, how: &str) -> Field {
    match how {
        "restart" => field = field.restarted(confirming()),
        "rotation, restart" => {
            field.records = field.state.checkpoint();
            field = field.restarted(confirming());
        }
        "sleep of two minutes" => field.now = field.now + min(2),
        _ => {}
    }
    field
}

/// Two reboots were in vain, and a person mended the machine; or the second one helped. It is well for ten hours, and no person
/// has confirmed that. We are restarted, and half an hour later it falls silent: another problem, and the gentlest step comes
/// first.
#[test]
fn machine_healthy_for_ten_hours_is_rebooted_after_restart() {
    for helped in [false, true] {
        for how in ["nothing", "restart", "rotation, restart", "sleep of two minutes"] {
            let mut field = Field::new(confirming()).populate(10);
            field.run(min(20));
            set(&mut field, ONE, Ready::Unknown);
            field.run_until(min(60), |field| field.calls.len() > 1);
            assert_eq!(made(&field), ["reboot instance i004", "power-cycle instance i004"]);
            if helped {
                field.run(min(2));
                field.boots(ONE);
            } else {
                field.instances.get_mut(ONE).unwrap().locked = true;
                field.run(min(30));
                assert_eq!(field.case(ONE, FaultKind::NotReady).unwrap().incident.repair_step, 2);
                field.boots(ONE);
                field.run(min(5));
                field.instances.get_mut(ONE).unwrap().locked = false;
            }
            field.run(min(600));
            field = goes_on(field, how);
            field.run(min(30));
            let before = made(&field).len();
            set(&mut field, ONE, Ready::Unknown);
            field.run_until(min(60), |field| field.calls.len() > before);
            let next = made(&field).into_iter().nth(before);
            assert_eq!(next.as_deref(), Some("reboot instance i004"), "helped: {helped}, {how}");
        }
    }
}

/// A person asks for a repair of a locked machine, mends it themselves and unlocks it. It is well for 40 minutes, and no person
/// has confirmed that yet. Then its guest reboots by itself, which takes two minutes.
#[test]
fn repair_request_ends_when_machine_is_healthy_for_its_dwell() {
    for (asked, how) in
        [(false, "nothing"), (true, "nothing"), (true, "restart"), (true, "rotation, restart")]
    {
        let mut field = Field::new(confirming()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.instances.get_mut(ONE).unwrap().locked = true;
        field.run(min(3));
        if asked {
            let asks = Asks { repair: Some("OPS-7".into()), ..Asks::default() };
            field.nodes.get_mut(ONE).unwrap().intent.asks = Some(Box::new(asks));
        }
        field.run(min(3));
        set(&mut field, ONE, Ready::True);
        field.run(min(1));
        field.instances.get_mut(ONE).unwrap().locked = false;
        field.run(min(40));
        assert_eq!(field.calls, []);
        field = goes_on(field, how);
        set(&mut field, ONE, Ready::Unknown);
        field.run(min(4));
        assert_eq!(field.calls, [], "asked: {asked}, {how}: {:?}", made(&field));
    }
}

/// Two reboots were in vain, and a person mended the machine. It is well for ten hours, which no person has confirmed; we are
/// restarted each fifty minutes meanwhile, or sleep for two minutes. Another problem begins with the gentlest step.
#[test]
fn machine_healthy_for_ten_hours_is_rebooted_despite_restarts() {
    for how in ["nothing", "restarts", "sleeps"] {
        let mut field = Field::new(confirming()).populate(10);
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.run_until(min(60), |field| field.calls.len() > 1);
        field.instances.get_mut("i004").unwrap().locked = true;
        field.run(min(30));
        assert_eq!(field.case("i004", FaultKind::NotReady).unwrap().incident.repair_step, 2);
        field.boots("i004");
        field.run(min(5));
        field.instances.get_mut("i004").unwrap().locked = false;
        for _ in 0..12 {
            field.run(min(50));
            match how {
                "restarts" => field = field.restarted(confirming()),
                "sleeps" => field.now = field.now + min(2),
                _ => {}
            }
        }
        field.run(min(30));
        let before = made(&field).len();
        set(&mut field, "i004", Ready::Unknown);
        field.run_until(min(60), |field| field.calls.len() > before);
        let next = made(&field).into_iter().nth(before);
        assert_eq!(next.as_deref(), Some("reboot instance i004"), "{how}");
    }
}

/// The same machine falls silent for a minute directly after each restart. It was never well for an hour, and what was tried
/// counts.
#[test]
fn machine_silent_after_each_restart_was_not_healthy_for_hours() {
    for restarts in [false, true] {
        let mut field = Field::new(confirming()).populate(10);
        field.run(min(20));
        set(&mut field, ONE, Ready::Unknown);
        field.run_until(min(60), |field| field.calls.len() > 1);
        field.instances.get_mut(ONE).unwrap().locked = true;
        field.run(min(30));
        field.boots(ONE);
        field.run(min(5));
        field.instances.get_mut(ONE).unwrap().locked = false;
        for _ in 0..4 {
            field.run(min(50));
            if restarts {
                field = field.restarted(confirming());
            }
            set(&mut field, ONE, Ready::Unknown);
            field.run(min(1));
            set(&mut field, ONE, Ready::True);
        }
        field.run(min(30));
        let before = made(&field).len();
        set(&mut field, ONE, Ready::Unknown);
        field.run_until(min(60), |field| field.calls.len() > before);
        let next = made(&field).into_iter().nth(before);
        assert_eq!(next.as_deref(), Some("delete instance i004"), "restarts: {restarts}");
    }
}
