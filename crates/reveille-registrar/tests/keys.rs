//! What a key still opens: that was replaced, that a copy of a disk has, too, or whose certificate is over.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use reveille_core::model::time::Time;
use support::site;

/// A copy of a disk, on another machine; the first one is connected the whole time.
#[tokio::test]
async fn a_copy_of_a_disk_that_renews_does_not_lock_its_machine_out() {
    let now = Time::from_ms(1_795_000_000_000);
    let site = site().await;
    let (who, credential) = site.enrolled(1).await;
    let first = site.link.session(&credential, who.hello()).await.unwrap();
    // With the copied key: the next certificate, for which nobody asks who it is.
    let (copied, _) = site.link.renew(&credential, now).await.unwrap();
    let mut hello = who.hello();
    hello.identity.system_uuid = Some("another-machine".into());
    hello.identity.boot_id = "another-boot".into();
    let refused = site.link.session(&copied, hello).await.unwrap_err();
    assert_eq!(support::code(&refused), "IDENTITY_CONFLICT");
    // It leaves out what would differ.
    let mut hello = who.hello();
    (hello.identity.system_uuid, hello.identity.instance_id) = (None, None);
    let refused = site.link.session(&copied, hello).await.unwrap_err();
    assert_eq!(support::code(&refused), "IDENTITY_INCOMPLETE");
    // The first machine's connection breaks once.
    drop(first);
    let again = site.link.session(&credential, who.hello()).await;
    assert_eq!(again.err().map(|error| support::code(&error)), None, "the machine, refused for its copy");
    site.end().await;
}
