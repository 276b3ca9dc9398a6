//! The API server's `/metrics`, as a scrape.

use std::time::Duration;

use reveille_hot::metrics::Scrape;

use crate::failure::Failure;
use crate::paths;
use crate::session::Question;
use crate::shared::Shared;

/// A megabyte or two; a server that is short of memory takes its time.
const WITHIN: Duration = Duration::from_secs(20);

pub(super) async fn scrape(cluster: &Shared) -> Result<Scrape, Failure> {
    let ask = paths::metrics().map_err(|error| Failure::malformed(error.to_string()))?;
    let mut body = Vec::new();
    cluster.session.read(Question { ask, within: WITHIN, about: None }, &mut body).await?;
    let text =
        std::str::from_utf8(&body).map_err(|_| Failure::malformed("the server's counts are no text"))?;
    Ok(Scrape::of_text(text))
}
