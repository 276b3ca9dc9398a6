//! Each change of a kind, told by its name alone.
//!
//! ```text
//!  list ─▶ Listed … ─▶ watch ─▶ Watched ─▶ Written, Gone, … ─┬ watch ends: the next one, from the same place
//!   ▲                                                       └ place lost ─▶ Blind
//!   └───────────────────────────────────────────────────────────────────────┘
//! ```

use std::borrow::Cow;
use std::time::Duration;

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::time::Span;
use reveille_hot::kinds::Generation;
use reveille_hot::stamp::Stamp;
use reveille_hot::{Event, Object, Resource};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc::Sender;

use super::Untold;
use crate::backoff::Backoff;
use crate::failure::Failure;
use crate::kind::Kind;
use crate::paths;
use crate::session::Question;
use crate::shared::Shared;
use crate::watch_request::{Step, WatchRequest};

/// Fifty thousand objects, a kilobyte or two of metadata each.
const LIST_WITHIN: Duration = Duration::from_secs(60);
/// Length of one watch. Longer ones cost the server less, and a watch that fell silent is found that much later.
const WATCH_FOR: Duration = Duration::from_secs(120);
/// A server that ends its watches at once is asked no faster.
const TURN_MIN: Duration = Duration::from_secs(1);

/// The few fields of an object's metadata that are read.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: HeadMeta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMeta<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource_version: Option<Cow<'a, str>>,
    #[serde(default)]
    generation: Option<u64>,
    #[serde(borrow, default)]
    creation_timestamp: Option<Cow<'a, str>>,
}

/// The receiver is gone.
fn unheard() -> Failure {
    Failure::malformed("nothing listens")
}

fn object(resource: &Resource, head: &HeadMeta<'_>) -> Object {
    Object::new(resource.clone(), head.namespace.as_deref().unwrap_or_default(), &head.name)
}

/// Lists the kind from the server's cache; the place in history that it stands for.
pub(super) async fn list(cluster: &Shared, kind: &Kind, events: &Sender<Event>) -> Result<String, Failure> {
    let ask = paths::heads(kind).map_err(|error| Failure::unsendable(&error))?;
    let question = Question { ask, within: LIST_WITHIN, about: None };
    let mut found: Vec<(Object, u64, Option<Stamp>)> = Vec::new();
    let mut each = |raw: &RawValue| {
        // Where a generation counts nothing, an object is worth no memory before it is written.
        if kind.counts == Generation::Nothing {
            return;
        }
        let Ok(Head { metadata }) = serde_json::from_str::<Head<'_>>(raw.get()) else { return };
        let born = metadata.creation_timestamp.as_deref().and_then(Stamp::of_rfc3339);
        if let Some(generation) = metadata.generation {
            found.push((object(&kind.resource, &metadata), generation, born));
        }
    };
    let what = format!("list of {}", kind.resource);
    let metadata = cluster.session.read_items(question, &what, &mut each).await?;
    // Both moments are of the API server's clock: when it answered, and when it stored the object.
    let answered = metadata.date.as_deref().and_then(Stamp::of_http_date);
    for (object, generation, born) in found {
        let age: Option<Span> = answered.zip(born).map(|(answered, born)| answered.after(born));
        let event = Event::Listed { object, generation, age, counts: kind.counts };
        events.send(event).await.map_err(|_| unheard())?;
    }
    Ok(metadata.resource_version.unwrap_or_default())
}

/// Lists and watches, and lists again when the watch loses its place.
pub(super) async fn changes(cluster: &Shared, kind: &Kind, events: &Sender<Event>) -> Result<(), Untold> {
    let mut backoff = Backoff::new(cluster.rhythm.backoff_min, cluster.rhythm.backoff_max);
    while !events.is_closed() {
        let failure = match list(cluster, kind, events).await {
            Ok(version) => follow(cluster, kind, events, version, &mut backoff).await,
            Err(failure) => failure,
        };
        if failure.kind == ReadErrorKind::Forbidden {
            return Err(failure.into());
        }
        if events.send(Event::Blind(kind.resource.clone())).await.is_err() {
            break;
        }
        tracing::debug!(kind = %kind.resource, "cluster: {}", failure.cause);
        tokio::time::sleep(backoff.failed(failure.retry_after)).await;
    }
    Ok(())
}

/// Watch after watch, until one fails.
async fn follow(
    cluster: &Shared,
    kind: &Kind,
    events: &Sender<Event>,
    mut version: String,
    backoff: &mut Backoff,
) -> Failure {
    let seconds = u32::try_from(WATCH_FOR.as_secs()).unwrap_or(u32::MAX);
    let mut is_first = true;
    loop {
        let began = tokio::time::Instant::now();
        let opened =
            WatchRequest::open(&cluster.session, paths::heads_watch(kind, &version, seconds), WATCH_FOR)
                .await;
        let mut watch = match opened {
            Ok(watch) => watch,
            Err(failure) => return failure,
        };
        if std::mem::take(&mut is_first) && events.send(Event::Watched(kind.resource.clone())).await.is_err()
        {
            return unheard();
        }
        loop {
            let (raw, is_there) = match watch.next().await {
                Ok(Some(Step::Put(raw))) => (raw, true),
                Ok(Some(Step::Gone(raw))) => (raw, false),
                Ok(Some(Step::Mark(mark))) => {
                    version = mark.unwrap_or(version);
                    continue;
                }
                // Metadata has a bound of its own; a longer line is no write that the detector counts.
                Ok(Some(Step::Long(_))) => continue,
                Ok(None) => break,
                Err(failure) => return failure,
            };
            let Ok(Head { metadata }) = serde_json::from_str::<Head<'_>>(raw.get()) else { continue };
            if let Some(reached) = &metadata.resource_version {
                reached.as_ref().clone_into(&mut version);
            }
            let object = object(&kind.resource, &metadata);
            let event = if is_there { Event::Written(object) } else { Event::Gone(object) };
            if events.send(event).await.is_err() {
                return unheard();
            }
        }
        backoff.worked();
        if began.elapsed() < TURN_MIN {
            tokio::time::sleep(TURN_MIN).await;
        }
    }
}
