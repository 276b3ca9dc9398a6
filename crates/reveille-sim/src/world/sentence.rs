//! Faults in words: what happened, as an observer in the world would tell it.

use std::fmt;

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::id::InstanceId;
use reveille_core::model::time::Span;

use super::fault::{CallLie, Fault, Refusal, Right, Shows};

impl Fault {
    /// What happened, as a sentence. `name` is what people call the machine.
    pub fn sentence(&self, name: &str) -> String {
        match self {
            Self::GroupLost { slips, .. } => {
                let again = if *slips { ", and something keeps taking it off" } else { "" };
                format!("the port of {name} loses its security group{again}")
            }
            Self::PairLost(_) => format!("the port of {name} no longer allows its pod range"),
            Self::SecondPort(_) => format!("{name} gets a second port, without the group"),
            Self::PortSecurityOff(_) => format!("port security of {name} is turned off"),
            Self::RulesWidened => "the group's pod rules become one wider rule".to_owned(),
            Self::GroupTwin => "a second group of the same name turns up".to_owned(),
            Self::Busy(_) => format!("an operator rebuilds {name}"),
            Self::Locked(_) => format!("an operator locks {name}"),
            Self::RulesLost => "the security group loses its pod rules".to_owned(),
            Self::DuplicateRoute(_) => {
                format!("a second route to the pods of {name} turns up, through a dead next hop")
            }
            Self::MissingRoute(_) => format!("the route to the pods of {name} is lost"),
            Self::ForeignRoutes(count) => format!("another cluster puts {count} routes on the router"),
            Self::RouteLimit(limit) => format!("the router takes no more than {limit} routes"),
            Self::RouteBroken(_) => format!("the pods of {name} cannot be reached"),
            Self::Tried { pool, serves, marked_after, keeps } => {
                let marks = marked_after.map_or_else(
                    || "with its marks".to_owned(),
                    |after| format!("without its marks, which come {after} after that"),
                );
                format!(
                    "a person makes a machine of pool {pool} {marks}, drains it in {serves} and keeps it for {keeps}"
                )
            }
            Self::Launch { pool, trouble } => match trouble {
                None => format!("pool {pool} grows by one machine"),
                Some(trouble) => format!("pool {pool} grows by one machine; {}", trouble.sentence()),
            },
            Self::BadImage(pool, Some(trouble)) => {
                format!("whatever pool {pool} makes from now on is broken: {}", trouble.sentence())
            }
            Self::BadImage(pool, None) => format!("pool {pool} makes good machines again"),
            Self::Rollout(pool) => format!("pool {pool} is rolled to another image"),
            Self::Breaks(_, trouble) => format!("{name}: {}", trouble.sentence()),
            Self::Errored(_) => format!("the cloud puts {name} into an error state"),
            Self::ShutOff(_) => format!("an operator shuts {name} off"),
            Self::StuckDeleting(_) => format!("{name} is deleted and does not go"),
            Self::ForeignDelete(_) => format!("another client deletes {name}"),
            Self::ScaledDown(_) => format!("the autoscaler takes {name} away"),
            Self::NodeDeletedByController(_) => {
                format!("the cloud controller takes {name} for gone and deletes its node")
            }
            Self::NodeDeletedByPerson(_) => format!("an operator deletes the node of {name}"),
            Self::ControllerDown(lasts) => format!("the cloud controller is down for {lasts}"),
            Self::NodeTwin(_) => format!("a second node names the instance of {name}"),
            Self::NameTwin(_) => format!("a second instance is called {name}"),
            Self::Unmarked(_) => format!("{name} loses its pool's mark"),
            Self::VipsAway(lasts) => format!("the ports of all VIPs are made again, and away for {lasts}"),
            Self::Marked(_) => format!("{name} gets its pool's mark back"),
            Self::MarkedTwice(_, pool) => format!("{name} gets the mark of pool {pool}, too"),
            Self::Cordoned(_) => format!("an operator cordons the node of {name}"),
            Self::Uncordoned(_) => format!("a client uncordons the node of {name}"),
            Self::ShowsIdentity { of, shows, lasts, .. } => shown(name, of, *shows, *lasts),
            Self::Drained(..) => format!("a person drains the node of {name}, and deletes it in two minutes"),
            Self::Remade(..) => format!("the owner of {name} deletes it and makes another of its name"),
            Self::ByHand(_, hand) => hand.sentence(name),
            Self::MarksAway(_, lasts) => format!("a person takes the marks off {name} for {lasts}"),
            Self::SaidStopped(_, lasts) => {
                format!("the cloud says for {lasts} that {name} is shut off, and it runs")
            }
            Self::ServersUnlisted { lasts, .. } => format!("the cloud lists no servers for {lasts}"),
            Self::AnotherProject(lasts) => format!("the credential leads into another project for {lasts}"),
            Self::SomeUnlisted { machines, lasts, .. } => {
                format!("the cloud's list lacks {} servers for {lasts}", machines.len())
            }
            Self::PortsUnlisted(lasts) => format!("the cloud lists no ports for {lasts}"),
            Self::CloudFails(kind, lasts) => format!("the cloud's API fails for {lasts} ({kind:?})"),
            Self::NodesUnlisted(lasts) => format!("the cluster lists no nodes for {lasts}"),
            Self::EtcdRestored(machines) => {
                format!("etcd is restored from a backup without the nodes of {} machines", machines.len())
            }
            Self::OtherCluster(lasts) => format!("another cluster answers for {lasts}"),
            Self::ApiSilent(lasts) => format!("the cluster's API is silent for {lasts}"),
            Self::LeasesFrozen(lasts) => format!("no lease is renewed for {lasts}"),
            Self::LeasesUnlisted(lasts) => format!("the list of leases is empty for {lasts}"),
            Self::ZoneDark(zone, lasts) => format!("zone {zone} is cut off for {lasts}"),
            Self::Call(CallLie::Ignored) => "the next call is accepted and does nothing".to_owned(),
            Self::Call(CallLie::Unanswered) => "the next call works and is not answered".to_owned(),
            Self::Call(CallLie::Fails { .. }) => "the next call fails".to_owned(),
            Self::Call(CallLie::Cut) => "the next nudge is cut in the middle".to_owned(),
            _ => self.later_sentence(name),
        }
    }

    fn later_sentence(&self, name: &str) -> String {
        match self {
            Self::Call(CallLie::TimesOut) => "the next call does nothing and is not answered".to_owned(),
            Self::Call(CallLie::FailsAndWorks) => "the next call works and is said to have failed".to_owned(),
            Self::Call(CallLie::Late(late)) => format!("the next call takes effect {late} later"),
            Self::Call(CallLie::Twice) => "the next call takes effect twice".to_owned(),
            Self::Call(CallLie::Overtaken) => "the next call is overtaken by the one after it".to_owned(),
            Self::Call(CallLie::Rescued) => {
                "the machine is put into a rescue just before the next call".to_owned()
            }
            Self::Call(CallLie::Unmarked) => {
                "the pool's mark is taken off just before the next call".to_owned()
            }
            Self::AnswersLate(lasts) => format!("answers come minutes late for {lasts}"),
            Self::AnswersTwice(lasts) => format!("answers come twice for {lasts}"),
            Self::PagesRepeat(lasts) => format!("the cloud's pages repeat for {lasts}"),
            Self::WatchLags(lasts) => format!("the watch of nodes lags for {lasts}"),
            Self::WatchGap(lasts) => format!("the watch of nodes loses what happens for {lasts}"),
            Self::NodeListStale(lasts) => format!("the cluster shows an old state for {lasts}"),
            Self::ApiDenied(lasts) => format!("the cluster's API refuses our credentials for {lasts}"),
            Self::NodeClock(_, ms) => format!("the clock of {name} is off by {} s", ms / 1000),
            Self::ApiClock(ms, lasts) => format!("the APIs' clocks are off by {} s for {lasts}", ms / 1000),
            Self::NodePaused(_, lasts) => format!("{name} stands still for {lasts}"),
            Self::ManySilent { share_pct, lasts, every } => {
                format!("{share_pct}% of the machines stand still for {lasts}, and go on one each {every}")
            }
            Self::RightsLost(Right::Every, lasts) => format!("for {lasts} a policy forbids us every change"),
            Self::RightsLost(Right::Reboot, lasts) => format!("for {lasts} a policy forbids us to reboot"),
            Self::WritesRefused(Refusal::Unavailable, lasts) => {
                format!("for {lasts} the cloud answers every change with 503")
            }
            Self::WritesRefused(Refusal::NodesKept, lasts) => {
                format!("for {lasts} a webhook refuses the deletion of Nodes")
            }
            Self::FleetDark(lasts) => format!("every zone is cut off for {lasts}"),
            Self::RoleLost(user, role) => format!("service user {user} loses its role {role}"),
            Self::RoleGiven(user, role) => format!("an operator gives service user {user} its role {role}"),
            Self::RolesUntold(kind, lasts) => {
                let how =
                    if *kind == ReadErrorKind::Forbidden { String::new() } else { format!(" ({kind:?})") };
                format!("for {lasts} Keystone does not say who holds which role{how}")
            }
            Self::RolesStale(lasts) => format!("for {lasts} Keystone tells of roles as they are now"),
            Self::RolesUngiven(lasts) => format!("for {lasts} Keystone lets no client like us give a role"),
            Self::HealthCheck(lasts) => format!("a health check deletes silent machines for {lasts}"),
            Self::Rebooted(_) => format!("a person reboots {name}"),
            Self::Rescued(_, lasts) => format!("an operator has {name} in a rescue for {lasts}"),
            Self::Poisoned(_) => format!("everything written about {name} is garbled"),
            _ => self.sentence_of_hosting(name),
        }
    }
}

impl Fault {
    fn sentence_of_hosting(&self, name: &str) -> String {
        match self {
            Self::HostImpaired(_) => format!("the host of {name} breaks"),
            Self::GuestImpaired(_) => format!("{name} hangs altogether"),
            Self::CheckWrong(_, lasts) => {
                format!("for {lasts} the provider's check of the host of {name} fails, and it is well")
            }
            Self::SpotTaken(_) => format!("the provider wants {name} back"),
            Self::Retires(_, after) => format!("the provider announces that it stops {name} in {after}"),
            Self::GroupReplaces(_) => format!("the group of {name} finds it unfit"),
            Self::PutApart(_, lasts) => format!("an operator takes {name} out of service for {lasts}"),
            Self::NotKnown(_, lasts) => format!("for {lasts} parts of the cloud do not know {name}"),
            Self::LaunchUnknown { pool, after, lasts, trouble } => {
                let wrong = trouble.map_or_else(String::new, |trouble| format!("; {}", trouble.sentence()));
                format!(
                    "pool {pool} grows by one machine, which from {after} on parts of the cloud do not know for {lasts}{wrong}"
                )
            }
            _ => self.name().to_owned(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.machine().map_or("-", InstanceId::as_str);
        write!(f, "{}: {}", self.name(), self.sentence(name))
    }
}

fn shown(name: &str, of: &InstanceId, shows: Shows, lasts: Span) -> String {
    let what = match shows {
        Shows::Uuid => "UUID",
        Shows::Addresses => "addresses",
        Shows::Both => "UUID and addresses",
    };
    format!("the kubelet of {name} shows the {what} of {of} for {lasts}")
}
