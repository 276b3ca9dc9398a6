//! Texts, and the facts that they show.

use super::*;

fn facts(text: &str) -> Vec<Fact> {
    let mut listing = Listing::new();
    for (number, line) in (1..).zip(text.lines()) {
        listing.read(number, line);
    }
    listing.end().into_iter().map(|shown| shown.fact).collect()
}

#[test]
fn tables_show_facts() {
    for (text, expected) in [
        ("NAME STATUS ROLES AGE VERSION\nw-1 Ready <none> 1d v1.30.1\n", vec![Fact::AllNodesReady]),
        (
            "NAME STATUS ROLES AGE VERSION\nw-1 Ready <none> 1d v1\nw-2 NotReady <none> 1d v1\n",
            vec![Fact::SomeNodeNotReady],
        ),
        ("NAME AGE REQUESTOR CONDITION\ncsr-1 16h system:node:cp-1 Pending\n", vec![Fact::CsrPendingNode]),
        (
            "NAME AGE SIGNERNAME REQUESTOR CONDITION\ncsr-1 1m kubernetes.io/kube-apiserver-client-kubelet system:bootstrap:a Denied\n",
            vec![Fact::CsrRefusedClient],
        ),
        (
            "NAME AGE SIGNERNAME REQUESTOR CONDITION\ncsr-1 1m kubernetes.io/kube-apiserver-client-kubelet system:bootstrap:a Approved\n",
            vec![Fact::CsrUnsignedClient],
        ),
        (
            "NAME AGE SIGNERNAME REQUESTOR CONDITION\ncsr-1 1m kubernetes.io/kubelet-serving system:node:a Denied\n",
            vec![],
        ),
        ("NAME AGE REQUESTOR CONDITION\n\ncsr-1 16h system:node:cp-1 Pending\n", vec![]),
        (
            "$ juju ssh worker/0 hostname\nguest\n$ juju ssh worker/1 hostname\nguest\n",
            vec![Fact::SameHostName],
        ),
        ("$ ssh w-1 hostname\nw-1\n$ ssh w-2 hostname\nw-2\n$ ssh w-1 hostname\nw-1\n", vec![]),
        ("n1 | CHANGED | rc=0 >>\nactive\nn2 | CHANGED | rc=0 >>\nactive\n", vec![]),
        (
            "NAME STATUS ROLES AGE VERSION\ncp Ready master 1d v1.16.15\nw-1 NotReady <none> 1d v1.18.20\n",
            vec![Fact::SomeNodeNotReady, Fact::KubeletNewer],
        ),
        (
            "NAME STATUS ROLES AGE VERSION\ncp Ready control-plane,etcd 1d v1.31.2+k3s1\nw-1 Ready <none> 1d v1.30.9+k3s1\n",
            vec![Fact::AllNodesReady],
        ),
        ("2: eth0: mtu 1500 q\n1: lo: mtu 65536 q\n3: wg0: mtu 1420 q\n", vec![Fact::MtuDiffers]),
        (
            "NAME     MACHINE-ID\nw-1 9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c\nw-2 9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c\n",
            vec![Fact::SameMachineId],
        ),
        (
            "n1 | SUCCESS | rc=0 >>\n9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c\n\nn2 | CHANGED | rc=0 >>\n9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c\n$ cat /etc/machine-id",
            vec![Fact::SameMachineId],
        ),
        (
            "core@w-1:~$ cat /etc/machine-id\n9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c\n[root@w-2 ~]# cat /etc/machine-id\n9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c",
            vec![Fact::SameMachineId],
        ),
        (
            "$ ssh -q core@w-1 cat /etc/machine-id\n9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c\n$ ssh w-1 cat /etc/machine-id\n9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c",
            vec![],
        ),
        (
            "NAME     MACHINE-ID\nw-1 9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c\nw-1 9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c\n",
            vec![],
        ),
    ] {
        assert_eq!(facts(text), expected, "{text}");
    }
}
