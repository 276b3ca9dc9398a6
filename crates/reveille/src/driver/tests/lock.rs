//! Tests what a call does when the lock file cannot be read, and when another process holds the ledger.

use super::*;
use crate::driver::ledger_store;

#[tokio::test]
async fn unreadable_lock_delays_the_call_and_recovers() {
    let directory = tempfile::tempdir().unwrap();
    let opened = ledger_store::open(directory.path(), "reveille run", clock::wall()).unwrap();
    let lock = directory.path().join("ledger/lock");
    let aside = directory.path().join("ledger/lock.aside");
    // Reading a directory fails with EISDIR. Like EMFILE or EIO it is an I/O error that tells nothing about a fence.
    std::fs::rename(&lock, &aside).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let leads = ledger_store::fence_check(directory.path());
    let book = Book::default();
    let bench = start(Fake::default(), &book, fresh(opened.fence.0), Until::Told, leads);
    bench.show().await;
    bench.until("an intent", |bench| bench.book.has(is_intent)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(bench.fake.calls(), 0, "leadership is not proved");
    std::fs::remove_dir(&lock).unwrap();
    std::fs::rename(&aside, &lock).unwrap();
    bench
        .until("a held repair", |bench| bench.book.has(|r| matches!(r, Record::Judged { held: true, .. })))
        .await;
    let (state, _) = bench.end().await;
    assert!(state.context().leading, "an unreadable file is no other leader");
}

#[tokio::test]
async fn higher_fence_ends_the_loop_without_a_call() {
    let directory = tempfile::tempdir().unwrap();
    drop(ledger_store::open(directory.path(), "reveille run", clock::wall()).unwrap());
    let opened = ledger_store::open(directory.path(), "reveille run", clock::wall()).unwrap();
    let leads = ledger_store::fence_check(directory.path());
    let book = Book::default();
    let bench = start(Fake::default(), &book, fresh(opened.fence.0 - 1), Until::Told, leads);
    bench.show().await;
    let fake = bench.fake.clone();
    let ended = tokio::time::timeout(PATIENCE, bench.running).await;
    assert_eq!(fake.calls(), 0);
    let (_, ended) = ended.expect("the former leader neither acts nor ends").unwrap();
    assert_eq!(ended, Ended::Fenced);
}
