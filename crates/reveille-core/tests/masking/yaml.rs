//! Secrets in scalars of YAML that go on over lines, and what beside them stays.

use crate::attacked::masked;
use crate::attacked_again::stay;
use crate::xml::all_hidden;

#[test]
fn secret_in_a_scalar_does_not_survive() {
    all_hidden(&[
        "password: abc\n  ~",
        "db:\n  password: abc def\n    ghi\n    ~\n  port: 5432",
        "token: aaaaaaaa\n  ~",
        "- password: abc\n    ~",
        "password: >-\n  ~",
        "password: |+\n  ~",
        "password: |2-\n    ~",
        "password: >1\n ~",
        "password: |-2  # of the database\n    ~",
        "password: \"abc\\\n  ~\"",
        "password: \"abc\n  def\n  ~\"\nuser: bob",
        "password: 'abc\n  ~'",
        "  token: \"aaaa\\\n    bbbb\\\n    ~\"\n  ttl: 24h",
        "password: &p !!str ~",
        "password: !!str &p ~",
        "password: &p\n  ~",
        "password: &p |\n  ~",
        "password: !!binary |\n  ~",
        "password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  ~",
        "auth: {\n  user: bob,\n  password: ~\n}",
        "auth: { user: bob, password:\n  ~ }",
        "auth: {user: bob, password:\n  \"~\", port: 1}",
        "{\"user\": \"bob\", \"password\":\n\"~\"}",
        "- name: DB_PASSWORD\n  value: ~",
        "- name: DB_PASSWORD\n  # of the database\n  value: ~",
        "- name: DB_PASSWORD\n  value: \"abc\\\n    ~\"",
        "- name: DB_PASSWORD\n  value: >-\n    ~",
        "- name: DB_PASSWORD\n  value:\n    ~",
        "- name: DB_PASSWORD\n  value: abc\n    ~",
        "? password\n: ~",
        "? \"db password\"\n: ~",
        "db:\n  ? password\n  : |\n    ~\n  ? user\n  : bob",
        "? password\n:\n  ~",
    ]);
}

#[test]
fn scalar_without_a_secret_stays() {
    stay(&[
        "password:\n  minLength: 8\n  policy: strict",
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db\n      key: password",
        "env:\n- name: DB_PASSWORD\n  valueFrom: {secretKeyRef: {name: db, key: password}}\n- name: A\n  value: kept",
        "? port\n: 5432",
        "? passwordPolicy\n: strict",
        "- name: DB_PASSWORD\n- name: A\n  value: kept",
        "token: null\n  next: line",
        "error: invalid token: not found\n  at main.go:12",
        "password: expired\n  see the log",
        "Failed to refresh token: unauthorized\n    retrying in 5s",
        "auth: { user: bob, port:\n  5432 }",
        "{\"level\":\"error\",\"msg\":\"no token\",\n\"node\":\"w-1\"}",
        "token:\n  ttl: 24h",
        "password: \"\"\n  \nuser: bob",
        "password: \"\"\nuser: bob",
    ]);
}

#[test]
fn what_stands_around_a_scalar_stays() {
    assert_eq!(
        masked("db:\n  password: one\n    two\n  port: 5432"),
        "db:\n  password: [masked]\n    [masked]\n  port: 5432"
    );
    assert_eq!(
        masked("password: \"one\\\n  two\" # kept\nport: 5432"),
        "password: [masked]\n  [masked] # kept\nport: 5432"
    );
    assert_eq!(
        masked("auth: { user: bob, password:\n  x7, port: 1 }\nnext: 1"),
        "auth: { user: bob, password:\n  [masked], port: 1 }\nnext: 1"
    );
    assert_eq!(masked("? password\n: x7\n? port\n: 1"), "? password\n: [masked]\n? port\n: 1");
    assert_eq!(
        masked("password: \"never closed\n  I1126 06:00:00 kubelet started"),
        "password: [masked]\n  I1126 06:00:00 kubelet started"
    );
}
