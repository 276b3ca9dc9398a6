//! A roster as its file has it: the fleet of a scenario written down, with lines that a person changed, and read by the very
//! reader that `reveille run` uses.
//!
//! ```text
//!  Layout ─▶ a tree of fields ─▶ roster FIELD: VALUE, roster lacks FIELD ─▶ YAML ─▶ reveille_wire::roster::read
//!                                                                                     ├▶ CheckedRoster: the play's
//!                                                                                     └▶ Refusal: there is no play
//! ```
//!
//! Only scenarios with such lines come here; the others have their roster from the layout directly. The module never interprets a
//! value: it puts the value into the file as it stands.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use reveille_core::model::id::PoolName;
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::{Access, ServiceUser};
use reveille_core::model::roster::{GroupRef, Mode};
use reveille_core::model::time::Span;
use reveille_wire::duration;
use reveille_wire::roster::{API_VERSION, CheckedRoster, KIND, Origin, Refusal, Written, read};

use crate::world::layout::{Layout, PoolPlan};

/// A line that a person changed.
#[derive(Clone, Debug)]
pub(crate) struct Changed {
    /// Its path: `spec.pools[0].min`.
    pub(crate) field: String,
    /// What stands there now; `None`: the field is not there.
    pub(crate) value: Option<String>,
}

impl Changed {
    /// A field by its path, and what stands there now.
    pub(crate) fn new(field: &str, value: Option<String>) -> Result<Self, String> {
        path(field)?;
        Ok(Self { field: field.to_owned(), value })
    }
}

/// The file's name in messages.
const FILE: &str = "roster.yaml";

/// The roster as the reader takes it, or why it refuses.
pub(crate) fn written(
    layout: &Layout,
    changes: &[Changed],
) -> Result<Result<CheckedRoster, Refusal>, String> {
    let mut file = Tree::Map(vec![
        ("apiVersion".to_owned(), Tree::plain(API_VERSION)),
        ("kind".to_owned(), Tree::plain(KIND)),
        ("metadata".to_owned(), Tree::plain("{name: prod}")),
        ("spec".to_owned(), spec(layout)),
    ]);
    for change in changes {
        let path = path(&change.field)?;
        file.put(&path, change.value.as_deref()).map_err(|why| format!("{}: {why}", change.field))?;
    }
    let mut text = String::new();
    file.print(&mut text, 0);
    let origin = Origin { name: FILE, dir: Path::new(""), home: None };
    let one = |mut read: Vec<CheckedRoster>| read.pop().ok_or("the file holds no roster".to_owned());
    match read(&text, &origin) {
        Ok(rosters) => one(rosters).map(Ok),
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// What came of a scenario's roster file, when it has one.
#[derive(Clone, Debug, Default)]
pub(crate) struct File {
    /// Where the marks of each pool are written; `None`: there is no file.
    pub(crate) written: Option<BTreeMap<PoolName, Written>>,
    /// It is refused: there is no play.
    pub(crate) refused: Option<Refusal>,
}

/// Reads the file of a scenario with changed lines, and takes what it says into the layout.
pub(crate) fn of_scenario(mut layout: Layout, changes: &[Changed]) -> Result<(Layout, File), String> {
    if changes.is_empty() {
        return Ok((layout, File::default()));
    }
    let file = match written(&layout, changes)? {
        Ok(checked) => {
            (layout.limits, layout.timing) = (checked.roster.limits, checked.roster.timing);
            layout.read = Some(Box::new(checked.roster));
            File { written: Some(checked.written), refused: None }
        }
        Err(refusal) => File { written: None, refused: Some(refusal) },
    };
    Ok((layout, file))
}

#[derive(Clone, Debug)]
enum Tree {
    /// A value, as it stands in the file.
    Value(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Item(usize),
}

fn path(text: &str) -> Result<Vec<Step>, String> {
    let wrong =
        || format!("`{text}` is no field; write for instance spec.limits.perHour or spec.pools[0].min");
    let mut steps = Vec::new();
    for part in text.split('.') {
        let (name, items) = part.split_at(part.find('[').unwrap_or(part.len()));
        if name.is_empty() {
            return Err(wrong());
        }
        steps.push(Step::Field(name.to_owned()));
        for item in items.split('[').skip(1) {
            let number = item.strip_suffix(']').and_then(|number| number.parse().ok());
            steps.push(Step::Item(number.ok_or_else(wrong)?));
        }
    }
    Ok(steps)
}

impl Tree {
    fn plain(text: impl Into<String>) -> Self {
        Self::Value(text.into())
    }

    fn map(fields: Vec<(&str, String)>) -> Self {
        Self::Map(fields.into_iter().map(|(name, value)| (name.to_owned(), Self::Value(value))).collect())
    }

    fn put(&mut self, path: &[Step], value: Option<&str>) -> Result<(), String> {
        let Some((step, rest)) = path.split_first() else {
            *self = Self::plain(value.unwrap_or_default());
            return Ok(());
        };
        match (step, &mut *self) {
            (Step::Field(name), Self::Map(fields)) => {
                let place = fields.iter().position(|(known, _)| known == name);
                match (place, value) {
                    (Some(place), None) if rest.is_empty() => drop(fields.remove(place)),
                    (Some(place), _) => fields[place].1.put(rest, value)?,
                    (None, None) => return Err("it is not there anyway".to_owned()),
                    (None, Some(_)) => {
                        let mut fresh = Self::Map(Vec::new());
                        fresh.put(rest, value)?;
                        fields.push((name.clone(), fresh));
                    }
                }
                Ok(())
            }
            (Step::Item(index), Self::List(items)) => match items.get_mut(*index) {
                Some(_) if rest.is_empty() && value.is_none() => {
                    items.remove(*index);
                    Ok(())
                }
                Some(item) => item.put(rest, value),
                None => Err(format!("there are {} items", items.len())),
            },
            _ => Err("a value stands above it; change that one".to_owned()),
        }
    }

    fn print(&self, out: &mut String, indent: usize) {
        match self {
            Self::Value(text) => put(out, indent, text),
            Self::List(items) => {
                for item in items {
                    let mut text = String::new();
                    item.print(&mut text, indent + 2);
                    let (_, first) = text.split_at((indent + 2).min(text.len()));
                    let _ = write!(out, "{:indent$}- {first}", "");
                }
            }
            Self::Map(fields) => {
                for (name, field) in fields {
                    match field {
                        Self::Value(text) => put(out, indent, &format!("{name}: {text}")),
                        Self::List(items) if items.is_empty() => put(out, indent, &format!("{name}: []")),
                        _ => {
                            put(out, indent, &format!("{name}:"));
                            field.print(out, indent + 2);
                        }
                    }
                }
            }
        }
    }
}

fn put(out: &mut String, indent: usize, line: &str) {
    let written = writeln!(out, "{:indent$}{line}", "");
    debug_assert!(written.is_ok(), "a string takes every text");
}

fn spec(layout: &Layout) -> Tree {
    let roster = layout.roster();
    let ranges: Vec<String> = roster.network.pod_ranges.iter().map(|net| format!("\"{net}\"")).collect();
    let mut network = vec![("podCIDRs", format!("[{}]", ranges.join(", ")))];
    network.extend(roster.network.router.iter().map(|(_, id)| ("router", format!("\"{id}\""))));
    let limits = vec![
        ("atOnce", roster.limits.at_once.to_string()),
        ("perHour", roster.limits.per_hour.to_string()),
        ("freezeAbove", format!("{}%", roster.limits.freeze_above_pct)),
        ("networkAtOnce", roster.limits.network_at_once.to_string()),
        ("sameFaultStopsAt", roster.limits.same_fault_stops_at.to_string()),
    ];
    let spans = [
        ("cloudPeriod", roster.timing.cloud_period),
        ("cloudFullPeriod", roster.timing.cloud_full_period),
        ("cloudStaleAfter", roster.timing.cloud_stale_after),
        ("clusterStaleAfter", roster.timing.cluster_stale_after),
        ("leaseSilentAfter", roster.timing.lease_silent_after),
        ("pauseJump", roster.timing.pause_jump),
        ("backoffMin", roster.timing.backoff_min),
        ("backoffMax", roster.timing.backoff_max),
        ("verifyWithin", roster.timing.verify_within),
        ("settle", roster.timing.settle),
        ("rolloutQuiet", roster.timing.rollout_quiet),
    ];
    let mut timing: Vec<(&str, String)> = spans.map(|(name, span)| (name, duration::text(span))).into();
    timing.push(("shrink", format!("{}%", roster.timing.shrink_pct)));
    timing.push(("tries", roster.timing.tries.to_string()));
    let cloud = Tree::map(vec![("name", "os".to_owned()), ("openstack", "{cloud: prod}".to_owned())]);
    let mut fields = vec![
        ("clouds".to_owned(), Tree::List(vec![cloud])),
        ("network".to_owned(), Tree::map(network)),
        ("pools".to_owned(), Tree::List(layout.pools.iter().map(|plan| pool(layout, plan)).collect())),
        ("limits".to_owned(), Tree::map(limits)),
        ("timing".to_owned(), Tree::map(timing)),
    ];
    if !roster.access.users.is_empty() {
        fields.push(("access".to_owned(), access(&roster.access)));
    }
    Tree::Map(fields)
}

fn access(access: &Access) -> Tree {
    let user = |user: &ServiceUser| {
        let roles: Vec<String> = user.roles.iter().map(ToString::to_string).collect();
        Tree::map(vec![
            ("cloud", user.cloud.to_string()),
            ("user", user.user.to_string()),
            ("roles", format!("[{}]", roles.join(", "))),
        ])
    };
    Tree::Map(vec![
        ("users".to_owned(), Tree::List(access.users.iter().map(user).collect())),
        ("repair".to_owned(), Tree::plain(word(access.repair))),
        ("checkEvery".to_owned(), Tree::plain(duration::text(access.check_every))),
    ])
}

fn pool(layout: &Layout, plan: &PoolPlan) -> Tree {
    let name: &PoolName = &plan.name;
    let roster = layout.roster();
    let Some(pool) = roster.pools.get(name) else { return Tree::Map(Vec::new()) };
    let mark = |mark: &Mark| match mark {
        Mark::Tag(tag) => format!("\"{tag}\""),
        Mark::Metadata(key, value) => format!("{{metadata: {{{key}: {value}}}}}"),
    };
    let own = pool.owned.pool.as_ref().map_or_else(String::new, |own| format!(", pool: {}", mark(own)));
    let groups: Vec<String> = pool
        .groups
        .iter()
        .map(|group| match group {
            GroupRef::Name(name) => name.to_string(),
            GroupRef::Id(id) => format!("\"{id}\""),
        })
        .collect();
    let taints: Vec<String> = pool.startup_taints.iter().map(ToString::to_string).collect();
    let deadlines = pool.deadlines;
    let spans = [
        ("build", deadlines.build_within),
        ("delete", deadlines.delete_within),
        ("notReady", deadlines.not_ready_within),
        ("vanished", deadlines.vanished_within),
        ("inService", deadlines.in_service_within),
        ("dwell", deadlines.dwell),
    ];
    let mut within: Vec<(&str, String)> = spans.map(|(name, span)| (name, duration::text(span))).into();
    within.push(("confirm", deadlines.confirm.to_string()));
    let join = deadlines.join_within.map_or_else(|| "never".to_owned(), |span: Span| duration::text(span));
    let modes = [
        ("network", pool.repair.network),
        ("rejoin", pool.repair.rejoin),
        ("reboot", pool.repair.reboot),
        ("replace", pool.repair.replace),
        ("cleanup", pool.repair.cleanup),
    ];
    let modes = modes.map(|(name, mode)| (name, word(mode).to_owned()));
    let mut fields = vec![
        ("name".to_owned(), Tree::plain(name.as_str())),
        ("cloud".to_owned(), Tree::plain(pool.cloud.as_str())),
        ("owned".to_owned(), Tree::plain(format!("{{tag: {}{own}}}", mark(&pool.owned.cluster)))),
        ("securityGroups".to_owned(), Tree::plain(format!("[{}]", groups.join(", ")))),
        ("startupTaints".to_owned(), Tree::plain(format!("[{}]", taints.join(", ")))),
        ("min".to_owned(), Tree::plain(pool.min.to_string())),
        ("join".to_owned(), Tree::map(vec![("within", join)])),
        ("deadlines".to_owned(), Tree::map(within)),
        ("repair".to_owned(), Tree::map(modes.into())),
    ];
    if let Some(keep) = pool.keep {
        let when = if keep.failed { "failed" } else { "marked" };
        let (within, at_most) = (duration::text(keep.within), keep.at_most.to_string());
        let keep = Tree::map(vec![("for", within), ("atMost", at_most), ("when", when.to_owned())]);
        fields.push(("keep".to_owned(), keep));
    }
    Tree::Map(fields)
}

const fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Off => "off",
        Mode::Propose => "propose",
        Mode::Act => "act",
    }
}

#[cfg(test)]
mod tests {
    use reveille_core::model::access::{RoleRef, UserRef};

    use super::*;

    fn changed(field: &str, value: Option<&str>) -> Changed {
        Changed { field: field.to_owned(), value: value.map(str::to_owned) }
    }

    fn layout() -> Layout {
        let mut layout = Layout::fleet(1, 3).routed();
        layout.pools.push(PoolPlan::new("gpu", 2));
        let user = UserRef::Name { name: "ccm".into(), domain: None };
        let roles = vec![RoleRef::Name("member".into())];
        layout.access.users = vec![ServiceUser { cloud: "os".into(), user: user.into(), roles }];
        layout
    }

    #[test]
    fn what_is_written_is_read_back_as_it_was_meant() {
        let read = written(&layout(), &[]).unwrap_or_else(|why| panic!("{why}"));
        let read = read.unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(read.roster, layout().roster());
    }

    #[test]
    fn changed_line_is_read_and_wrong_line_is_refused_at_its_field() {
        let read = written(&layout(), &[changed("spec.pools[1].min", Some("2"))]);
        assert_eq!(read.map(|read| read.map(|read| read.roster.pools["gpu"].min)), Ok(Ok(2)));
        for (field, value, wrong) in [
            ("spec.limits.perHour", Some("-1"), "is negative"),
            ("spec.pools[0].owned", None, "\"owned\" is missing"),
            ("spec.pools[1].deadlines.dwel", Some("1m"), "there is no such field"),
        ] {
            let refusal = written(&layout(), &[changed(field, value)]);
            let refusal = refusal.unwrap_or_else(|why| panic!("{why}")).unwrap_err();
            assert!(refusal.complaints.iter().any(|it| it.wrong.contains(wrong)), "{field}: {refusal}");
        }
    }

    #[test]
    fn a_field_that_cannot_be_is_told() {
        for field in ["spec..x", "spec.pools[x]", "spec.pools[7].min", "metadata.name"] {
            assert!(written(&layout(), &[changed(field, Some("1"))]).is_err(), "{field}");
        }
        assert!(written(&layout(), &[changed("spec.cluster", None)]).is_err(), "it is not there");
    }
}
