//! Certificate signing requests, listed when a caller asks why a machine did not join.
//!
//! ```text
//!  a machine's words are wanted ─▶ a list that is young enough? ─ yes ─▶ those in its name, newest first
//!                                   └─ no: pages, once for all who wait ┘
//! ```
//!
//! No selector of the API finds a machine's requests, so all are listed; a thousand machines that fail together share one list.
//! They are hints, like events. The caller learns when the controller may not read them, and a refusal counts for the same time
//! as a list. A list that was not read to its end never means "there is none".

use std::sync::Arc;
use std::time::Duration;

use reveille_core::model::id::NodeName;
use reveille_core::model::log_evidence::CertificateRequest;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::intern::Interner;
use crate::mapping::request;
use crate::page::{Limit, page};
use crate::paths;
use crate::session::Session;

/// Pages read at most. The controller manager takes requests away after a day at the latest.
const PAGES_MAX: usize = 20;

/// A list this old serves every caller: a request waits for minutes before it explains anything.
const FRESH: Duration = Duration::from_secs(10);

/// Requests of one machine, the newest.
const OF_ONE_MAX: usize = 8;

type Listed = Result<Arc<Vec<(NodeName, CertificateRequest)>>, Failure>;

/// The newest list, or why there is none.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Option<(Instant, Listed)>>);

impl Recent {
    /// The requests in the name of this machine, newest first.
    pub(crate) async fn of(
        &self,
        session: &Session,
        interner: &Interner,
        asks_as: &NodeName,
    ) -> Result<Vec<CertificateRequest>, Failure> {
        let all = self.read(session, interner).await?;
        let mine = all.iter().filter(|(node, _)| is_called(node.as_str(), asks_as.as_str()));
        Ok(mine.map(|(_, request)| request.clone()).take(OF_ONE_MAX).collect())
    }

    async fn read(&self, session: &Session, interner: &Interner) -> Listed {
        let mut recent = self.0.lock().await;
        if let Some((at, listed)) = &*recent
            && at.elapsed() < FRESH
        {
            return listed.clone();
        }
        let began = Instant::now();
        let listed = list(session, interner).await.map(Arc::new);
        *recent = Some((began, listed.clone()));
        listed
    }
}

/// A kubelet may add the domain that its machine is in.
fn is_called(node: &str, name: &str) -> bool {
    node.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

async fn list(
    session: &Session,
    interner: &Interner,
) -> Result<Vec<(NodeName, CertificateRequest)>, Failure> {
    let mut requests = Vec::new();
    let mut next = None;
    let (limit, mut body) = (Limit::default(), Vec::new());
    for _ in 0..PAGES_MAX {
        let ask = |limit| paths::requests_page(limit, next.clone());
        let page = page(session, &limit, ask, "certificate requests", &mut body).await?;
        requests.extend(page.items.into_iter().filter_map(|raw| request(raw, interner)));
        next = page.next;
        if next.is_none() {
            // RFC 3339 in UTC sorts as text; the stamps are only compared with each other here.
            requests.sort_by(|(_, a), (_, b)| (&b.stamped, &b.name).cmp(&(&a.stamped, &a.name)));
            return Ok(requests);
        }
    }
    Err(Failure::incomplete(format!("there are more than {PAGES_MAX} pages of certificate requests")))
}
