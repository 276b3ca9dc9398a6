//! `spec.rancher`: the Rancher that has records of the roster's cluster, and how far they may be mended.
//!
//! Where it is stands in a kubeconfig, as for `spec.cluster`. What may be done is said here and nowhere else, and is to propose
//! unless somebody writes otherwise.

use reveille_core::model::roster::Mode;

use super::complaint::Complaints;
use super::section::{Field, Section};
use super::shape::{RANCHER, RANCHER_REPAIR};
use super::{Origin, RancherRef};

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
    Some(RancherRef { kubeconfig, context: context.map(str::to_owned), cluster: cluster?, evict, mend })
}
