//! What agent and server promise each other, as tables of messages.

use serde_json::json;

use super::frame::{Ended, Hello, Order, StageReport, StageStep, Token};
use super::identity::Part;
use super::reason::Answered;
use super::text::Sentence;
use super::*;

fn identity(machine: &str, boot: &str) -> Identity {
    Identity { machine_id: Some(Word::from(machine)), boot_id: Word::from(boot), ..Identity::default() }
}

fn reasons() -> Vec<Reason> {
    let facts = Box::new(Facts::default());
    vec![
        Reason::TokenUnknown,
        Reason::TokenExpired,
        Reason::TokenUsedUp,
        Reason::TokenVoid,
        Reason::TokenRevoked,
        Reason::TokenForeign { bound_to: "machine".into() },
        Reason::IdentityConflict { part: Part::Key, facts },
        Reason::IdentityIncomplete { part: Part::SystemUuid },
        Reason::NodeRemoved,
        Reason::MachineRemoved,
        Reason::MachineForgotten,
        Reason::CertificateUnknown,
        Reason::CertificateExpired,
        Reason::CertificateNotYetValid,
        Reason::CertificateRevoked,
        Reason::WaitRole { missing: List::first([Role::ControlPlane]) },
        Reason::WaitPlan { why: "none is written".into() },
        Reason::WaitToken { why: "the API server is asked".into() },
        Reason::TooMany { of: "frames".into() },
        Reason::BadFrame { place: "line 1".into(), what: "no".into() },
        Reason::Version { spoken: List::first([1]) },
        Reason::UpgradeRequired,
        Reason::NoSuchPath,
        Reason::Replaced,
        Reason::Unavailable,
        Reason::CaPinMismatch { presented: List::first([Word::from("sha256:00")]) },
        Reason::NotReveille(Answered::default()),
        Reason::ProxyAnswered(Answered::default()),
    ]
}

#[test]
fn every_reason_has_code_sentence_and_advice_and_round_trips() {
    for reason in reasons() {
        let refused = Refused::from(reason.clone());
        assert!(!refused.says.is_empty() && !refused.next.is_empty(), "{}", reason.code());
        let value = serde_json::to_value(&refused).unwrap();
        assert_eq!(value["code"], reason.code());
        assert_eq!(serde_json::from_value::<Refused>(value).unwrap(), refused);
        assert_eq!(reason.is_wait(), reason.code().starts_with("WAIT_"));
        assert!(!reason.is_wait() || reason.retry_after_s().is_some(), "a wait says when to ask again");
    }
}

#[test]
fn frames_are_written_as_the_protocol_says() {
    let hello = Hello {
        protocol: 1,
        identity: identity("m1", "b1"),
        facts: Facts::default(),
        plan: None,
        joined: false,
    };
    let hello = Numbered { n: 1, frame: AgentFrame::Hello(hello) };
    let value = serde_json::to_value(&hello).unwrap();
    assert_eq!((&value["n"], &value["t"]), (&json!(1), &json!("hello")));
    assert_eq!(value["identity"], json!({"machine_id": "m1", "boot_id": "b1"}));
    let report = json!({"n": 2, "t": "stage", "seq": 7, "stage": "kubelet-start", "step": "entered"});
    let read: Numbered<AgentFrame> = serde_json::from_value(report).unwrap();
    let AgentFrame::Stage(StageReport { stage, step, attempts: 0, error: None, .. }) = read.frame else {
        panic!("{read:?}")
    };
    assert_eq!((stage.0.name(), step), ("kubelet-start", StageStep::Entered));
    let order = ServerFrame::Do(Order { id: 4, verb: Verb::RestartKubelet, within_s: 60 });
    assert_eq!(
        serde_json::to_value(&order).unwrap(),
        json!({"t": "do", "id": 4, "verb": "restart-kubelet", "within_s": 60})
    );
    assert_eq!(serde_json::to_value(Ended::Declined).unwrap(), "declined");
}

#[test]
fn a_frame_of_a_newer_version_is_passed_over_and_a_field_too() {
    let newer = br#"{"n":3,"t":"sang","what":[1,2]}"#;
    let read: Numbered<AgentFrame> = super::read(newer, 1000).unwrap();
    assert_eq!((read.n, read.frame), (3, AgentFrame::Unknown));
    let newer = br#"{"n":3,"t":"ack","up_to":5,"warmly":true}"#;
    let read: Numbered<ServerFrame> = super::read(newer, 1000).unwrap();
    assert_eq!(read.frame, ServerFrame::Ack { up_to: 5 });
    let newer = br#"{"code":"WAIT_MOON","says":"no moon","next":"wait","retry_after_s":9,"phase":3}"#;
    let read: Refused = super::read(newer, 1000).unwrap();
    assert_eq!((read.reason, read.says.as_str(), read.retry_after_s), (Reason::Other, "no moon", Some(9)));
}

#[test]
fn what_would_be_half_obeyed_is_refused_instead() {
    let step =
        json!({"version": 1, "checksum": "", "roles": [], "steps": [{"step": "run", "command": "sh"}]});
    assert!(serde_json::from_value::<Plan>(step).is_err());
    let field = json!({"step": "restart-kubelet", "then": "sh"});
    assert!(serde_json::from_value::<Step>(field).is_err());
    let smuggled =
        json!({"protocol": 1, "identity": {"boot_id": "b"}, "csr": "", "roles": ["control-plane"]});
    assert!(serde_json::from_value::<Enrol>(smuggled).is_err());
}

#[test]
fn too_long_input_is_refused_without_quoting_it() {
    let canary = "kuckuck";
    let long = format!(r#"{{"boot_id":"{}"}}"#, canary.repeat(100));
    let cases = [
        long.clone(),
        format!(r#"{{"boot_id":{{"{canary}":1}}}}"#),
        format!(r#"{{"boot_id":"b","{canary}":"\"{canary}` \"{canary}"}}"#),
        format!(r#"{{"boot_id":"b","machine_id":[{canary}]}}"#),
        format!("{canary}{{"),
    ];
    for case in cases {
        let error = super::read::<Identity>(case.as_bytes(), 4096).unwrap_err();
        assert!(!error.to_string().contains(canary), "{error}");
    }
    let error = super::read::<Identity>(long.as_bytes(), 10).unwrap_err();
    assert_eq!(error.place.as_str(), "length");
    let many = serde_json::to_string(&vec!["a"; 9]).unwrap();
    assert!(super::read::<List<Word, 8>>(many.as_bytes(), 4096).is_err());
    let missing = super::read::<Identity>(b"{}", 4096).unwrap_err();
    assert!(missing.what.contains("boot_id"), "{missing}");
}

#[test]
fn frame_with_over_16384_values_is_refused_before_any_is_built() {
    let frame = |behind: &str| format!("{{\"n\":1,\"t\":\"ack\",\"up_to\":1,\"x\":{behind}}}");
    let read =
        |text: &str| super::read::<Numbered<ServerFrame>>(text.as_bytes(), super::SERVER_FRAME_BYTES_MAX);
    for part in ["0,", "[],", "{\"\":0},", "\"\\\"\","] {
        let text = frame(&format!("[{}0]", part.repeat(20_000)));
        assert_eq!(read(&text).unwrap_err().what.as_str(), "more than 16384 values", "{part}");
        assert!(read(&frame(&format!("[{}0]", part.repeat(8_000)))).is_ok(), "{part}");
    }
    let file = "a,[{\\\",".repeat(50_000);
    assert!(read(&frame(&format!("\"{file}\""))).is_ok(), "a text is one value");
    let peer = "{\"node_name\":\"w\",\"addresses\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"],\"zone\":\"z\",\"answers_at\":\"a\"}";
    let peers = vec![peer; 256].join(",");
    assert!(read(&format!("{{\"n\":1,\"t\":\"peers\",\"peers\":[{peers}]}}")).is_ok());
}

#[test]
fn texts_keep_no_control_characters_and_a_tail_keeps_the_end() {
    assert_eq!(Sentence::cut("a\u{1b}[2J\nb").as_str(), "a\u{fffd}[2J\nb");
    assert_eq!(Text::<4>::tail("häöü").as_str(), "öü");
    assert_eq!(Text::<4>::cut("häöü").as_str(), "hä");
    assert!(super::read::<Text<3>>(b"\"\\u0001b\"", 100).is_err(), "it would have been cut");
}

/// A name with a line break once forged a line of our log, and one with a direction mark showed another name in `status`.
#[test]
fn a_word_is_one_line_and_nothing_in_it_turns_or_hides_text() {
    assert_eq!(Word::cut("w-1\n2026 INFO forged").as_str(), "w-1\u{fffd}2026 INFO forged");
    let read = super::read::<Word>("\"w-\u{202e}1\\u200b\\t\"".as_bytes(), 100).unwrap();
    assert_eq!(read.as_str(), "w-\u{fffd}1\u{fffd}\u{fffd}");
}

#[test]
fn token_is_hidden_in_debug_and_written_to_the_wire() {
    let token = ServerFrame::Token(Token { token: Secret::new("abcdef.0123"), ttl_s: 900 });
    assert!(!format!("{token:?}").contains("abcdef"));
    assert_eq!(serde_json::to_value(&token).unwrap()["token"], "abcdef.0123");
}

#[test]
fn two_plans_never_write_the_same_bytes() {
    let file = |path: &str, content: &str| Step::WriteFile {
        path: path.into(),
        mode: "0600".into(),
        owner: None,
        content: content.into(),
        secret: false,
    };
    let plan = |steps: Vec<Step>| Plan {
        version: 3,
        checksum: Word::default(),
        roles: List::first([Role::Worker]),
        steps: List::first(steps),
    };
    let plans = [
        plan(vec![file("/a", "b")]),
        plan(vec![file("/a", "b\nrestart-kubelet 0\n\n")]),
        plan(vec![file("/a", "b"), Step::RestartKubelet {}]),
        plan(vec![file("/a", ""), file("/b", "")]),
        plan(vec![]),
    ];
    for (index, one) in plans.iter().enumerate() {
        assert_eq!(
            one.canonical(),
            Plan { version: 9, ..one.clone() }.canonical(),
            "the version is not counted"
        );
        for other in &plans[index + 1..] {
            assert_ne!(one.canonical(), other.canonical());
        }
    }
}

#[test]
fn a_plan_travels_whole_or_not_at_all() {
    let order = JoinOrder {
        distribution: Distribution::Kubeadm,
        server: "10.0.0.1:6443".into(),
        ca_pins: List::first([Word::from("sha256:00")]),
        node_name: "w-1".into(),
        labels: [(Word::from("a"), Word::from("b"))].into(),
        taints: List::default(),
        config: None,
    };
    let plan = Plan {
        version: 3,
        checksum: "sha256:11".into(),
        roles: List::first([Role::Worker]),
        steps: List::first([Step::Join(order), Step::RestartKubelet {}]),
    };
    let frame = Numbered { n: 2, frame: ServerFrame::Plan(plan) };
    let mut value = serde_json::to_value(&frame).unwrap();
    assert_eq!(serde_json::from_value::<Numbered<ServerFrame>>(value.clone()).unwrap(), frame);
    value["steps"][0]["sudo"] = json!(true);
    assert!(serde_json::from_value::<Numbered<ServerFrame>>(value).is_err());
}

#[test]
fn one_id_in_another_spelling_is_the_same_id() {
    let uuid = "4c4c4544-0042-4b10-8058-c4c04f595601";
    let (upper, digits, braces) = (uuid.to_uppercase(), uuid.replace('-', ""), format!("{{{uuid}}}"));
    for same in [uuid, upper.as_str(), digits.as_str(), braces.as_str(), &format!(" {uuid}  ")] {
        assert_eq!(identity::normal(same), digits, "{same:?}");
        let of = |word: &str| Identity { system_uuid: Some(word.into()), ..identity("m", "b") };
        assert_eq!(of(uuid).differs(&of(same)), None, "{same:?}");
    }
    let others = ["i-0abc", "I-0ABC", "w-1.example", "w1.example", "4c4c4544-0042-4b10-8058-c4c04f5956"];
    let normal: Vec<String> = others.into_iter().map(identity::normal).collect();
    assert_eq!(normal, ["i-0abc", "i-0abc", "w-1.example", "w1.example", others[4]]);
}

#[test]
fn placeholder_system_uuid_identifies_no_machine() {
    let of = |uuid: &str| Identity { system_uuid: Some(uuid.into()), ..identity("m", "b") };
    let junk = of("00000000-0000-0000-0000-000000000000");
    assert_eq!(junk.part(Part::SystemUuid), None);
    let (one, two) = (of("4c4c4544-0001"), of("4c4c4544-0002"));
    assert_eq!((one.shares(&two), one.differs(&two)), (Some(Part::MachineId), Some(Part::SystemUuid)));
    assert_eq!(junk.differs(&one), None, "what says nothing does not differ");
}
