//! Members of a cluster's etcd: lists them, checks whether each is well, and removes one.
//!
//! ```text
//!  each endpoint ─▶ status ─▶ list through the quorum ─▶ Member: who, where, well or why not, leader
//!  remove ─▶ all of that again ─▶ every other is well ─▶ leadership handed over ─▶ one removal, asked of another ─▶ Outcome
//! ```
//!
//! etcd is asked through its JSON gateway, with POST for everything; 64-bit numbers are text there, and ids are shown in
//! hexadecimal, as etcdctl does. *Well* is a member that was asked itself and answered both questions. A member without an
//! endpoint of its own is not well, because its state cannot be read. Where two members tell different lists, of different
//! clusters, or of different leaders, there is no answer, and no step that rests on it is taken.
//!
//! Not here: connections and certificates, which the clients have; adding a member, which Rancher does.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Outcome;
use super::observation::Member;
use crate::ask::{ApiClient, Place, Refused, Request, Verb};
use crate::model::{Unread, UnreadKind};

/// What could not be done where members are not known.
pub(super) const WHAT: &str = "list the members of etcd";
/// So far behind what another has agreed on, etcd itself refuses to take writes.
const BEHIND_MAX: u64 = 5_000;
/// A cluster of etcd has seven at most, as its own manual says; more answers than these are not read.
const ENDPOINTS_MAX: usize = 9;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Header {
    cluster_id: String,
    member_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListDoc {
    members: Vec<MemberDoc>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct MemberDoc {
    #[serde(rename = "ID")]
    id: String,
    name: String,
    #[serde(rename = "peerURLs")]
    peers: Vec<String>,
    #[serde(rename = "isLearner")]
    is_learner: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusDoc {
    header: Header,
    leader: String,
    raft_index: String,
    raft_applied_index: String,
    errors: Vec<String>,
}

/// What one endpoint said.
struct Said {
    /// Which of the clients.
    client: usize,
    own: u64,
    cluster: u64,
    leader: u64,
    index: u64,
    applied: u64,
    errors: Vec<String>,
    list: Vec<MemberDoc>,
}

/// All members, and which client leads to whom.
struct Known {
    members: Vec<Member>,
    /// Id of the member that answers there, and the client.
    clients: Vec<(String, usize)>,
}

/// The members of the cluster behind these clients, one for each endpoint.
///
/// # Errors
/// When none answers, or they contradict each other.
pub async fn members(clients: &[impl ApiClient]) -> Result<Vec<Member>, Unread> {
    let unread = |why| Unread { what: WHAT.to_owned(), why, kind: UnreadKind::Failed };
    known(clients).await.map(|known| known.members).map_err(unread)
}

async fn known(clients: &[impl ApiClient]) -> Result<Known, String> {
    let (mut said, mut silent) = (Vec::new(), Vec::new());
    for (index, client) in clients.iter().enumerate().take(ENDPOINTS_MAX) {
        match ask(client, index).await {
            Ok(heard) => said.push(heard),
            Err(why) => silent.push(why),
        }
    }
    let Some(first) = said.first() else {
        return Err(format!("no endpoint answers: {}", silent.join("; ")));
    };
    let ids = |said: &Said| {
        let mut ids: Vec<u64> = said.list.iter().filter_map(|member| member.id.parse().ok()).collect();
        ids.sort_unstable();
        ids
    };
    let listed = ids(first);
    if listed.is_empty() || listed.len() != first.list.len() {
        return Err("its list of members cannot be read".to_owned());
    }
    if said.iter().any(|other| other.cluster != first.cluster) {
        return Err("the endpoints are of different clusters".to_owned());
    }
    if said.iter().any(|other| ids(other) != listed) {
        return Err("the endpoints do not agree on who is a member".to_owned());
    }
    let leaders: Vec<u64> = said.iter().map(|other| other.leader).filter(|leader| *leader != 0).collect();
    if leaders.iter().any(|leader| *leader != leaders[0] || !listed.contains(leader)) {
        return Err("the endpoints do not agree on who leads".to_owned());
    }
    let newest = said.iter().map(|other| other.index).max().unwrap_or(0);
    let members = first.list.iter().map(|doc| member(doc, &said, newest, leaders.first().copied())).collect();
    let clients = said.iter().map(|heard| (hexadecimal(heard.own), heard.client)).collect();
    Ok(Known { members, clients })
}

fn member(doc: &MemberDoc, said: &[Said], newest: u64, leader: Option<u64>) -> Member {
    let id: u64 = doc.id.parse().unwrap_or(0);
    let own = said.iter().find(|heard| heard.own == id);
    let unwell = match own {
        None => "no endpoint of the roster that answers is its own".to_owned(),
        Some(_) if doc.is_learner => "it is a learner".to_owned(),
        Some(heard) if !heard.errors.is_empty() => heard.errors.join(", "),
        Some(heard) if heard.leader == 0 => "it knows no leader".to_owned(),
        Some(heard) if heard.applied.saturating_add(BEHIND_MAX) < newest => {
            format!("it is {} entries behind", newest - heard.applied)
        }
        Some(_) => String::new(),
    };
    Member {
        id: hexadecimal(id),
        name: doc.name.clone(),
        hosts: doc.peers.iter().filter_map(|url| host(url)).collect(),
        healthy: unwell.is_empty(),
        unwell,
        is_leader: leader == Some(id),
    }
}

async fn ask(client: &impl ApiClient, index: usize) -> Result<Said, String> {
    let status: StatusDoc = read(client, "/v3/maintenance/status", &json!({})).await?;
    // Through the quorum: a member that is cut off would tell an old list of its own.
    let list: ListDoc = read(client, "/v3/cluster/member/list", &json!({"linearizable": true})).await?;
    // What is zero is left out of an answer.
    let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
    let garbled = || "its status cannot be read".to_owned();
    Ok(Said {
        client: index,
        own: number(&status.header.member_id).filter(|id| *id != 0).ok_or_else(garbled)?,
        cluster: number(&status.header.cluster_id).ok_or_else(garbled)?,
        leader: number(&status.leader).ok_or_else(garbled)?,
        index: number(&status.raft_index).ok_or_else(garbled)?,
        applied: number(&status.raft_applied_index).ok_or_else(garbled)?,
        errors: status.errors,
        list: list.members,
    })
}

async fn read<T: DeserializeOwned>(client: &impl ApiClient, path: &str, body: &Value) -> Result<T, String> {
    let given = send(client, path, body).await.map_err(|refused| refused.cause)?;
    serde_json::from_slice(&given).map_err(|_| "an answer of etcd cannot be read".to_owned())
}

async fn send(client: &impl ApiClient, path: &str, body: &Value) -> Result<Vec<u8>, Refused> {
    let request = Request {
        place: Place::Etcd,
        verb: Verb::Post,
        target: path.to_owned(),
        body: Some(body.to_string().into_bytes()),
        about: None,
    };
    client.send(request).await.map(|given| given.body)
}

/// What stands against taking this member out: another that is not well, or too few that are left.
pub(super) fn against_removal(members: &[Member], id: &str) -> Vec<String> {
    let others: Vec<&Member> = members.iter().filter(|member| member.id != id).collect();
    let mut against = Vec::new();
    if let Some(sick) = others.iter().find(|member| !member.healthy) {
        let why = if sick.unwell.is_empty() { String::new() } else { format!(": {}", sick.unwell) };
        against.push(format!("another member of etcd is not well: {}{why}", sick.called()));
    }
    let needed = members.len() / 2 + 1;
    if others.iter().filter(|member| member.healthy).count() < needed {
        against.push(format!("without it etcd has fewer than {needed} of {} members", members.len()));
    }
    against
}

/// Takes the member of this id out, by one call, after a look of a moment ago.
pub async fn remove(clients: &[impl ApiClient], id: &str) -> Outcome {
    let known = match known(clients).await {
        Ok(known) => known,
        Err(why) => return Outcome::Failed { why },
    };
    let Some(member) = known.members.iter().find(|member| member.id == id) else {
        return Outcome::AlreadySo;
    };
    let against = against_removal(&known.members, id);
    if !against.is_empty() {
        return Outcome::Failed { why: against.join("; ") };
    }
    // The first by id of those that stay: asked again, it is the same.
    let heir = known.members.iter().filter(|other| other.id != id).min_by_key(|other| &other.id);
    let client_of = |id: &str| {
        let found = known.clients.iter().find(|(whose, _)| whose == id);
        found.and_then(|(_, client)| clients.get(*client))
    };
    let (Some(heir), Some(own)) = (heir, decimal(id)) else {
        return Outcome::Refused { why: format!("{id} is not the id of a member beside others") };
    };
    if member.is_leader {
        let (Some(client), Some(target)) = (client_of(id), decimal(&heir.id)) else {
            return Outcome::Failed { why: "it leads, and cannot be asked to hand over".to_owned() };
        };
        let body = json!({"targetID": target});
        if let Err(refused) = send(client, "/v3/maintenance/transfer-leadership", &body).await {
            return Outcome::Failed { why: format!("it leads, and does not hand over: {}", refused.cause) };
        }
    }
    let Some(client) = client_of(&heir.id) else {
        return Outcome::Failed { why: "no other member can be asked".to_owned() };
    };
    match send(client, "/v3/cluster/member/remove", &json!({"ID": own})).await {
        Ok(_) => Outcome::Accepted,
        Err(refused) if refused.missing => Outcome::AlreadySo,
        Err(Refused { cause: why, may_have_happened: true, .. }) => Outcome::Unknown { why },
        Err(Refused { cause: why, code: Some(400..=403 | 405), .. }) => Outcome::Refused { why },
        Err(Refused { cause: why, .. }) => Outcome::Failed { why },
    }
}

fn hexadecimal(id: u64) -> String {
    format!("{id:x}")
}

fn decimal(id: &str) -> Option<String> {
    u64::from_str_radix(id, 16).ok().map(|id| id.to_string())
}

/// The host of `https://10.0.0.1:2380` or `https://[fd00::1]:2380`.
fn host(url: &str) -> Option<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('/').next()?;
    let host = match rest.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next()?,
        None => rest.rsplit_once(':').map_or(rest, |(host, _)| host),
    };
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_peer_address_is_found_in_each_spelling() {
        for (url, expected) in [
            ("https://10.0.0.1:2380", Some("10.0.0.1")),
            ("http://[fd00::1]:2380", Some("fd00::1")),
            ("https://etcd-1.shop:2380/", Some("etcd-1.shop")),
            ("10.0.0.1", Some("10.0.0.1")),
            ("https://", None),
        ] {
            assert_eq!(host(url).as_deref(), expected, "{url}");
        }
    }
}
