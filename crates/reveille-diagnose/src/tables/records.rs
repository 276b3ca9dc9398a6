//! Machine records of other systems, in a table or as an object: whether there is an instance, and whether a Node came of it.
//!
//! ```text
//!  kubectl get machines, nodeclaims ─▶ columns ─┐
//!  kubectl get … -o yaml | json ─▶ objects ─────┴▶ Record ─▶ made? joined? ─▶ Fact
//! ```
//!
//! A record that is being removed, or that is a few minutes old by its table, says nothing of trouble. Objects carry no age: what
//! prints them has a clock, and a reader of files has none.

use super::Fact;

/// A record younger than this may be on its way.
const YOUNG_S: u64 = 5 * 60;

/// What one record says of its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// `PHASE`, where there is one.
    pub(super) phase: Option<&'a str>,
    /// The condition Ready, where there is one.
    pub(super) ready: Option<bool>,
    /// It names an instance, or its owner launched one.
    pub(super) launched: bool,
    /// It names a Node.
    pub(super) has_node: bool,
    /// How old it is, where that is told.
    pub(super) age_s: Option<u64>,
}

impl Record<'_> {
    /// What it shows; `None`: nothing that counts.
    pub(super) fn fact(&self) -> Option<Fact> {
        let phase = self.phase.unwrap_or_default().to_ascii_lowercase();
        if matches!(phase.as_str(), "deleting" | "deleted" | "terminating") {
            return None;
        }
        let runs = matches!(phase.as_str(), "running" | "ready" | "active");
        if (runs || phase.is_empty()) && self.ready.unwrap_or(runs) {
            return Some(Fact::AllMachinesWell);
        }
        let failed = matches!(phase.as_str(), "failed" | "crashloopbackoff");
        if !failed && self.age_s.is_some_and(|age_s| age_s < YOUNG_S) {
            return None;
        }
        Some(match (self.launched, self.has_node) {
            (_, true) => Fact::MachineNotReady,
            (true, false) => Fact::MachineNotJoined,
            (false, false) => Fact::MachineNotMade,
        })
    }
}

/// Where the columns of a table of records begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    names: Vec<(String, usize)>,
}

impl Columns {
    /// The columns of this header, if it is one of machine records.
    pub(super) fn of(header: &str) -> Option<Self> {
        let mut names = Vec::new();
        let mut at = 0;
        for word in header.split_whitespace() {
            let begin = at + header[at..].find(word)?;
            names.push((word.to_owned(), begin));
            at = begin + word.len();
        }
        let found = Self { names };
        let has = |name: &str| found.names.iter().any(|(known, _)| known == name);
        let is_machines = has("PHASE") && (has("PROVIDERID") || has("NODENAME") || has("NODE"));
        let is_claims = has("CAPACITY") && has("NODE") && has("READY");
        (is_machines || is_claims).then_some(found)
    }

    /// The record of this row.
    pub(super) fn record<'a>(&self, row: &'a str) -> Record<'a> {
        let cell = |name: &str| self.cell(row, name).filter(|cell| *cell != "<none>");
        let ready = cell("READY").map(|ready| ready == "True");
        let is_claim = self.cell(row, "CAPACITY").is_some();
        let names_instance = ["PROVIDERID", "INSTANCEID"].into_iter().any(|name| cell(name).is_some());
        Record {
            phase: cell("PHASE"),
            ready,
            launched: names_instance || is_claim && cell("TYPE").is_some() && cell("ZONE").is_some(),
            has_node: ["NODENAME", "NODE"].into_iter().any(|name| cell(name).is_some()),
            age_s: cell("AGE").and_then(seconds),
        }
    }

    /// Cells may be empty, so only the place under its head tells which one a word is in.
    fn cell<'a>(&self, row: &'a str, name: &str) -> Option<&'a str> {
        let place = self.names.iter().position(|(known, _)| known == name)?;
        let begin = self.names[place].1;
        let end = self.names.get(place + 1).map_or(row.len(), |(_, next)| (*next).min(row.len()));
        Some(row.get(begin..end)?.trim()).filter(|cell| !cell.is_empty())
    }
}

/// `3d4h`, `35m`, `12s`.
fn seconds(age: &str) -> Option<u64> {
    let (mut all, mut number) = (0_u64, 0_u64);
    for c in age.chars() {
        let unit = match c {
            '0'..='9' => {
                number = number.checked_mul(10)?.checked_add(u64::from(c.to_digit(10)?))?;
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'y' => 365 * 86_400,
            _ => return None,
        };
        all = all.checked_add(number.checked_mul(unit)?)?;
        number = 0;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_records_tell_where_their_machines_stopped() {
        let machines =
            Columns::of("NAME  CLUSTER  NODENAME  PROVIDERID  PHASE         AGE  VERSION").unwrap();
        let claims = Columns::of("NAME  TYPE      CAPACITY  ZONE   NODE  READY    AGE").unwrap();
        for (columns, row, fact) in [
            (
                &machines,
                "m-1   prod     w-1       aws:///1    Running       9d   v1.31",
                Some(Fact::AllMachinesWell),
            ),
            (
                &machines,
                "m-2   prod               aws:///2    Provisioned   40m  v1.31",
                Some(Fact::MachineNotJoined),
            ),
            (
                &machines,
                "m-3   prod                           Provisioning  35m  v1.31",
                Some(Fact::MachineNotMade),
            ),
            (&machines, "m-4   prod                           Provisioning  90s  v1.31", None),
            (
                &machines,
                "m-5   prod                           Failed        90s  v1.31",
                Some(Fact::MachineNotMade),
            ),
            (&machines, "m-6   prod     w-6       aws:///6    Deleting      9d   v1.31", None),
            (&claims, "c-1   c5.large  spot      eu-1a  w-1   True     3d", Some(Fact::AllMachinesWell)),
            (&claims, "c-2   c5.large  spot      eu-1a        Unknown  12m", Some(Fact::MachineNotJoined)),
            (&claims, "c-3                                    Unknown  12m", Some(Fact::MachineNotMade)),
            (&claims, "c-4   c5.large  spot      eu-1a  w-4   False    3d", Some(Fact::MachineNotReady)),
        ] {
            assert_eq!(columns.record(row).fact(), fact, "{row}");
        }
        assert_eq!(Columns::of("NAME STATUS ROLES AGE VERSION"), None);
        assert_eq!(seconds("3d4h"), Some(273_600));
        assert_eq!(seconds("never"), None);
    }
}
