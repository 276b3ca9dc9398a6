//! Files that cannot be played are refused: the line, the reason, and what to write instead.

use reveille_sim::scenario::{parse, play};

const GOOD: &str = "\
scenario T1 A machine hangs
given
  pool workers of 3 machines in zones a, b
when
  at 5m  the kubelet of workers-1 hangs
then
  by 10m  workers-1 is absent as not-ready
";

fn refusal(text: &str) -> (usize, String) {
    match parse(text) {
        Err(refusal) => (refusal.line, refusal.why),
        Ok(scenario) => match play(&scenario) {
            Err(refusal) => (refusal.line, refusal.why),
            Ok(_) => panic!("it is not refused:\n{text}"),
        },
    }
}

#[test]
fn the_file_that_the_others_are_made_from_is_good() {
    assert!(play(&parse(GOOD).unwrap()).unwrap().holds());
}

// tidy: long because it is one table: every way in which a file can be wrong.
/// Each row: what is put in place of what in the good file, the line that is named, and a part of the reason.
const REFUSED: &[(&str, &str, usize, &str)] = &[
    ("scenario T1 A machine hangs\n", "", 1, "begins with `scenario NUMBER TITLE`"),
    ("scenario T1 A", "scenario T-1 A", 1, "`T-1` is no number"),
    ("scenario T1 A machine hangs", "scenario T1", 1, "scenario NUMBER TITLE"),
    ("given\n", "scenario T2 Another\ngiven\n", 2, "one file holds one scenario"),
    ("given\n", "sauce unknown\ngiven\n", 2, "this is no header; there are:"),
    ("given\n", "", 2, "below given, when or then"),
    ("then\n", "when\n", 6, "the order is given, when, then"),
    ("  at 5m  the", "at 5m  the", 5, "statements are indented"),
    ("of 3 machines", "of three machines", 3, "`three` is no number"),
    ("pool workers of", "pool Workers of", 3, "small letters, digits and dashes"),
    ("zones a, b", "zones a, B", 3, "`B` is no name"),
    ("when\n", "  pool workers of 2 machines\nwhen\n", 4, "there is a pool `workers` already"),
    ("when\n", "  deadline joint 5m\nwhen\n", 4, "one of: joined, built, deleted"),
    ("when\n", "  deadline joined 5\nwhen\n", 4, "`5` is no time; write for instance 90s"),
    ("when\n", "  repair reboot maybe\nwhen\n", 4, "one of: act, propose, off"),
    ("when\n", "  repair magic act\nwhen\n", 4, "`magic` is no remedy"),
    ("when\n", "  repair access act in pool workers\nwhen\n", 4, "of the whole roster; leave the pool out"),
    ("when\n", "  service user ccm must hold the roles a and a\nwhen\n", 4, "`a` is written twice"),
    ("when\n", "  service user ccm must hold the role a b\nwhen\n", 4, "`a b` is no role"),
    (
        "when\n",
        "  service user ccm must hold the role a\n  service user ccm must hold the role b\nwhen\n",
        5,
        "there is a service user `ccm` already",
    ),
    (
        "the kubelet of workers-1 hangs",
        "service user ccm loses its role a",
        5,
        "there is no service user `ccm`; write `service user ccm must hold the role a` under given",
    ),
    ("when\n", "  limit freeze-above 0%\nwhen\n", 4, "write 1% to 100%"),
    ("when\n", "  limit freeze-above 101%\nwhen\n", 4, "write 1% to 100%"),
    ("when\n", "  limit at-once 0\nwhen\n", 4, "write `repair everything off`"),
    ("when\n", "  limit at-twice 2\nwhen\n", 4, "one of: at-once, per-hour"),
    ("when\n", "  timing settle 0s\nwhen\n", 4, "write at least 1s"),
    ("when\n", "  deleting takes 8m to 4m\nwhen\n", 4, "the shorter time comes first"),
    ("when\n", "  pod routs lie on a router\nwhen\n", 4, "the nearest is: pod routes lie on a router"),
    (
        "when\n",
        "  pool workers keeps every machine that failed for 4h, 0 at a time\nwhen\n",
        4,
        "leave the statement out",
    ),
    ("when\n", "  agent setting failures 1\nwhen\n", 4, "agent setting failures is 1; write 2 to 100"),
    (
        "when\n",
        "  agent setting peer-timout 3s\nwhen\n",
        4,
        "`peer-timout` is no time of an agent; one of: check-every",
    ),
    ("when\n", "  agent setting watchdog-timeout 5s\nwhen\n", 4, "write at least 10 s"),
    (
        "when\n",
        "  workers-1 has the credentials of an earlier join: they smell\nwhen\n",
        4,
        "nothing that old credentials can be; one of: their date has passed",
    ),
    ("when\n", "  roster spec.pools[x].min: 2\nwhen\n", 4, "`spec.pools[x].min` is no field"),
    ("when\n", "  roster spec.pools[7].min: 2\nwhen\n", 8, "spec.pools[7].min: there are 1 items"),
    ("when\n", "  the roster lacks spec.cluster\nwhen\n", 8, "spec.cluster: it is not there anyway"),
    (
        "the kubelet of workers-1 hangs",
        "ada annotates the node of workers-1: reveille.dev/pause true",
        5,
        "must stand in quotes",
    ),
    ("at 5m  the", "in 5m  the", 5, "begins with its time: write `at TIME"),
    (
        "the kubelet of workers-1 hangs",
        "the kubelet of workers-1 sleeps",
        5,
        "nearest is: the kubelet of {machines}",
    ),
    (
        "the kubelet of workers-1 hangs",
        "the kubelet of gpu-1 hangs",
        5,
        "no pool `gpu` for `gpu-1`; the file has workers",
    ),
    ("the kubelet of workers-1 hangs", "the kubelet of workers hangs", 5, "for instance workers-1"),
    (
        "the kubelet of workers-1 hangs",
        "the kubelet of workers-9 hangs",
        5,
        "there is no workers-9 at that time; there are workers-1",
    ),
    ("the kubelet of workers-1 hangs", "the kubelet of workers-3..1 hangs", 5, "ends before it begins"),
    (
        "the kubelet of workers-1 hangs",
        "zone c is cut off for 5m",
        5,
        "there is no zone `c`; the file has a, b",
    ),
    (
        "the kubelet of workers-1 hangs",
        "workers-4 starts, and it is tired",
        5,
        "nothing that can be wrong with a machine; one of:",
    ),
    ("the kubelet of workers-1 hangs", "workers-1 starts", 5, "a machine starts once"),
    ("the kubelet of workers-1 hangs", "ada pauses the roster: lunch", 5, "must stand in quotes"),
    ("at 5m  the", "at 5m, every 1m  the", 5, "`every` needs several machines by name"),
    ("at 5m  the", "at 5m, every 0s, 3 times  the", 5, "not zero"),
    ("at 5m  the kubelet of workers-1 hangs", "at 5m  the cloud answers 200 for 5m", 5, "one of: 429; 503"),
    ("then\n", "  ends at 8m\nthen\n", 8, "the scenario ends at 0:08:00, before this"),
    ("then\n", "  ends at 4m\nthen\n", 5, "the scenario ends at 0:04:00, before this"),
    ("then\n", "  ends at 20m\n  ends at 30m\nthen\n", 7, "it ends twice"),
    ("by 10m  ", "before 10m  ", 7, "begins with its time: `by 20m`"),
    ("by 10m  ", "from 10m to 5m  ", 7, "the earlier time comes first"),
    ("by 10m  ", "until 10m  ", 7, "`until` is followed by never or always"),
    ("as not-ready", "as not-reedy", 7, "did you mean not-ready?"),
    ("workers-1 is absent as not-ready", "workers-1 is away", 7, "the nearest is:"),
    ("workers-1 is absent as not-ready", "no calamity", 7, "cannot be counted; one of: call"),
    (
        "workers-1 is absent as not-ready",
        "the cause of workers-1 is kubelet-silly",
        7,
        "did you mean kubelet-silent?",
    ),
    ("workers-1 is absent as not-ready", "workers-1 stopped at stage coach", 7, "one of: provision, network"),
    (
        "workers-1 is absent as not-ready",
        "a not-ready incident is closed as done",
        7,
        "one of: mended, recovered",
    ),
    ("workers-1 is absent as not-ready", "the agent of workers-1 says: hello", 7, "must stand in quotes"),
    ("workers-1 is absent as not-ready", "workers-1 is held back: zone", 7, "must stand in quotes"),
    (
        "workers-1 is absent as not-ready",
        "a second play is the same, byte for byte",
        7,
        "write `at the end` before it",
    ),
    ("  by 10m  workers-1 is absent as not-ready\n", "", 6, "nothing is expected, so it could not fail"),
    ("  pool workers of 3 machines in zones a, b\n", "", 4, "no pool `workers`"),
];

#[test]
fn a_file_that_cannot_be_played_is_refused_with_line_and_reason() {
    let mut wrong = Vec::new();
    for &(from, to, line, why) in REFUSED {
        assert!(GOOD.contains(from), "{from}");
        let (at, reason) = refusal(&GOOD.replacen(from, to, 1));
        if !reason.contains(why) || at != line {
            wrong.push(format!("{from:?} ─▶ {to:?}: line {at}: {reason}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_refusal_shows_the_line_as_it_stands() {
    let refusal = parse(&GOOD.replace("hangs\nthen", "hungs\nthen")).unwrap_err().to_string();
    assert!(refusal.starts_with("line 5: "), "{refusal}");
    assert!(refusal.ends_with("\n  5 | at 5m  the kubelet of workers-1 hungs"), "{refusal}");
}

#[test]
fn nothing_that_is_written_makes_the_reader_panic() {
    for text in [
        "",
        "\n\n",
        "scenario",
        "scenario X",
        "given\n  pool",
        "\u{feff}scenario A1 b",
        "# only a comment",
        "  pool",
    ] {
        assert!(parse(text).is_err(), "{text:?}");
    }
    // Every prefix of a good file, and every file with one character changed.
    for end in GOOD.char_indices().map(|(at, _)| at) {
        drop(parse(&GOOD[..end]));
        for odd in ["\"", "[", "{", "…", "0", "-", "..", ","] {
            drop(parse(&format!("{}{odd}{}", &GOOD[..end], &GOOD[end + 1..])));
        }
    }
}
