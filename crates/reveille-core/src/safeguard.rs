//! The safeguards by name: everything that stands between a wrong reading and a lost machine.
//!
//! ```text
//!  a decision ─▶ if stands(Safeguard::PoolMinimum) && … ─▶ held          shipped: `stands` is the constant true
//!                      ▲
//!  feature "sabotage": without(&[Safeguard::PoolMinimum], || …)          test builds: safeguards are switched off
//! ```
//!
//! A safeguard that no test misses is no safeguard. So each safeguard has a name here, and a test build can switch some off
//! for the length of a closure, on its own thread. The simulator must then see a machine harmed or an invariant broken. A shipped
//! build is made without the feature: it has no switch and checks nothing, because the compiler sees `true`.
//!
//! It does not hold the safeguards themselves. Those stand where they are needed, and ask here by name.

crate::safeguards! {
    /// a reading that is too old is not believed
    Freshness = "freshness",
    /// an empty or shrunken list of servers is not believed
    ShrunkenServers = "shrunken-servers",
    /// a list of ports that lost those of many machines is not believed
    LostPorts = "lost-ports",
    /// an empty or shrunken list of nodes is not believed
    ShrunkenNodes = "shrunken-nodes",
    /// a list of nodes is judged again when a cloud is listed after it
    JudgedAgain = "judged-again",
    /// the first list of nodes after a restart is held against the machines that joined before
    RememberedNodes = "remembered-nodes",
    /// machines whose Nodes went missing together are left to a person
    LostTogether = "lost-together",
    /// another cluster behind the kubeconfig is refused
    SameCluster = "same-cluster",
    /// a machine whose lease is silent is away, whatever its Node is said to be
    SilentLeases = "silent-leases",
    /// while the lists of leases that come cannot be true, nothing that can hurt is done
    BelievedLeases = "believed-leases",
    /// a machine whose log names a deletion that no list has shown is read before anything is done to it
    UnlistedDeletions = "unlisted-deletions",
    /// where no Node exists yet, nothing that can hurt is done
    SomeNode = "some-node",
    /// an instance is gone when its id was denied, not when a list lacks it
    DeniedById = "denied-by-id",
    /// one denial of an id is not enough
    SecondDenial = "second-denial",
    /// that a cloud denies an instance that is minutes old is not believed
    YoungDenial = "young-denial",
    /// after silence, a pause of ours or a jump of the clock, sight and timers start again
    UnbrokenSight = "unbroken-sight",
    /// who joined once is remembered over a restart
    JoinedMemory = "joined-memory",
    /// a drain that was not seen is known by what was told of a Node of the machine's name
    DrainsUnseen = "drains-unseen",
    /// a machine whose Node went in a gap is held, however short the gap was
    ShortGaps = "short-gaps",
    /// a machine is held that may have been drained when no process was looking
    LivesAccounted = "lives-accounted",
    /// what protects a machine is remembered while it is out of sight
    OutOfSight = "out-of-sight",
    /// an absence is waited for before anything is done
    Patience = "patience",
    /// a person's request for a repair counts once
    RequestOnce = "request-once",
    /// the cause that explains others is mended first
    RootFirst = "root-first",
    /// what failed is tried again later and later
    Backoff = "backoff",
    /// while a cloud is doubted, full listings are asked for later and later
    AsksInFullSeldom = "asks-in-full-seldom",
    /// what did not help so many times is not tried again
    TriesEnd = "tries-end",
    /// console and action log are read before anything that can hurt
    EvidenceFirst = "evidence-first",
    /// what a service user holds is read afresh before it is given more
    RolesAfresh = "roles-afresh",
    /// a repair step that cannot help is not taken
    NoUse = "no-use",
    /// an intent is durable before it is called
    IntentFirst = "intent-first",
    /// what stands against an act is asked again when the ledger has it
    AskedAgain = "asked-again",
    /// the action log is read again when it is older than half a minute before what can hurt
    LogAgain = "log-again",
    /// a fresh read, not an accepted call, tells that it worked
    FreshRead = "fresh-read",
    /// an accepted act whose effect cannot be seen gets its whole patience before the next step
    UnseenPatience = "unseen-patience",
    /// a machine that another client brought up a moment ago has the time of a boot
    JustReleased = "just-released",
    /// a machine that came right by itself gives no credit to an act
    OwnProof = "own-proof",
    /// who joins is the successor of no replacement that began later
    LaterReplacement = "later-replacement",
    /// a credential that lacks a right ends no repair, and is no reason for a harsher one
    RightsReturn = "rights-return",
    /// an intent without an outcome is read back after a restart, not forgotten
    Unfinished = "unfinished",
    /// only routes inside our pod ranges are touched
    OwnRoutes = "own-routes",
    /// a next hop on a port that belongs to no instance is in use
    PortsOfOthers = "ports-of-others",
    /// a next hop is dead when two listings agree
    SecondListing = "second-listing",
    /// other groups of a port are kept
    KeptGroups = "kept-groups",
    /// the roster's modes: off and propose
    Modes = "modes",
    /// a dry run does nothing
    DryRun = "dry-run",
    /// pauses of people
    Pauses = "pauses",
    /// a pause holds whom it named, however that one is called by now
    PausedByName = "paused-by-name",
    /// sight that has only just returned is no ground for acts that can hurt
    Settling = "settling",
    /// a machine whose node is Ready, or whose lease is fresh, is not hurt
    Alive = "alive",
    /// a machine whose agent is heard is not hurt
    AgentHeard = "agent-heard",
    /// what its agent leaves alone is not rejoined, and what is to go by its word is not touched
    AgentHolds = "agent-holds",
    /// agents that all lost the API server speak of it, not of their machines
    AgentsLost = "agents-lost",
    /// an agent is asked one thing at a time
    OneAsk = "one-ask",
    /// only an identity, never a name, tells whose agent is asked
    AgentIdentity = "agent-identity",
    /// only what is proved to be one pool's is touched
    Ownership = "ownership",
    /// an act on an instance needs the pool's marks on the instance at that moment
    OwnedAtTheAct = "owned-at-the-act",
    /// what two claim is left alone
    Contested = "contested",
    /// a machine whose identity a node carries that is not linked to it is left alone
    SharedIdentity = "shared-identity",
    /// an address that only its port tells is the machine's as well
    PortAddresses = "port-addresses",
    /// while the machine that joined as a Node is there, what its kubelet writes there gives no other machine a past
    OwnHome = "own-home",
    /// a dark zone is left alone
    ZoneDark = "zone-dark",
    /// a fleet of which most is dark, or does not answer yet, is left alone
    FleetDark = "fleet-dark",
    /// too many machines with a problem freeze a pool, or the roster
    Breaker = "breaker",
    /// machines that recover together after a freeze are left alone until no more of them do
    FreezeSettles = "freeze-settles",
    /// a pool that is rolled is left alone
    Rollout = "rollout",
    /// while it is open why a machine went from the list, no other of its pool is touched
    OpenFate = "open-fate",
    /// where another client is at work the controller waits
    OtherActors = "other-actors",
    /// a machine whose node was cordoned until it was deleted is left alone
    Drained = "drained",
    /// what a group of the cloud keeps is not stopped, and ended only through it
    GroupKeeps = "group-keeps",
    /// what its group takes away, brings in or has put apart is left to it
    GroupHands = "group-hands",
    /// what a person took out of its group is left to that person
    TakenOut = "taken-out",
    /// what its provider takes back is left to it
    TakenBack = "taken-back",
    /// a machine whose disks are lost when it stops is not stopped
    DisksKept = "disks-kept",
    /// a locked instance is left alone
    Locked = "locked",
    /// so many repairs at once
    AtOnce = "at-once",
    /// so many repairs an hour
    PerHour = "per-hour",
    /// one probe of a domain until it is proved
    ProbeWidth = "probe-width",
    /// a domain cools down after a failed probe
    CoolDown = "cool-down",
    /// a machine that is kept for a look is not deleted
    Kept = "kept",
    /// a pool keeps its minimum
    PoolMinimum = "pool-minimum",
    /// a machine that is described as ended, or proved gone, does not count for its pool's minimum
    GoingUncounted = "going-uncounted",
    /// replacing stops when replacements do not help, or the same fault returns
    Futile = "futile",
    /// no machine is replaced whose successor would get no route
    RouterRoom = "router-room",
    /// a machine is newborn when it was seen building or made since the last listing, not when it was marked
    BornInSight = "born-in-sight",
    /// a machine that may have joined before our watch is not replaced
    HistoryKnown = "history-known",
    /// a repair that waits for a slot, or for its domain, goes on when there is room
    FreedRoom = "freed-room",
    /// nothing new is decided while the ledger cannot be written
    LedgerWritable = "ledger-writable",
    /// who does not lead does nothing
    Leadership = "leadership",
}
