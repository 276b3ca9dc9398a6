//! One object, whole: read once, or version after version.
//!
//! A watch of a single object tells every version of it, in order, which no reading at intervals does: two writers that take
//! turns faster than we read would look like one.

use std::time::Duration;

use reveille_hot::{Event, Object};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc::Sender;

use crate::failure::Failure;
use crate::kind::Kind;
use crate::paths;
use crate::session::Question;
use crate::shared::Shared;
use crate::watch_request::{Step, WatchRequest};

const READ_WITHIN: Duration = Duration::from_secs(20);
/// The detector has seen enough before.
const FOLLOW_FOR: Duration = Duration::from_secs(60);
/// etcd takes nothing larger.
const OBJECT_MAX_BYTES: usize = 3 << 20;

/// Tells the versions until a minute is over, or the receiver is gone.
pub(super) async fn versions(cluster: &Shared, kind: &Kind, object: &Object, events: &Sender<Event>) {
    if let Err(why) = follow(cluster, kind, object, events).await {
        // An error means that the receiver is gone: there is no task to tell.
        let _ = events.send(Event::Unfollowable(object.clone(), why.cause)).await;
    }
}

async fn follow(
    cluster: &Shared,
    kind: &Kind,
    object: &Object,
    events: &Sender<Event>,
) -> Result<(), Failure> {
    check(object)?;
    let seconds = u32::try_from(FOLLOW_FOR.as_secs()).unwrap_or(u32::MAX);
    let ask = paths::object_watch(kind, object, seconds);
    let mut watch = WatchRequest::open(&cluster.session, ask, FOLLOW_FOR).await?;
    while let Some(step) = watch.next().await? {
        if let Step::Put(raw) = step
            && let Some(whole) = whole(raw)
            && events.send(Event::Version(object.clone(), Box::new(whole))).await.is_err()
        {
            break;
        }
    }
    Ok(())
}

fn whole(raw: &RawValue) -> Option<Value> {
    if raw.get().len() > OBJECT_MAX_BYTES {
        return None;
    }
    serde_json::from_str(raw.get()).ok()
}

/// Names come from logs that an operator gave us, too: a text that cannot be a name never becomes part of a path.
fn check(object: &Object) -> Result<(), Failure> {
    let namespace = &object.namespace;
    if paths::is_plain(&object.name) && (namespace.is_empty() || paths::is_plain(namespace)) {
        return Ok(());
    }
    Err(Failure::malformed(format!("{object} cannot be the name of an object")))
}

pub(super) async fn read(cluster: &Shared, kind: &Kind, object: &Object) -> Result<Option<Value>, Failure> {
    check(object)?;
    let ask = paths::object(kind, object).map_err(|error| Failure::unsendable(&error))?;
    let question = Question { ask, within: READ_WITHIN, about: Some(object.name.to_string()) };
    let mut body = Vec::new();
    match cluster.session.read(question, &mut body).await {
        Ok(_) => {}
        Err(failure) if failure.is_missing() => return Ok(None),
        Err(failure) => return Err(failure),
    }
    let whole = serde_json::from_slice(&body);
    whole.map(Some).map_err(|error| Failure::unread(object, &error))
}
