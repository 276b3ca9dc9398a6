//! Every expectation can fail, and says which line, what was so instead, and when.

use reveille_sim::scenario::{Ended, Played, library, parse, play, transcript};

fn text(number: &str) -> &'static str {
    library().iter().find(|filed| filed.number() == number).unwrap_or_else(|| panic!("no {number}")).text
}

fn played(text: &str) -> Played {
    play(&parse(text).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"))).unwrap()
}

/// Each row: a scenario, what it claims, what its copy claims, and a part of what is so instead.
const CONTRARY: &[(&str, &str, &str, &str)] = &[
    (
        "A1",
        "workers-6 is absent as never-joined",
        "workers-6 is absent as ghost",
        "workers-6 is absent as never-joined",
    ),
    (
        "A1",
        "workers-6 is absent as never-joined",
        "workers-6 answers",
        "workers-6 exists (Active) and does not answer",
    ),
    ("A1", "never   a call", "by 20m  a call", "none"),
    ("A1", "never   a call", "never   a never-joined incident", "1"),
    ("A2", "never  a call", "always  a call", "none"),
    ("A2", "exactly 1 call", "exactly 2 calls", "1: 0:31:"),
    ("A2", "exactly 1 call", "no deletion", "delete instance workers-6"),
    (
        "A2",
        "by 32m  Reveille deletes workers-6",
        "by 32m  Reveille deletes workers-5",
        "delete instance workers-6",
    ),
    (
        "A2",
        "the cause of workers-6 is no-network-at-boot",
        "the cause of workers-6 is RV117",
        "(no-network-at-boot)",
    ),
    ("A2", "workers-7 answers", "workers-8 answers", "workers-8 has not been made by then"),
    (
        "A2",
        "at the end  all is well",
        "at the end  pool workers has 5 machines",
        "pool workers has 6 machines",
    ),
    ("A2", "at the end  no incident is open", "never  no incident is open", "no incident is open"),
    (
        "B19",
        "workers-2 is absent as vanished",
        "workers-2 counts as present",
        "workers-2 is absent as vanished",
    ),
    ("B19", "never  a destructive call", "by 15m  Reveille reboots workers-2", "none"),
    ("B19", "closed as recovered", "closed as mended", "is closed as recovered"),
    (
        "B19",
        "by 8m  what comes next for workers-2 is: \"restart",
        "by 8m  what comes next for workers-2 is: \"reboot",
        "next: ",
    ),
    (
        "B29",
        "the cloud is not believed: \"empty\"",
        "the cloud is not believed: \"shrunk\"",
        "it is not believed: ",
    ),
    ("B29", "the cloud is not believed: \"empty\"", "the cluster is not believed", "it is believed"),
    (
        "B29",
        "at 40m  every machine exists",
        "at 40m  every machine answers",
        "workers-1 exists (Active) and does not answer",
    ),
    ("D53", "by 10m  Reveille reboots workers-2", "by 7m  Reveille reboots workers-2", "none"),
    (
        "D53",
        "until 100m never  Reveille reboots workers-9",
        "by 50m  Reveille reboots workers-9",
        "reboot instance workers-1",
    ),
    (
        "C38",
        "by 30m  workers-10 is absent as not-in-service",
        "by 26m  workers-10 is absent as not-in-service",
        "workers-10 is excused: its node is Ready",
    ),
    (
        "C35",
        "by 51m  the not-ready incident of workers-1 is closed as mended",
        "by 49m  the not-ready incident of workers-1 is closed as mended",
        "not-ready of workers-1 is open",
    ),
    ("D56", "limits.perHour: \"is negative\"", "limits.perHour: \"is blue\"", "\"-1\" is negative"),
    (
        "D56",
        "refused at spec.limits.perHour:",
        "refused at spec.limits.sameFaultStopsAt:",
        "it is refused at spec.pools[0].owned",
    ),
    ("D56", "exactly 14 mistakes", "exactly 15 mistakes", "it has 14"),
    ("D56", "never   a call", "at the end  no call", "the roster is refused, so nothing begins"),
    ("D57", "roster is accepted", "roster is refused at spec.pools: \"x\"", "the roster is accepted"),
    (
        "D57",
        "pool gpu is paused: \"none of",
        "pool gpu is paused: \"all of",
        "none of the project's 18 instances",
    ),
    (
        "G88",
        "from 12m to 4h always  workers-13 exists",
        "by 50m  Reveille deletes workers-13",
        "delete instance workers-2",
    ),
    ("H93", "never   an act of an agent", "by 20m  an act of an agent", "0"),
    (
        "H93",
        "and there is no order for it",
        "not one of 7",
        "the agent of workers-1 said last: does nothing: the API server answers a peer",
    ),
    (
        "H95",
        "never   the agent of workers-1 reboots it",
        "by 10m  the agent of workers-1 reboots it",
        "the agent of workers-1 did nothing",
    ),
    ("H95", "at most 2 reboots", "at most 1 reboots", "2"),
    ("H96", "until 40m never  an act of an agent", "never  an act of an agent", "1"),
    ("H96", "4 must", "3 must", "the agent of workers-1 said last: "),
    (
        "H98",
        "at 7m   the watchdog of workers-1 is disarmed",
        "at 7m   the watchdog of workers-1 is armed",
        "the watchdog of workers-1 is disarmed",
    ),
    (
        "H98",
        "the agent of workers-2 can reboot it",
        "the agent of workers-4 can reboot it",
        "the agent of workers-4 cannot reboot it: it runs a control plane",
    ),
    ("H100", "raised to 7.0 s", "raised to 8.0 s", "said last: "),
    (
        "H103",
        "never   the agent of workers-11 resets it",
        "by 1h  the agent of workers-11 resets it",
        "the agent of workers-11 did nothing",
    ),
    ("H103", "exactly 7 resets", "exactly 8 resets", "7"),
    (
        "H103",
        "by 12m  the agent of workers-1 restarts its kubelet",
        "by 12m  the agent of workers-1 joins it",
        "restarts the kubelet",
    ),
    ("E59", "is down: none of its 4", "is down: none of its 5", "zone a is down: none of its 4 machines"),
    (
        "E59",
        "every machine in zone a are absent as not-ready",
        "every machine are absent as not-ready",
        "workers-11 counts as present",
    ),
];

/// A copy of a scenario that claims the contrary fails at that line, with what was so instead.
#[test]
fn a_contrary_claim_fails_with_its_line_and_what_was_so_instead() {
    let mut wrong = Vec::new();
    for &(number, from, to, instead) in CONTRARY {
        let good = text(number);
        assert!(good.contains(from), "{number}: {from}");
        let line = good[..good.find(from).unwrap()].lines().count().max(1);
        let line = if good[..good.find(from).unwrap()].ends_with('\n') { line + 1 } else { line };
        let contrary = played(&good.replacen(from, to, 1));
        let failed: Vec<_> =
            contrary.expected.iter().filter(|expected| matches!(expected.ended, Ended::Failed(..))).collect();
        let fits = |ended: &Ended| matches!(ended, Ended::Failed(_, why) if why.contains(instead));
        if contrary.holds() || failed.len() != 1 || failed[0].line != line || !fits(&failed[0].ended) {
            wrong.push(format!("{number} {from:?} ─▶ {to:?}, line {line}: {failed:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The page of a scenario that does not hold shows the line, the claim, when it was plain, and what was so instead.
#[test]
fn the_page_of_a_failure_can_be_read() {
    let contrary = text("A1").replace("never   a call", "by 20m  a reboot");
    let scenario = parse(&contrary).unwrap();
    let page = transcript(&scenario, Some(&play(&scenario).unwrap()));
    assert!(page.contains("  ✗ line 11: by 20m a reboot\n      instead, at 0:20:00: none\n"), "{page}");
    assert!(page.contains("A1 does not hold: 4 of 5 expectations"), "{page}");
}
