//! `spec.rancher`: the Rancher that has records of the roster's cluster, and how far they may be mended.
//!
//! Where it is stands in a kubeconfig, as for `spec.cluster`. What may be done is said here and nowhere else, and is to propose
//! unless somebody writes otherwise.

use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;

use super::complaint::Complaints;
use super::section::{Field, Section};
use super::shape::{RANCHER, RANCHER_REPAIR};
use super::{Origin, RancherRef};

/// Two looks that are nearer to each other are one.
const LOOKS_APART_MIN: Span = Span::from_s(3);
/// A host is planned within seconds, where the cluster's update is short.
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
    let context = context.map(str::to_owned);
    Some(RancherRef { kubeconfig, context, cluster: cluster?, evict, mend, looks_apart, plan_within })
}
