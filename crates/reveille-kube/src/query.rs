//! Reads of one object, past every cache.
//!
//! A [`Look`] goes in; the object, or the reason why it could not be read, comes out. The answer is "it is not there" only when
//! the API server itself says so of this very name; a 404 from a proxy in between is a failed read. Looks at clouds do not belong
//! to this adapter and fail as such.

use std::sync::Arc;
use std::time::Duration;

use reveille_core::effect::{Look, ReadError, ReadErrorKind};
use reveille_core::event::Answer;
use reveille_core::model::evidence::Source;
use reveille_core::model::id::NodeName;
use reveille_core::model::log_evidence::{EvidenceQuery, Said, Unread};
use reveille_core::model::node::{Node, NodeEvent};
use serde_json::value::RawValue;

use crate::failure::{Failure, Reached};
use crate::session::Question;
use crate::shared::Shared;
use crate::{node_events, paths};

const LOOK_WITHIN: Duration = Duration::from_secs(30);

/// Carries out one look.
pub(crate) async fn query(cluster: &Shared, look: &Look) -> Result<Answer, ReadError> {
    match look {
        Look::Node(name) => node(cluster, name)
            .await
            .map(Answer::Node)
            .map_err(|failure| failure.read_error(&format!("read node {name}"), None)),
        Look::NodeEvents(name) => events(cluster, name)
            .await
            .map_err(|failure| failure.read_error(&format!("read events about node {name}"), None)),
        Look::LogEvidence(_, _, evidence_query) => {
            Ok(Answer::Said(Arc::new(said(cluster, evidence_query).await)))
        }
        Look::Instance(..)
        | Look::Ports(..)
        | Look::Group(..)
        | Look::Router(..)
        | Look::Console(..)
        | Look::Actions(..)
        | Look::Roles(..) => Err(ReadError {
            kind: ReadErrorKind::Malformed,
            text: Arc::from("cluster: was asked about a cloud, which only the cloud's adapter can answer"),
            retry_after: None,
        }),
    }
}

pub(crate) async fn node(cluster: &Shared, name: &NodeName) -> Result<Option<Arc<Node>>, Failure> {
    check(name)?;
    let ask = paths::node(name).map_err(|error| Failure::unsendable(&error))?;
    let question = Question { ask, within: LOOK_WITHIN, about: Some(name.as_str().to_owned()) };
    let mut body = Vec::new();
    match cluster.session.read(question, &mut body).await {
        Ok(_) => {}
        Err(failure) if failure.is_missing() => return Ok(None),
        Err(failure) => return Err(failure),
    }
    let raw: &RawValue =
        serde_json::from_slice(&body).map_err(|error| Failure::unread("the answer", &error))?;
    match cluster.read_node(raw) {
        Some(read) if read.node.name == *name => Ok(Some(read.node)),
        _ => Err(Failure::malformed("the answer is not that node")),
    }
}

async fn events(cluster: &Shared, name: &NodeName) -> Result<Answer, Failure> {
    list(cluster, name).await.map(Answer::NodeEvents)
}

async fn list(cluster: &Shared, name: &NodeName) -> Result<Vec<NodeEvent>, Failure> {
    check(name)?;
    node_events::list(cluster, Some(name)).await.map(|(events, _)| events)
}

/// What explains a machine by words. Each part fails by itself, and says so.
async fn said(cluster: &Shared, evidence_query: &EvidenceQuery) -> Said {
    let of_node = async {
        match &evidence_query.node {
            Some(name) => futures::join!(node(cluster, name), list(cluster, name)),
            None => (Ok(None), Ok(Vec::new())),
        }
    };
    let ((node, events), requests) = futures::join!(
        of_node,
        cluster.requests.of(&cluster.session, &cluster.interner, &evidence_query.asks_as)
    );
    let mut unread = Vec::new();
    Said {
        node: told(node, Source::OwnNode, &mut unread),
        events: told(events, Source::Events, &mut unread),
        requests: told(requests, Source::CertificateRequests, &mut unread),
        unread,
    }
}

fn told<T: Default>(read: Result<T, Failure>, source: Source, unread: &mut Vec<Unread>) -> T {
    read.unwrap_or_else(|failure| {
        let why = failure.read_error(&format!("read {source}"), None).text;
        unread.push(Unread { source, why });
        T::default()
    })
}

fn check(name: &NodeName) -> Result<(), Failure> {
    if paths::is_safe(name) {
        return Ok(());
    }
    let cause = format!("{:?} cannot be the name of a node", name.as_str());
    Err(Failure::new(ReadErrorKind::Malformed, Reached::NotSent, cause))
}
