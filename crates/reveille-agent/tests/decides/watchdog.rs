//! The watchdog: when the agent arms it, that the agent reads it back, and that it fires on no machine that should keep
//! running.

use reveille_agent::model::{Device, Machine, Role};
use reveille_agent::{Effect, Event};
use reveille_core::model::time::Span;

use crate::fixture::{Bench, machine};

#[test]
fn it_is_armed_only_while_a_reboot_is_safe() {
    let usual = machine();
    for (odd, armed) in [
        (usual.clone(), true),
        (Machine { may_reboot: false, ..usual.clone() }, true),
        (Machine { role: Role::ControlPlane { spare: true }, ..usual.clone() }, true),
        (Machine { role: Role::ControlPlane { spare: false }, ..usual.clone() }, false),
        (Machine { joining: true, ..usual.clone() }, false),
        (Machine { watchdog: Device::Forbidden, ..usual.clone() }, false),
        (Machine { watchdog: Device::Absent, ..usual }, false),
    ] {
        let mut bench = Bench::with_peers(3, 0);
        bench.hear(Event::Found(odd.clone()));
        bench.run(Span::from_min(3));
        let held = odd.watchdog == Device::Usable;
        assert_eq!(bench.around.watchdog.is_some() && held, armed, "{odd:?}");
    }
}

#[test]
fn to_cancel_disarms_and_to_resume_arms_again() {
    let mut bench = Bench::with_peers(3, 0);
    bench.run(Span::from_min(1));
    assert!(bench.around.watchdog.is_some());
    bench.hear(Event::Cancelled);
    bench.run(Span::from_min(1));
    assert_eq!(bench.around.watchdog, None);
    assert!(bench.said("the watchdog is disarmed, as read back"), "{}", bench.all_said());
    assert!(bench.said("cannot reboot its machine: it was told to do nothing"));
    bench.hear(Event::Resumed);
    bench.run(Span::from_min(1));
    assert!(bench.around.watchdog.is_some());
}

#[test]
fn what_was_not_read_back_as_armed_is_not_armed() {
    let mut bench = Bench::with_peers(3, 0);
    bench.around.device_obeys = false;
    bench.around.watchdog = None;
    bench.hear(Event::Found(Machine { may_reboot: false, zone: None, ..machine() }));
    bench.restart();
    bench.hear(Event::Found(Machine { may_reboot: false, ..machine() }));
    bench.run(Span::from_min(60));
    assert!(bench.said("the watchdog is not as it was set"), "{}", bench.all_said());
    assert!(
        bench.said("cannot reboot its machine: the watchdog is not proved armed"),
        "{}",
        bench.all_said()
    );
    let tries = bench.effects.iter().filter(|effect| matches!(effect, Effect::SetWatchdog(_, Some(_), _)));
    assert!(tries.count() < 12, "it goes on for ever");
}

#[test]
fn a_device_that_will_not_close_is_fed_on() {
    let mut bench = Bench::with_peers(3, 0);
    bench.run(Span::from_min(1));
    bench.around.device_obeys = false;
    bench.hear(Event::Cancelled);
    bench.run(Span::from_min(30));
    let before = bench.effects.len();
    bench.run(Span::from_min(5));
    let fed = bench.effects[before..].iter().filter(|effect| **effect == Effect::FeedWatchdog).count();
    assert!(fed >= 10, "{fed}");
    assert!(bench.said("the watchdog is not as it was set"));
}

#[test]
fn watchdog_left_armed_by_last_process_is_fed_until_disarmed() {
    let mut bench = Bench::with_peers(3, 0);
    bench.run(Span::from_min(1));
    assert!(bench.around.watchdog.is_some());
    // The next process may not arm the watchdog, and the device does not close.
    bench.around.device_obeys = false;
    bench.restart();
    bench.hear(Event::Found(Machine { joining: true, ..machine() }));
    let before = bench.effects.len();
    bench.run(Span::from_min(10));
    let fed = bench.effects[before..].iter().filter(|effect| **effect == Effect::FeedWatchdog).count();
    assert!(fed >= 25, "{fed}");
}
