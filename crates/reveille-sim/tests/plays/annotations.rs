//! A person's request and a crash at every point around it: it is carried out, once.

use reveille_sim::scenario::{parse, play, transcript};

#[test]
fn a_request_is_carried_out_once_wherever_the_process_dies() {
    for crash in [
        "Reveille dies for 5s",
        "Reveille dies for 10m",
        "Reveille dies before its next intent is recorded, for 20s",
        "Reveille dies when its next intent is recorded, for 20s",
        "Reveille dies before its next call, for 20s",
        "Reveille dies before its next call is answered, for 20s",
        "Reveille dies before its next call is proved, for 20s",
        "the ledger is rotated",
        "the disk is full for 3m",
    ] {
        let text = format!(
            "scenario T1 A request and a crash\ngiven\n  pool workers of 8 machines in zones a, b\n  \
             deadline not-ready 50m\nwhen\n  at 5m  the kubelet of workers-1 hangs\n  at 8m  {crash}\n  \
             at 8m  ada annotates the node of workers-1: reveille.dev/repair-now \"OPS-7\"\n  \
             at 40m  {crash}\n  at 41m  the kubelet of workers-1 hangs\n  ends at 80m\n\
             then\n  by 22m  Reveille reboots workers-1\n  from 22m to 80m  no call\n  at the end  exactly 1 reboot\n"
        );
        let scenario = parse(&text).unwrap_or_else(|refusal| panic!("{refusal}"));
        let played = play(&scenario).unwrap();
        assert!(played.holds(), "{crash}\n{}", transcript(&scenario, Some(&played)));
    }
}
