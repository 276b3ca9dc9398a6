//! Service users: what they hold is read from Keystone, told, and given where that is switched on.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use reveille_core::effect::Call;
use reveille_core::model::incident::FaultKind;
use reveille_core::record::Verdict;
use reveille_tests::cloud::Cloud;
use reveille_tests::lab::{Crew, Lab};
use reveille_tests::reveille::Place;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, throughout, until};

use crate::network::mended;

/// As which user Reveille logs in, and what that user may do on the project. Each is another user: the Keystone of several
/// processes remembers in each what a user held, and would answer for the old rights now and then.
const KEEPERS: [(&str, &str); 2] = [("roles-member", "member"), ("roles-admin", "admin")];
/// The service user of the roster.
const USER: &str = "roles-ccm";
/// As incidents call it.
const LABEL: &str = "user roles-ccm";

/// A service user holds `reader` and must hold `member` as well. Who may not list assignments tells that once and gives
/// nothing; who may tells what is missing, with the command; and where it is switched on the role is given, read back, and
/// what the user held besides stays.
pub(crate) fn missing_role_is_told_given_where_allowed_and_never_guessed(lab: &mut Lab) -> Result<()> {
    let operator = Cloud::operator(&lab.rig.facts.openstack);
    // The rig's own users keep their rights: others work beside this.
    let mut made = Vec::new();
    let mut make = |name: &str, role: &str| -> Result<String> {
        let id = operator.make_user(name, "demo")?;
        made.push(id.clone());
        operator.give_role(&id, role)?;
        Ok(id)
    };
    let keepers = KEEPERS.iter().try_for_each(|(name, role)| make(name, role).map(drop));
    let ended = keepers.and_then(|()| make(USER, "reader")).and_then(|user| played(lab, &operator, &user));
    operator.delete_users(&made.iter().map(String::as_str).collect::<Vec<_>>())?;
    ended
}

fn played(lab: &mut Lab, operator: &Cloud, user: &str) -> Result<()> {
    let crew = lab.crew()?;
    let [member, admin] = KEEPERS.map(|(name, _)| name);
    let (blind, clouds) = (clouds_of(lab, member)?, clouds_of(lab, admin)?);
    let as_before = || -> Result<()> {
        let held = operator.roles_of(user)?;
        ensure!(held == ["reader"], "it holds {held:?}");
        Ok(())
    };

    let place = lab.place(&[&roster(&crew, &blind, "act")])?;
    let running = lab.start(&place)?;
    found(&place, FaultKind::RolesUnreadable, "RV404")?;
    throughout("roles that cannot be read are not acted upon", s(6), as_before)?;
    let ledger = place.ledger()?;
    ensure!(ledger.newest(LABEL, FaultKind::RolesMissing).is_err(), "{}", ledger.told());
    running.stop()?;

    let place = lab.place(&[&roster(&crew, &clouds, "propose")])?;
    let running = lab.start(&place)?;
    found(&place, FaultKind::RolesMissing, "RV403")?;
    throughout("what is only proposed is not done", s(6), as_before)?;
    let plan = lab.reveille.ask(&place, &["plan"])?.stdout;
    let command = format!("openstack role add --project {} --user {user}", operator_project(lab));
    ensure!(plan.contains(&command), "the plan does not say {command}:\n{plan}");
    until("what can be told again to be closed", s(30), || {
        place.ledger()?.newest(LABEL, FaultKind::RolesUnreadable)?.ended(Verdict::Recovered)
    })?;
    running.stop()?;

    let place = lab.place(&[&roster(&crew, &clouds, "act")])?;
    let running = lab.start(&place)?;
    until("the role to be held", s(30), || {
        let held = operator.roles_of(user)?;
        ensure!(held == ["member", "reader"], "it holds {held:?}");
        Ok(())
    })?;
    mended(&place, LABEL, FaultKind::RolesMissing)?;
    let ledger = place.ledger()?;
    let given: Vec<_> =
        ledger.intents().filter(|intent| matches!(intent.call, Call::AssignRoles(_))).collect();
    ensure!(given.len() == 1 && given[0].held == Some(true), "{}", ledger.told());
    running.stop()?;
    Ok(())
}

fn roster(crew: &Crew, clouds: &str, repair: &str) -> Roster {
    let access = format!(
        "access: {{users: [{{user: {USER}, roles: [reader, member]}}], repair: {repair}, checkEvery: 5m}}"
    );
    crew.roster("roles")
        .set("cloud", &format!("openstack: {{cloud: demo, cloudsFile: {clouds}}}"))
        .set("access", &access)
        .pool_with("workers", &[("network", "off")])
}

/// The rig's `clouds.yaml` with another user in its entry: the same services, through the same proxy.
fn clouds_of(lab: &Lab, user: &str) -> Result<String> {
    let text = fs::read_to_string(&lab.rig.facts.openstack.clouds_file).context("clouds.yaml")?;
    let path: PathBuf = std::env::temp_dir().join(format!("reveille-e2e-{}-{user}.yaml", std::process::id()));
    fs::write(&path, text.replace("username: demo\n", &format!("username: {user}\n")))?;
    Ok(path.display().to_string())
}

fn operator_project(lab: &Lab) -> &str {
    &lab.rig.facts.openstack.project_id
}

fn found(place: &Place, kind: FaultKind, code: &str) -> Result<()> {
    until(&format!("{kind} to be told as {code}"), s(40), || {
        let ledger = place.ledger()?;
        let incident = ledger.newest(LABEL, kind)?;
        let cause = incident.causes.last().context("no cause yet")?;
        ensure!(cause.code() == code, "{}", cause.code());
        Ok(())
    })
}
