//! Both ways of repairing, killed at each step of the book and after each write, beside a syncer that never sleeps.
//!
//! Six clusters are repaired at once, each by a program of its own with a roster, a book and a door of its own.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, anyhow, ensure};
use reveille_tests::lab::Lab;
use reveille_tests::rancher::door::Dies;
use reveille_tests::rancher::kinds;
use reveille_tests::rancher::objects::pod;
use reveille_tests::rancher::syncer::{Syncer, Ways};
use reveille_tests::reveille::{Place, Reveille};
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, until};
use serde_json::{Value, json};

use super::{Ground, stage};

/// The machine that is repaired; the two before it are sound.
const SUBJECT: u8 = 3;
/// One cluster, the program that repairs it, and Rancher's controllers.
struct Scene {
    ground: Ground,
    reveille: Reveille,
    place: Place,
    way: &'static str,
    /// `None`: the test does not kill it.
    dies: Option<Dies>,
    ways: Ways,
}

/// Deleting a record before its Node brings a mirror; `evict` does not. Both ways end right however often the program is
/// killed: each write reaches the API server once, `mend` needs exactly one, and one that goes wrong is taken back.
pub(crate) fn both_ways_of_mending_a_record_survive_a_kill_at_each_step(lab: &mut Lab) -> Result<()> {
    kinds::install(&lab.kube)?;
    // A syncer that is behind leaves the record to us; one that is not takes it as soon as its Node is gone.
    let all = Ways { plans: true, tidies: true };
    let behind = Ways { tidies: false, ..all };
    let planless = Ways { plans: false, ..all };
    let wanted = [
        ("c-race", 11, "evict", None, all),
        ("c-steps", 12, "evict", Some(Dies::AtEachStep), behind),
        ("c-writes", 13, "evict", Some(Dies::AfterEachWrite), behind),
        ("c-edit", 14, "mend", Some(Dies::AtEachStep), all),
        ("c-edit-once", 15, "mend", Some(Dies::AfterEachWrite), all),
        ("c-back", 16, "mend", Some(Dies::AtEachStep), planless),
    ];
    let set = |(id, net, way, dies, ways)| (id, Scene::set(lab, id, net, way, dies, ways));
    stage::play(wanted.into_iter().map(set))
}

impl stage::Scene for Scene {
    fn played(&mut self) -> Result<()> {
        Self::played(self)
    }

    fn id(&self) -> &str {
        &self.ground.id
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn ground(self) -> Ground {
        self.ground
    }
}

impl Scene {
    fn set(
        lab: &mut Lab,
        id: &str,
        net: u8,
        way: &'static str,
        dies: Option<Dies>,
        ways: Ways,
    ) -> Result<Self> {
        let ground = Ground::lay(lab, id, net, 2, 0)?;
        let kubeconfig = ground.kubeconfig.display().to_string();
        let rancher = format!(
            "rancher: {{kubeconfig: {kubeconfig}, context: rig, cluster: {id}, looksApart: 3s, planWithin: 20s, \
             repair: {{evict: act, mend: act}}}}"
        );
        let roster = Roster::new(id).set("kubeconfig", &kubeconfig).set("rancher", &rancher).pool("workers");
        let mut place = lab.place(&[&roster])?;
        place.log = place.log.with_file_name(format!("{id}.log"));
        Ok(Self { ground, reveille: lab.reveille.clone(), place, way, dies, ways })
    }

    fn played(&mut self) -> Result<()> {
        let ground = &mut self.ground;
        for number in [1, 2] {
            ground.join(number)?;
            ground.register(number)?;
        }
        let is_evicted = self.way == "evict";
        ground.join(SUBJECT)?;
        if is_evicted {
            ground.register(SUBJECT)?;
        }
        let syncer = Syncer::start(&ground.api, &ground.id, self.ways);
        if is_evicted {
            // What a person would do, and what comes of it.
            ground.api.delete(&format!("{}/{}", ground.records_at(), ground.record(SUBJECT)))?;
        }
        let mirror = until("the syncer to mirror the Node", s(30), || {
            let records = ground.records_about(SUBJECT)?;
            let [one] = records.as_slice() else { anyhow::bail!("{} records", records.len()) };
            let name = one["metadata"]["name"].as_str().unwrap_or_default();
            ensure!(name.starts_with("machine-"), "{name}");
            Ok(one.clone())
        })?;
        ensure!(syncer.told().mirrors.len() == 1, "{:?}", syncer.told());
        let owner = ground.owner()?;
        let name = ground.name(SUBJECT);
        ground.run_pod(&pod(&ground.id, "web-1", &name, &owner, !is_evicted))?;
        self.proposed()?;
        if let Some(dies) = &self.dies {
            self.ground.door.kill_along(&self.place.state.join(&self.place.name), dies.clone());
        }
        let code = self.ground.lived(&self.reveille, &self.place, &["rancher", self.way, &name, "--yes"])?;
        ensure!(syncer.told().mirrors.len() == 1, "there is another mirror: {:?}", syncer.told());
        match (is_evicted, self.ways.plans) {
            (true, _) => self.evicted(code),
            (false, true) => self.mended(code, &syncer),
            (false, false) => self.put_back(code, &mirror),
        }
    }

    /// Without `--yes` it says that nothing stands against it, and writes nothing.
    fn proposed(&self) -> Result<()> {
        let name = self.ground.name(SUBJECT);
        until("nothing to stand against it", s(60), || {
            let ended = self.reveille.ask(&self.place, &["rancher", self.way, &name, "--output", "json"])?;
            let told: Value = serde_json::from_str(&ended.stdout)
                .with_context(|| format!("{:?}: {}", ended.code, ended.stderr))?;
            ensure!(told["against"] == json!([]), "{}", told["against"]);
            Ok(())
        })?;
        ensure!(self.ground.door.writes().is_empty(), "a proposal wrote {:?}", self.ground.door.writes());
        Ok(())
    }

    fn died_at(&self, steps: &[&str], writes: &[&str]) -> Result<()> {
        let wanted: BTreeSet<String> = match &self.dies {
            None => BTreeSet::new(),
            Some(Dies::AtEachStep) => steps.iter().map(|step| (*step).to_owned()).collect(),
            Some(Dies::AfterEachWrite) => writes.iter().map(|write| (*write).to_owned()).collect(),
            Some(Dies::At(places)) => places.clone(),
        };
        ensure!(self.ground.door.deaths() == wanted, "it died at {:?}", self.ground.door.deaths());
        ensure!(self.ground.door.writes() == writes, "it wrote {:?}", self.ground.door.writes());
        let copies = self.place.state.join(&self.place.name).join("rancher").join("copies");
        let copies: Vec<String> = fs::read_dir(copies)
            .context("no copies were kept")?
            .filter_map(|copy| fs::read_to_string(copy.ok()?.path()).ok())
            .collect();
        ensure!(copies.iter().any(|copy| copy.contains("machine-")), "no copy of the record was kept");
        Ok(())
    }

    fn evicted(&mut self, code: Option<i32>) -> Result<()> {
        ensure!(code == Some(0), "it ended with {code:?}");
        let steps = [
            "begun",
            "intent save",
            "ended save",
            "intent cordon",
            "ended cordon",
            "intent evict",
            "ended evict",
            "intent deleteNode",
            "ended deleteNode",
            "intent deleteRecord",
            "ended deleteRecord",
        ];
        let mut writes = vec!["PUT of a Node", "POST of an eviction", "DELETE of a Node"];
        if !self.ways.tidies {
            writes.push("DELETE of a record");
        }
        self.died_at(&steps, &writes)?;
        let ground = &mut self.ground;
        ensure!(ground.api.get(&format!("/api/v1/nodes/{}", ground.name(SUBJECT)))?.is_none());
        ensure!(ground.records_about(SUBJECT)?.is_empty(), "{:?}", ground.records_about(SUBJECT)?);
        // The person's part: the machine registers again, and is whole.
        ground.register(SUBJECT)?;
        ground.join(SUBJECT)
    }

    fn mended(&self, code: Option<i32>, syncer: &Syncer) -> Result<()> {
        ensure!(code == Some(0), "it ended with {code:?}");
        let steps = ["begun", "intent save", "ended save", "intent write", "ended write"];
        self.died_at(&steps, &["PUT of a record"])?;
        let records = self.ground.records_about(SUBJECT)?;
        let [record] = records.as_slice() else { return Err(anyhow!("{} records", records.len())) };
        let name = record["metadata"]["name"].as_str().unwrap_or_default();
        let (id, node, ip) = (&self.ground.id, self.ground.name(SUBJECT), self.ground.ip(SUBJECT));
        ensure!(record["spec"]["customConfig"] == json!({"address": ip}), "{}", record["spec"]);
        let written = json!({"nodeName": format!("{id}:{name}"), "hostnameOverride": node, "address": ip,
            "port": "22", "user": "root", "role": ["worker"]});
        ensure!(record["status"]["rkeNode"] == written, "{}", record["status"]["rkeNode"]);
        ensure!(syncer.told().planned == [name], "{:?}", syncer.told());
        Ok(())
    }

    /// Byte for byte what it was, but for what the API server itself counts.
    fn put_back(&self, code: Option<i32>, before: &Value) -> Result<()> {
        ensure!(code == Some(1), "it ended with {code:?}");
        let steps = [
            "begun",
            "intent save",
            "ended save",
            "intent write",
            "ended write",
            "intent putBack",
            "ended putBack",
        ];
        self.died_at(&steps, &["PUT of a record", "PUT of a record"])?;
        let records = self.ground.records_about(SUBJECT)?;
        let [record] = records.as_slice() else { return Err(anyhow!("{} records", records.len())) };
        for part in ["spec", "status"] {
            ensure!(record[part] == before[part], "{part}: {} was {}", record[part], before[part]);
        }
        let [uid, labels] = ["uid", "labels"].map(|field| &record["metadata"][field]);
        ensure!([uid, labels] == ["uid", "labels"].map(|field| &before["metadata"][field]));
        Ok(())
    }
}
