//! The words about a cloud that tells how it hosts its machines: pools kept by a group of it, problems that it finds, announces,
//! takes back, and does not know yet.
//!
//! Two tables, one for each section. What is claimed afterwards needs no words of its own.

use reveille_core::model::id::InstanceId;
use reveille_core::model::time::Span;

use crate::world::fault::Fault;
use crate::world::layout::PoolHosting;

use super::deed::{Deed, Made, each};
use super::phrase::{Phrase, Slots};
use super::stage::{Change, pools};

#[rustfmt::skip]
pub(crate) const GIVEN: &[Phrase<Change>] = &[
    Phrase { form: "the cloud tells how it hosts pool {pool}", make: |s| hosted(s, |_| {}) },
    Phrase { form: "a group of the cloud keeps pool {pool}", make: |s| hosted(s, |hosting| hosting.group = true) },
    Phrase { form: "pool {pool} may be replaced through its group", make: |s| {
        hosted(s, |hosting| (hosting.group, hosting.through) = (true, true))
    } },
    Phrase { form: "pool {pool} is sold until the provider wants it back", make: |s| hosted(s, |hosting| hosting.spot = true) },
    Phrase { form: "machines of pool {pool} lose their disks when they stop", make: |s| hosted(s, |hosting| hosting.loses_disks = true) },
    Phrase { form: "the cloud takes {span} to agree with itself", make: |s| {
        let settles = s.span()?;
        Ok(Box::new(move |stage| { stage.layout.settles = Some(settles); Ok(()) }))
    } },
];

#[rustfmt::skip]
pub(crate) const WHEN: &[Phrase<Deed>] = &[
    Phrase { form: "the host of {machines} breaks", make: |s| each(s, Fault::HostImpaired) },
    Phrase { form: "{machines} [hangs|hang] altogether", make: |s| each(s, Fault::GuestImpaired) },
    Phrase { form: "the provider's check of the host of {machines} fails wrongly for {span}", make: |s| {
        lasting(s, Fault::CheckWrong)
    } },
    Phrase { form: "the provider wants {machines} back", make: |s| each(s, Fault::SpotTaken) },
    Phrase { form: "the provider announces that it stops {machines} in {span}", make: |s| {
        lasting(s, Fault::Retires)
    } },
    Phrase { form: "the group of {machines} replaces [it|them]", make: |s| each(s, Fault::GroupReplaces) },
    Phrase { form: "an operator takes {machines} out of service for {span}", make: |s| lasting(s, Fault::PutApart) },
    Phrase { form: "parts of the cloud do not know {machines} for {span}", make: |s| lasting(s, Fault::NotKnown) },
];

fn lasting(slots: &Slots<'_>, fault: fn(InstanceId, Span) -> Fault) -> Made {
    let lasts = slots.span()?;
    each(slots, move |id| fault(id, lasts))
}

fn hosted(slots: &Slots<'_>, change: fn(&mut PoolHosting)) -> Result<Change, String> {
    pools(slots, true, move |pool| change(pool.hosting.get_or_insert_default()))
}
