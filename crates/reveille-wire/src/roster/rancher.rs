//! `spec.rancher`: the Rancher that has records of the roster's cluster, and which repairs of them are allowed.
//!
//! A kubeconfig says where Rancher is, as for `spec.cluster`. Only this section allows repairs, and the default is to
//! propose. A roster that names etcd has to name each member, because a member that the repair does not ask counts as
//! unhealthy. `spec.rancher.hot` has the same form as `spec.hot`.

use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;

use super::complaint::{Complaints, quote};
use super::hot::hot;
use super::section::{Field, Section};
use super::shape::{RANCHER, RANCHER_ETCD, RANCHER_HOT, RANCHER_REPAIR};
use super::{EtcdRef, Origin, RancherRef};

/// Two reads that are closer together count as one.
const LOOKS_APART_MIN: Span = Span::from_s(3);
/// Rancher plans a host within seconds, where the cluster's update is short.
const PLAN_WITHIN_MIN: Span = Span::from_s(20);

/// Reads `spec.rancher`.
pub(super) fn rancher(
    field: Option<Field<'_>>,
    origin: &Origin<'_>,
    complaints: &mut Complaints,
) -> Option<RancherRef> {
    let section = Section::open(&field?, RANCHER, complaints)?;
    let cluster = section.require("cluster", "write the cluster's id or name in Rancher", complaints);
    let cluster = cluster.and_then(|field| field.text("a cluster of Rancher", complaints)).map(str::to_owned);
    let kubeconfig =
        section.take("kubeconfig").and_then(|field| field.path(origin.dir, origin.home, complaints));
    let context =
        section.take("context").and_then(|field| field.text("a context of the kubeconfig", complaints));
    let hot = hot(section.take("hot"), RANCHER_HOT, complaints);
    let etcd = section.take("etcd").map(|field| etcd(&field, origin, complaints));
    let repair = section.take("repair").and_then(|field| Section::open(&field, RANCHER_REPAIR, complaints));
    let mut mode = |name: &'static str| {
        let field = repair.as_ref().and_then(|section| section.take(name));
        field.and_then(|field| field.mode(complaints)).unwrap_or(Mode::Propose)
    };
    let (evict, mend) = (mode("evict"), mode("mend"));
    let mut span = |name, least, why| section.take(name).and_then(|field| field.span(least, why, complaints));
    let looks_apart =
        span("looksApart", LOOKS_APART_MIN, "Rancher's syncer needs a moment to answer a change");
    let plan_within =
        span("planWithin", PLAN_WITHIN_MIN, "an edit would be taken back before Rancher has planned it");
    let etcd = match etcd {
        None => None,
        Some(read) => Some(read?),
    };
    let context = context.map(str::to_owned);
    let cluster = cluster?;
    Some(RancherRef { kubeconfig, context, cluster, hot, etcd, evict, mend, looks_apart, plan_within })
}

fn etcd(field: &Field<'_>, origin: &Origin<'_>, complaints: &mut Complaints) -> Option<EtcdRef> {
    let section = Section::open(field, RANCHER_ETCD, complaints)?;
    let list = section.require("endpoints", "list each member, as in [https://10.0.0.1:2379]", complaints);
    let endpoints = list.map(|field| endpoints(&field, complaints));
    let mut file = |name: &'static str, instead: &str| {
        let field = section.require(name, instead, complaints)?;
        field.path(origin.dir, origin.home, complaints)
    };
    let ca = file("ca", "write the file with the authority of etcd's certificates");
    let cert = file("cert", "write the file with a certificate that etcd lets in");
    let key = file("key", "write the file with its key");
    Some(EtcdRef { endpoints: endpoints?, ca: ca?, cert: cert?, key: key? })
}

fn endpoints(field: &Field<'_>, complaints: &mut Complaints) -> Vec<String> {
    let mut endpoints: Vec<String> = Vec::new();
    let before = complaints.count();
    for item in field.items("endpoints", complaints) {
        let Some(text) = item.text("an address such as https://10.0.0.1:2379", complaints) else { continue };
        let rest = text.strip_prefix("https://").map(|rest| rest.trim_end_matches('/'));
        let is_plain = |rest: &str| !rest.is_empty() && !rest.contains(['/', '@', ' ', '?', '#']);
        let Some(rest) = rest.filter(|rest| is_plain(rest)) else {
            let wrong = format!("{} is not the address of a member of etcd", quote(text));
            complaints.add(&item.spot, wrong, "write https://HOST:PORT, without a user, a path or a query");
            continue;
        };
        let endpoint = format!("https://{rest}");
        if endpoints.contains(&endpoint) {
            complaints.add(&item.spot, "this member is listed twice", "keep one");
            continue;
        }
        endpoints.push(endpoint);
    }
    if endpoints.is_empty() && complaints.count() == before {
        complaints.add(&field.spot, "no member is listed", "list each, or leave etcd out");
    }
    endpoints
}
