//! The safeguards of a repair by name, so that a test can take one away and see which check notices.
//!
//! As in the core ([`reveille_core::safeguard`]), the shipped program has no switch, and `stands` is the constant true. The
//! code asks for a safeguard by name where it needs the safeguard. `docs/internals/rancher-simulated.md` lists what each
//! means, and which check noticed its absence.

reveille_core::safeguards! {
    /// people said hands off
    HandsOff = "hands-off",
    /// a cluster that is busy, or is none that Rancher runs, is left alone
    Quiet = "quiet",
    /// records that were not all read prove nothing
    RecordsRead = "records-read",
    /// no complete snapshot of etcd within a day
    Snapshot = "snapshot",
    /// none of P1 to P4 holds
    Faulty = "faulty",
    /// a record with other addresses is another machine's
    SameMachine = "same-machine",
    /// the last machine of a role that is well stays
    LastOfRole = "last-of-role",
    /// etcd's members were not read
    MembersRead = "members-read",
    /// another member of etcd is not well, or too few would be left
    MembersWell = "members-well",
    /// it cannot be told which member of etcd is its own
    MemberKnown = "member-known",
    /// pods on it were not read
    PodsRead = "pods-read",
    /// pods with data there alone stay, unless a person lets them go
    LocalData = "local-data",
    /// pods that no controller would make again stay
    Unmanaged = "unmanaged",
    /// who can be taken out is not edited
    SaferWay = "safer-way",
    /// a machine with several records is not edited
    OneRecord = "one-record",
    /// a record on its way out is not edited
    NotLeaving = "not-leaving",
    /// a record that has one of both parts is not edited
    NeitherPart = "neither-part",
    /// the record asked for another name than the Node has
    HostName = "host-name",
    /// Node and record disagree about roles
    Roles = "roles",
    /// it cannot be told which address is meant
    OneAddress = "one-address",
    /// the next change of the cluster would do more than add this host
    AppliedHosts = "applied-hosts",
    /// it would change who is a member of etcd
    Membership = "membership",
    /// two looks agree before the first step
    SecondLook = "second-look",
    /// it is the Node that the repair was begun for
    SameNode = "same-node",
    /// copies are kept before anything is changed
    CopyFirst = "copy-first",
    /// a Node is cordoned before its pods go
    CordonFirst = "cordon-first",
    /// pods go before their Node
    DrainFirst = "drain-first",
    /// etcd's member goes before its Node
    MemberFirst = "member-first",
    /// two looks agree that its member of etcd stays away before its Node goes
    MemberStaysAway = "member-stays-away",
    /// a Node that came back stops it
    NodeBack = "node-back",
    /// a cluster that lists no Node at all proves of none that it is gone
    NodesListed = "nodes-listed",
    /// two looks agree that the Node stays away before a record goes
    NodeStaysAway = "node-stays-away",
    /// a cluster that became busy is waited for, also after the Node went
    QuietAfter = "quiet-after",
    /// two looks agree that no record is left
    RecordsStayAway = "records-stay-away",
    /// a record that another client deletes, or that has another beside it, is not mended
    StillOne = "still-one",
    /// two looks agree that an edit holds
    Holds = "holds",
    /// an edit is given its time before it is taken back
    PlanTime = "plan-time",
    /// only what we wrote is taken back
    OwnEdit = "own-edit",
    /// what another client took out is not written again
    NotAgain = "not-again",
    /// an intent is durable before it is carried out
    IntentFirst = "intent-first",
    /// what was refused is not tried again
    RefusedEnds = "refused-ends",
    /// what did not help three times is not tried again
    TriesEnd = "tries-end",
}
