//! Two loops for one cluster, each with a ledger of its own: only the one with the Lease acts.

use super::*;
use crate::driver::alone::tests::two_presences;

#[tokio::test]
async fn two_controllers_of_one_roster_make_one_call() {
    let (first, second) = two_presences().await;
    let (one, two) = (Book::default(), Book::default());
    let first = start(Fake::default(), &one, fresh(1), Until::Told, first.and(leads(1)));
    let second = start(Fake::default(), &two, fresh(1), Until::Told, second.and(leads(1)));
    first.show().await;
    second.show().await;
    first
        .until("a held repair", |bench| bench.book.has(|r| matches!(r, Record::Judged { held: true, .. })))
        .await;
    second.until("an intent", |bench| bench.book.has(is_intent)).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!((first.fake.calls(), second.fake.calls()), (1, 0));
    second.running.abort();
    first.end().await;
}
