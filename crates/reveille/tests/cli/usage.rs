//! Tests wrong usage, rosters with mistakes, pauses, completions and manual pages.

use crate::bench::{Bench, files_below};

#[test]
fn help_is_an_answer_and_nonsense_is_wrong_usage() {
    let bench = Bench::new();
    let table: [(&[&str], i32, &str); 6] = [
        (&["--help"], 0, "First steps"),
        (&["--version"], 0, "reveille "),
        (&["status", "--help"], 0, "reveille status -o json"),
        (&[], 64, "Usage"),
        (&["statu"], 64, "status"),
        (&["pause"], 64, "--reason"),
    ];
    for (args, code, part) in table {
        let ran = bench.run(args);
        assert_eq!(ran.code, code, "{args:?}\n{}{}", ran.out, ran.err);
        assert!((ran.out.clone() + &ran.err).contains(part), "{args:?}\n{}{}", ran.out, ran.err);
        assert_eq!(
            ran.out.is_empty(),
            code != 0,
            "{args:?}: help goes to standard output, complaints do not"
        );
    }
}

#[test]
fn command_with_one_form_of_output_refuses_another() {
    let bench = Bench::new();
    let commands: [&[&str]; 7] = [
        &["demo"],
        &["rbac"],
        &["access-rules"],
        &["init"],
        &["pause", "--reason", "an upgrade"],
        &["man"],
        &["completions", "bash"],
    ];
    for command in commands {
        let ran = bench.run(&[command, &["-o", "json"]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (64, ""), "{command:?}: {}", ran.err);
        assert!(ran.err.contains("prints text only"), "{command:?}: {}", ran.err);
    }
}

#[test]
fn cause_is_explained_to_programs_too() {
    let bench = Bench::new();
    for (code, name, of_engine) in
        [("RV117", "bootstrap-token-invalid", false), ("RV104", "security-group-missing", true)]
    {
        let ran = bench.run(&["explain", name, "-o", "json"]);
        let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(said["code"], code);
        assert_eq!(said["name"], name);
        assert!(said["commands"][0].as_str().is_some_and(|command| !command.is_empty()), "{said}");
        assert_eq!(said["restsOn"].is_string(), of_engine, "{said}");
        assert_eq!(said["signs"].is_array(), !of_engine, "{said}");
    }
}

#[test]
fn stage_is_explained_with_what_stops_machines_there() {
    let bench = Bench::new();
    let ran = bench.run(&["explain", "CNI"]);
    assert!(ran.out.contains("Stage 12 of 14. Its pod network starts."), "{}", ran.out);
    let ran = bench.run(&["explain", "cni", "-o", "yaml"]);
    assert!(ran.out.contains("number: 12") && ran.out.contains("RV"), "{}", ran.out);
    let ran = bench.run(&["explain", "nonsense"]);
    assert!(ran.code == 64 && ran.err.contains("a stage (cni)"), "{}", ran.err);
}

#[test]
fn a_missing_roster_tells_how_to_get_one() {
    let bench = Bench::new();
    let ran = bench.run(&["status", "--roster", "none.yaml"]);
    assert_eq!(ran.code, 64);
    assert!(ran.err.contains("none.yaml") && ran.err.contains("reveille init"), "{}", ran.err);
}

#[test]
fn every_mistake_of_a_roster_is_named_with_its_place() {
    let bench = Bench::new();
    bench.write(
        "bad.yaml",
        "apiVersion: reveille.dev/v1alpha1\nkind: Roster\nmetadata: {name: bad}\nspec:\n  clouds: []\n  pools:\n    \
         - name: workers\n      cloud: os\n      owned: {tag: k8s-cluster=bad}\n      repair: {reboot: perhaps}\n",
    );
    for command in ["run", "status", "plan", "incidents"] {
        let ran = bench.run(&[command, "--roster", "bad.yaml"]);
        assert_eq!(ran.code, 64, "{command}: {}", ran.err);
        for part in ["bad.yaml:5:", "bad.yaml:10:", "spec.pools[0].repair.reboot"] {
            assert!(ran.err.contains(part), "{command}: {part}\n{}", ran.err);
        }
    }
    assert_eq!(files_below(&bench.path(".local")), Vec::<String>::new(), "nothing was begun");
}

#[test]
fn two_rosters_of_one_name_are_refused() {
    let bench = Bench::new();
    let ran = bench.run(&["status", "--roster", "reveille.yaml", "--roster", "reveille.yaml"]);
    assert_eq!(ran.code, 64);
    assert!(ran.err.contains("two rosters are called lost"), "{}", ran.err);
}

#[test]
fn a_pause_is_set_shown_and_taken_back() {
    let bench = Bench::new();
    let pauses = || files_below(&bench.path(".local/state/reveille/lost/pauses"));
    let alone = bench.run(&["pause", "--reason", "maintenance"]);
    assert_eq!((alone.code, alone.out.contains("nothing is paused yet")), (2, true), "{}", alone.out);
    assert_eq!(bench.run(&["pause", "pool/workers", "--reason", "drivers"]).code, 2);
    assert_eq!(bench.run(&["pause", "w-1", "--reason", "Ann looks at it"]).code, 2);
    assert_eq!(pauses(), ["machine-w-1.json", "pool-workers.json", "roster.json"]);
    let plan = bench.run(&["plan"]);
    for part in ["paused: roster, by ann: maintenance", "paused: pool/workers", "paused: machine/w-1"] {
        assert!(plan.out.contains(part), "{part}\n{}", plan.out);
    }
    let none = bench.run(&["pause", "pool/gpu", "--reason", "x"]);
    assert_eq!((none.code, none.err.contains("it has: workers")), (64, true), "{}", none.err);
    assert_eq!(bench.run(&["pause", "--reason", "  "]).code, 64, "a reason says something");
    assert_eq!(bench.run(&["resume", "w-1"]).code, 0);
    let again = bench.run(&["resume", "w-1"]);
    assert_eq!((again.code, again.err.contains("pool workers")), (64, true), "{}", again.err);
    assert_eq!(bench.run(&["resume", "--all"]).code, 0);
    assert_eq!(pauses(), Vec::<String>::new());
}

#[test]
fn init_never_overwrites_and_names_what_to_choose_from() {
    let bench = Bench::new();
    let before = std::fs::read(bench.path("reveille.yaml")).unwrap();
    let ran = bench.run(&["init", "--kubeconfig", "kubeconfig", "--clouds-file", "clouds.yaml"]);
    assert_eq!((ran.code, ran.err.contains("not overwritten")), (64, true), "{}", ran.err);
    assert_eq!(std::fs::read(bench.path("reveille.yaml")).unwrap(), before);
    let table: [(&[&str], i32, &str); 3] = [
        (&["--context", "nope"], 64, "It has: nowhere"),
        (&["--cloud", "nope"], 64, "it has: nowhere"),
        (&[], 2, "127.0.0.1"),
    ];
    for (more, code, part) in table {
        let mut args =
            vec!["init", "--file", "new.yaml", "--kubeconfig", "kubeconfig", "--clouds-file", "clouds.yaml"];
        args.extend(more);
        let ran = bench.run(&args);
        assert_eq!((ran.code, ran.err.contains(part)), (code, true), "{more:?}: {}", ran.err);
    }
    assert!(!bench.path("new.yaml").exists());
}

#[test]
fn completions_and_manual_pages_are_printed() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = bench.run(&["completions", shell]);
        assert_eq!(ran.code, 0);
        assert!(ran.out.contains("incidents"), "{shell}: a command is completed");
    }
    assert!(bench.run(&["man"]).out.contains(".TH reveille 1"));
    let ran = bench.run(&["man", "--dir", "man"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let pages = files_below(&bench.path("man"));
    for page in ["reveille.1", "reveille-status.1", "reveille-why.1", "reveille-run.1"] {
        assert!(pages.iter().any(|name| name == page), "{page} of {pages:?}");
    }
}

#[test]
fn access_rules_are_what_keystone_takes_and_to_look_is_less() {
    let bench = Bench::new();
    let rules = |words: &[&str]| -> Vec<serde_json::Value> {
        let ran = bench.run(words);
        assert_eq!(ran.code, 0, "{}", ran.err);
        serde_json::from_str(&ran.out).unwrap()
    };
    let (all, look) = (rules(&["access-rules"]), rules(&["access-rules", "--look-only"]));
    let roles = rules(&["access-rules", "--roles"]);
    assert!(look.len() < all.len() && all.len() < roles.len());
    let deletes = |rules: &[serde_json::Value]| rules.iter().any(|rule| rule["method"] == "DELETE");
    assert!(deletes(&all) && !deletes(&look));
    for rule in &roles {
        let fields: Vec<&str> = rule.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["method", "path", "service"]);
    }
}

#[test]
fn printed_rights_equal_those_that_the_adapters_list() {
    use reveille_kube::rbac::{Wanted, grants, manifest};
    let rights = |account, namespace, wanted| manifest(&grants(&wanted), account, namespace).unwrap();
    let bench = Bench::new();
    let table: [(&[&str], String); 2] = [
        (&["rbac"], rights("reveille", "reveille", Wanted::default())),
        (
            &["rbac", "--service-account", "watch", "--namespace", "ops", "--cleanup"],
            rights("watch", "ops", Wanted { cleanup: true, ..Wanted::default() }),
        ),
    ];
    for (args, expected) in table {
        let ran = bench.run(args);
        assert_eq!((ran.code, ran.out), (0, expected), "{args:?}: {}", ran.err);
    }
    let ran = bench.run(&["rbac", "--namespace", "a}, kind: b"]);
    assert_eq!((ran.code, ran.out.as_str()), (64, ""), "{}", ran.err);
    let ran = bench.run(&["iam", "--region", "eu-central-1", "--cluster", "prod"]);
    assert_eq!((ran.code, ran.out), (0, reveille_ec2::policy("eu-central-1", "prod") + "\n"), "{}", ran.err);
    let ran = bench.run(&["iam", "--region", "eu-central-1", "--cluster", "a\": \"b"]);
    assert_eq!((ran.code, ran.out.as_str()), (64, ""), "{}", ran.err);
}
