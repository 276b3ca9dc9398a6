//! What the project's network objects lack, as far as the objects themselves say it.
//!
//! ```text
//!  groups, pod ranges ──────────▶ rules::missing_rules      ─▶ rules to add
//!  ports, wanted groups ────────▶ membership::membership    ─▶ one need per port
//!  ports, node, pod ranges ─────▶ pairs::missing_pairs      ─▶ pairs to add
//!  router, nodes, live addresses ▶ routes::report           ─▶ stale, missing, orphaned, undecided, outlook
//! ```
//!
//! Each function looks at one reading and answers with what is missing and whether it can be mended at all. Nothing here
//! knows whether a reading may be believed (`observe`), whether a repair is allowed (`plan`), or how to write it (`act`).

pub mod membership;
pub mod pairs;
pub mod routes;
pub mod rules;

use ipnet::IpNet;

/// True when the networks of `held`, taken together, hold all of `wanted`. Two halves hold their whole.
fn together_cover(held: &[IpNet], wanted: &IpNet) -> bool {
    let held: Vec<IpNet> = held.iter().map(IpNet::trunc).collect();
    IpNet::aggregate(&held).iter().any(|net| net.contains(wanted))
}

/// The ranges as networks, sorted, without those that lie inside another: what is left needs no second entry.
fn outermost(ranges: &[IpNet]) -> Vec<IpNet> {
    let mut nets: Vec<IpNet> = ranges.iter().map(IpNet::trunc).collect();
    nets.sort_unstable();
    nets.dedup();
    let all = nets.clone();
    nets.retain(|net| !all.iter().any(|other| other != net && other.contains(net)));
    nets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(text: &[&str]) -> Vec<IpNet> {
        text.iter().map(|net| net.parse().unwrap()).collect()
    }

    #[test]
    fn halves_cover_their_whole_and_neighbours_do_not() {
        for (held, wanted, covered) in [
            (&["10.0.0.0/17", "10.0.128.0/17"][..], "10.0.0.0/16", true),
            (&["10.0.0.0/17", "10.0.128.0/18"], "10.0.0.0/16", false),
            (&["10.1.0.0/17", "10.0.128.0/17"], "10.0.0.0/16", false),
            (&["0.0.0.0/0"], "10.0.0.0/16", true),
            (&["0.0.0.0/0"], "fd00::/48", false),
            (&["10.0.0.9/16"], "10.0.0.0/16", true),
            (&[], "10.0.0.0/16", false),
        ] {
            assert_eq!(
                together_cover(&nets(held), &wanted.parse().unwrap()),
                covered,
                "{held:?} for {wanted}"
            );
        }
    }

    #[test]
    fn ranges_inside_others_need_no_entry_of_their_own() {
        let kept = outermost(&nets(&["10.0.1.0/24", "fd00::/48", "10.0.0.0/16", "10.0.0.5/16"]));
        assert_eq!(kept, nets(&["10.0.0.0/16", "fd00::/48"]));
    }
}
