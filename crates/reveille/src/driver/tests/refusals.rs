//! A ledger that refuses or breaks: the loop ends, or says what it could not write once.

use super::*;

/// A ledger with a bug.
struct Broken;

impl Keeper for Broken {
    fn keep(&mut self, _: &[Record]) -> Vec<Result<(), Arc<str>>> {
        panic!("a keeper with a bug")
    }

    fn rotation_due(&self) -> bool {
        false
    }

    fn rotate(&mut self, _: &[Record]) -> Result<(), String> {
        Ok(())
    }

    fn beat(&mut self, _: Time) -> Result<(), String> {
        Ok(())
    }

    fn is_over(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_ledger_whose_thread_panics_ends_the_loop() {
    let (fake, book) = (Arc::new(Fake::default()), Book::default());
    let bench = start_with(fake, &book, Box::new(Broken), fresh(1), Until::Told, leads(1), clock::system());
    bench.show().await;
    let fake = bench.fake.clone();
    let (_, ended) = tokio::time::timeout(PATIENCE, bench.running).await.unwrap().unwrap();
    assert_eq!((ended, fake.calls()), (Ended::LedgerOver, 0));
}
