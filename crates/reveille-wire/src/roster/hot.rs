//! `spec.hot`: the kinds of the cluster that `run` watches all the time for objects that are written in a loop.
//! `spec.rancher.hot` has the same for the cluster that Rancher itself runs in.
//!
//! Without `spec.hot`, the controller watches Node objects, through the watch that it has anyway. Without
//! `spec.rancher.hot`, it watches nothing in Rancher's cluster. Only the API server can tell whether it has a kind.

use super::HotRef;
use super::complaint::{Complaints, quote};
use super::section::{Field, Section};
use super::shape::Shape;

/// Reads either section.
pub(super) fn hot(field: Option<Field<'_>>, shape: Shape, complaints: &mut Complaints) -> Option<HotRef> {
    let section = Section::open(&field?, shape, complaints)?;
    let list = section.take("kinds").map(|field| field.items("kinds", complaints)).unwrap_or_default();
    let kinds = list.iter().filter_map(|field| kind(field, complaints)).collect();
    let mut rate = |name: &'static str| section.take(name).and_then(|field| field.rate(complaints));
    let (sustained_per_1000_s, at_once_per_1000_s) = (rate("sustained"), rate("atOnce"));
    if let (Some(sustained), Some(at_once), Some(field)) =
        (sustained_per_1000_s, at_once_per_1000_s, section.take("sustained"))
        && sustained > at_once
    {
        complaints.add(&field.spot, "it is more than atOnce", "what may last is the lower of the two");
    }
    Some(HotRef { kinds, sustained_per_1000_s, at_once_per_1000_s })
}

fn kind(field: &Field<'_>, complaints: &mut Complaints) -> Option<String> {
    let text = field.text("a kind", complaints)?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-');
    if text.chars().all(is_name) {
        return Some(text.to_owned());
    }
    let wrong = format!("{} is no kind as the API server names it", quote(text));
    complaints.add(&field.spot, wrong, "write PLURAL or PLURAL.GROUP, as in nodes.management.cattle.io");
    None
}

impl Field<'_> {
    /// A number of writes per second, as thousandths.
    fn rate(&self, complaints: &mut Complaints) -> Option<u32> {
        let text = self.text("a number of writes in a second", complaints)?;
        let rate = text.parse::<f64>().ok().filter(|rate| (0.001..=10_000.0).contains(rate));
        let Some(rate) = rate else {
            let wrong = format!("{} is no number from 0.001 to 10000", quote(text));
            complaints.add(&self.spot, wrong, "write writes of one object in a second, as in 0.2");
            return None;
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is between 1 and 10,000,000"
        )]
        let thousandths = (rate * 1000.0).round() as u32;
        Some(thousandths)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::roster::{CheckedRoster, HotRef, Origin, Refusal, read};

    fn with(hot: &str) -> Result<CheckedRoster, Refusal> {
        let file = format!(
            "{{apiVersion: reveille.dev/v1alpha1, kind: Roster, metadata: {{name: prod}}, spec: {{\
             clouds: [{{name: os, openstack: {{cloud: prod}}}}], \
             pools: [{{name: w, cloud: os, owned: {{tag: k8s-cluster=prod}}}}]{hot}}}}}"
        );
        read(&file, &Origin { name: "r", dir: Path::new(""), home: None }).map(|mut all| all.remove(0))
    }

    #[test]
    fn kinds_and_rates_are_read_and_may_be_left_out() {
        assert_eq!(with("").unwrap().hot, None);
        let all = HotRef { kinds: vec![], sustained_per_1000_s: None, at_once_per_1000_s: None };
        assert_eq!(with(", hot: {}").unwrap().hot, Some(all.clone()));
        let some = HotRef {
            kinds: vec!["nodes.management.cattle.io".to_owned(), "configmaps".to_owned()],
            sustained_per_1000_s: Some(500),
            at_once_per_1000_s: Some(3_000),
        };
        let text = "hot: {kinds: [nodes.management.cattle.io, configmaps], sustained: 0.5, atOnce: 3}";
        assert_eq!(with(&format!(", {text}")).unwrap().hot, Some(some.clone()));
        let both = with(&format!(", hot: {{}}, rancher: {{cluster: shop, {text}}}")).unwrap();
        assert_eq!(both.hot, Some(all), "the roster's cluster and Rancher's are two");
        assert_eq!(both.rancher.unwrap().hot, Some(some));
        assert_eq!(with(", rancher: {cluster: shop}").unwrap().rancher.unwrap().hot, None);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_at_its_place() {
        for (hot, field, wrong) in [
            (", hot: {kinds: nodes}", "spec.hot.kinds", "list"),
            (", hot: {kinds: [Nodes]}", "spec.hot.kinds[0]", "no kind"),
            (", hot: {sustained: much}", "spec.hot.sustained", "no number"),
            (", hot: {atOnce: 0}", "spec.hot.atOnce", "no number"),
            (", hot: {sustained: 3, atOnce: 2}", "spec.hot.sustained", "more than atOnce"),
            (", hot: {kind: [nodes]}", "spec.hot.kind", "no such field"),
            (", rancher: {cluster: shop, hot: true}", "spec.rancher.hot", "where a map belongs"),
            (", rancher: {cluster: shop, hot: {kinds: [Nodes]}}", "spec.rancher.hot.kinds[0]", "no kind"),
            (
                ", rancher: {cluster: shop, hot: {sustained: 3, atOnce: 2}}",
                "spec.rancher.hot.sustained",
                "more than atOnce",
            ),
            (
                ", rancher: {cluster: shop, hot: {kubeconfig: k}}",
                "spec.rancher.hot.kubeconfig",
                "no such field",
            ),
        ] {
            let refusal = with(hot).unwrap_err();
            let told = refusal.complaints.iter().find(|complaint| complaint.field == field);
            assert!(told.is_some_and(|told| told.wrong.contains(wrong)), "{hot}: {refusal}");
        }
    }
}
