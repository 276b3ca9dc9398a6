//! Secrets of tables that commands print, in frames, with bars and aligned; and what beside them stays.

use crate::attacked::masked;
use crate::attacked_again::stay;
use crate::xml::all_hidden;

#[test]
fn secret_in_a_cell_does_not_survive() {
    all_hidden(&[
        "| password | ~ |",
        "|password|~|",
        "+----------+-------+\n| Field    | Value |\n+----------+-------+\n| id       | 7     |\n| password | ~     |\n+----------+-------+",
        "| secret      | ~                |\n| unrestricted | False           |",
        "| secret | aaaaaaaaaaaa |\n|        | ~ |",
        "| admin pass | ~ |",
        "| user | password |\n|------|----------|\n| bob  | ~ |",
        "+------+----------+------+\n| user | password | host |\n+------+----------+------+\n| bob  | ~ | %    |\n| amy  | x1y2z3 | %    |\n+------+----------+------+",
        "| id | name | API Key | ttl |\n|:---|:----:|---:|---|\n| 1 | a | ~ | 2h |",
        " user | password\n------+----------\n bob  | ~\n(1 row)",
        " usename |               passwd                | valuntil\n---------+-------------------------------------+----------\n bob     | ~ |",
        "user | password\n-----+----------\nbob  | ~",
        "-[ RECORD 1 ]---\nuser     | bob\npassword | ~",
        "NAME    TOKEN           TTL\nbuild   ~    23h",
        "NAME      API KEY         TTL    STATUS\nbuild     ~    23h    active\ndeploy    ~    1h     active",
        "TOKEN           TTL   EXPIRES                USAGES\n~    23h   2026-11-28T06:00:00Z   authentication,signing",
        "Key         Value\n---         -----\nusername    bob\npassword    ~",
        "====== Data ======\nKey              Value\n---              -----\ndb password      ~",
        "Name     Password        Role\n-----    ------------    ----\nbob      ~    admin",
        "user\tpassword\thost\nbob\t~\t%",
        "┌──────┬──────────┐\n│ user │ password │\n├──────┼──────────┤\n│ bob  │ ~ │\n└──────┴──────────┘",
    ]);
}

#[test]
fn table_without_a_secret_stays() {
    stay(&[
        "TOKEN                     TTL   EXPIRES                USAGES                   DESCRIPTION   EXTRA GROUPS\nabcdef.[masked]   23h   2026-11-28T06:00:00Z   authentication,signing   <none>        system:bootstrappers:kubeadm:default-node-token",
        "| password_policy | strict |",
        "| Name | State | Id |\n| password | up | 1 |",
        "+---+---+---+\n| Name | State | Id |\n+---+---+---+\n| password | up | 1 |\n+---+---+---+",
        "| user | password |\n| a | b |",
        "| Variable_name | Value |\n+---------------+-------+\n| validate_password.policy | MEDIUM |\n| validate_password.length | 8 |\n| default_password_lifetime | 0 |\n| disconnect_on_expired_password | ON |",
        "NAME      SECRETS   AGE\ndefault   1         2d\nbuilder   2         5h",
        "NAME    READY   SECRET     AGE\nweb     True    web-tls    5d",
        "NAME                  TYPE                                  DATA   AGE\ndefault-token-x7k2p   kubernetes.io/service-account-token   3      2d",
        "NAME   STATUS   ROLES    AGE   VERSION\nw-1    Ready    <none>   5d    v1.31.2",
        "Data\n====\npassword:  12 bytes\ntoken:     1024 bytes",
        "    Environment:\n      DB_PASSWORD:  <set to the key 'password' in secret 'db'>  Optional: false",
        "Mountable secrets:   web-dockercfg",
        "web-1    | token refresh failed after 3 tries",
        "token-service-1  | started on port 8080",
        "password-reset_1 | listening",
        " setting             | value\n---------------------+---------------\n password_encryption | scram-sha-256",
        "| token is expired | retry |",
        "NAME    TOKEN ID   TTL\nbuild   abc123     23h",
        "ID   SECRET NAME   STATUS\n1    web-tls       active",
        "PID   COMMAND   TIME\n1     tokend    00:01",
        "Nov 26 06:00:00 w-3 kubelet[812]: I1126 06:00:00.000000     812 token_manager.go:121] \"Couldn't update token\"",
        "ci-info: | eth0 | True | 10.0.0.5 | 255.255.255.0 | global | fa:16:3e:00:00:01 |",
        "ci-info: +++++Authorized keys from /home/ubuntu/.ssh/authorized_keys for user ubuntu+++++\nci-info: +---------+-------------------------------------------------+---------+---------+\nci-info: | Keytype |              Fingerprint (sha256)               | Options | Comment |\nci-info: +---------+-------------------------------------------------+---------+---------+\nci-info: | ssh-rsa | 3d:1a:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff |    -    | a@b     |\nci-info: +---------+-------------------------------------------------+---------+---------+",
    ]);
}

#[test]
fn what_stands_around_a_cell_stays() {
    assert_eq!(
        masked(
            "NAME    TOKEN     TTL\nbuild   x7        2h\n        lemonade  3h\n\nNAME    READY\nw-1     True"
        ),
        "NAME    TOKEN     TTL\nbuild   [masked]        2h\n        [masked]  3h\n\nNAME    READY\nw-1     True"
    );
    assert_eq!(
        masked(" user | password\n------+----------\n bob  | x7\n amy  | a|b\n(2 rows)\n\n a | b"),
        " user | password\n------+----------\n bob  | [masked]\n amy  | [masked]\n(2 rows)\n\n a | b"
    );
    let below = masked("NAME    TOKEN   TTL\nbuild   x7      2h\nI1126 06:00:00.000000 kubelet started");
    assert!(below.ends_with("[masked]      2h\nI1126 06:00:00.000000 kubelet started"), "{below}");
}
