//! Rosters for scenarios: the commented template with a few values of one's own.
//!
//! A place in the template is `@name=value@` (with the value that stands unless another is set) or `@name@` (which must
//! be set). What comes out is checked by the program itself, and by a test here, so that the template cannot go stale.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

use crate::rig::Ec2Facts;

const TEMPLATE: &str = include_str!("../roster.yaml");
const POOLS_BEGIN: &str = "# each pool\n";
const POOLS_END: &str = "# end of pools\n";

/// A roster to be written.
#[derive(Clone, Debug)]
pub struct Roster {
    name: String,
    cluster: String,
    values: BTreeMap<String, String>,
    pools: Vec<(String, BTreeMap<String, String>)>,
}

impl Roster {
    /// A roster of that name, for machines whose tag names the same cluster.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), cluster: name.to_owned(), values: BTreeMap::new(), pools: Vec::new() }
    }

    /// For machines whose tag names another cluster than the roster does.
    #[must_use]
    pub fn of_cluster(mut self, cluster: &str) -> Self {
        cluster.clone_into(&mut self.cluster);
        self
    }

    /// Sets a place of the template, for all pools when it is a pool's.
    #[must_use]
    pub fn set(mut self, place: &str, value: &str) -> Self {
        self.values.insert(place.to_owned(), value.to_owned());
        self
    }

    /// Sets a place unless it was set.
    #[must_use]
    pub fn or_set(mut self, place: &str, value: &str) -> Self {
        self.values.entry(place.to_owned()).or_insert_with(|| value.to_owned());
        self
    }

    /// For instances of this EC2.
    #[must_use]
    pub fn on_ec2(self, facts: &Ec2Facts) -> Self {
        let Ec2Facts { region, cluster, endpoint, .. } = facts;
        let cloud = format!("ec2: {{region: {region}, cluster: {cluster}, endpoint: \"{endpoint}\"}}");
        self.set("cloud", &cloud).set("mark", &format!("kubernetes.io/cluster/{cluster}"))
    }

    /// One more pool.
    #[must_use]
    pub fn pool(self, name: &str) -> Self {
        self.pool_with(name, &[])
    }

    /// One more pool with values of its own.
    #[must_use]
    pub fn pool_with(mut self, name: &str, values: &[(&str, &str)]) -> Self {
        let own = values.iter().map(|(place, value)| ((*place).to_owned(), (*value).to_owned()));
        self.pools.push((name.to_owned(), own.collect()));
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tags of a machine of this roster and pool.
    pub fn tags(&self, pool: &str) -> Vec<String> {
        vec![format!("k8s-cluster={}", self.cluster), format!("k8s-pool={pool}")]
    }

    /// The tag of all its machines.
    pub fn cluster_tag(&self) -> String {
        format!("k8s-cluster={}", self.cluster)
    }

    /// The file's text.
    ///
    /// # Errors
    /// When a place was set that the template does not have, or one that must be set was not.
    pub fn text(&self) -> Result<String> {
        let own =
            BTreeMap::from([("name".to_owned(), self.name.clone()), ("mark".to_owned(), self.cluster_tag())]);
        let (head, rest) = TEMPLATE.split_once(POOLS_BEGIN).context("the template has no pools")?;
        let (each, tail) = rest.split_once(POOLS_END).context("the template's pools do not end")?;
        for place in self.values.keys().chain(self.pools.iter().flat_map(|(_, values)| values.keys())) {
            let there = [format!("@{place}@"), format!("@{place}=")];
            ensure!(there.iter().any(|mark| TEMPLATE.contains(mark)), "the template has no place {place}");
        }
        let mut text = fill(head, &[&self.values, &own])?;
        for (pool, values) in &self.pools {
            let named = BTreeMap::from([("pool".to_owned(), pool.clone())]);
            text += &fill(each, &[&named, values, &self.values, &own])?;
        }
        Ok(text + &fill(tail, &[&self.values, &own])?)
    }
}

/// Fills every place of a text; the first map that has a value wins.
fn fill(text: &str, values: &[&BTreeMap<String, String>]) -> Result<String> {
    let mut filled = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let mut parts = line.split('@');
        filled.push_str(parts.next().unwrap_or_default());
        while let Some(place) = parts.next() {
            let (name, otherwise) =
                place.split_once('=').map_or((place, None), |(name, value)| (name, Some(value)));
            match values.iter().find_map(|values| values.get(name)).map(String::as_str).or(otherwise) {
                Some(value) => filled.push_str(value),
                None => bail!("{name} must be set"),
            }
            filled.push_str(parts.next().unwrap_or_default());
        }
        filled.push('\n');
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use reveille_wire::roster::{Origin, read};

    use super::Roster;

    #[test]
    fn what_the_template_gives_is_a_roster_that_reveille_accepts() {
        let roster = Roster::new("t")
            .set("kubeconfig", "/k")
            .set("cloud", "openstack: {cloud: demo}")
            .set("router", "router: r-1");
        let roster =
            roster.set("tries", "2").pool("a").pool_with("b", &[("replace", "act"), ("join", "never")]);
        let origin = Origin { name: "t", dir: Path::new("/"), home: None };
        let read = read(&roster.text().unwrap(), &origin).unwrap_or_else(|refusal| panic!("{refusal}"));
        let pools = &read[0].roster.pools;
        assert_eq!((read[0].roster.timing.tries, pools.len()), (2, 2));
        let joins: Vec<bool> = pools.values().map(|pool| pool.deadlines.join_within.is_some()).collect();
        assert_eq!(joins, [true, false]);
    }

    #[test]
    fn a_place_that_is_not_there_or_not_set_is_told() {
        let complete = Roster::new("t")
            .set("kubeconfig", "/k")
            .set("cloud", "openstack: {cloud: demo}")
            .set("router", "");
        let slip = complete.set("trys", "2").text().unwrap_err().to_string();
        assert_eq!(slip, "the template has no place trys");
        let unset = Roster::new("t").text().unwrap_err().to_string();
        assert_eq!(unset, "kubeconfig must be set");
    }
}
