//! OpenStack's words in a roster: an entry of a clouds.yaml.
//!
//! Credentials are in that file; a roster holds none. What a tag and a metadata key may look like is Nova's rule.

use std::sync::Arc;

use reveille_core::model::instance::Mark;

use super::{Words, more, path};
use crate::roster::complaint::{Complaints, quote};
use crate::roster::scalar::{is_uuid, scalar};
use crate::roster::section::{Field, Section};
use crate::roster::shape::OPENSTACK;
use crate::roster::{CloudRef, Origin};

const TAG_CHARS_MAX: usize = 60;
const KEY_CHARS_MAX: usize = 255;
const KEYS: &str = "use letters, digits, blanks and \"-\", \"_\", \":\", \".\", as Nova requires";

pub(super) static WORDS: Words = Words {
    field: "openstack",
    example: ("os", "{cloud: …}", ", an entry of clouds.yaml,"),
    read,
    line,
    settles_within: None,
    tag,
    spelled: Mark::clone,
    takes_key: (takes_key, KEYS),
    is_group_id: is_uuid,
};

fn read(field: &Field<'_>, origin: &Origin<'_>, complaints: &mut Complaints) -> Option<CloudRef> {
    let section = Section::open(field, OPENSTACK, complaints)?;
    let entry = section.require("cloud", "name an entry of clouds.yaml", complaints);
    let entry = entry.and_then(|field| field.text("the name of an entry of clouds.yaml", complaints));
    let file = section.take("cloudsFile").map(|field| path(&field, origin, complaints));
    Some(CloudRef::OpenStack {
        cloud: entry?.to_owned(),
        clouds_file: match file {
            None => None,
            Some(read) => Some(read?),
        },
    })
}

fn line(at: &CloudRef) -> String {
    let CloudRef::OpenStack { cloud, clouds_file } = at else { return String::new() };
    let file = clouds_file.as_ref().map(|path| path.to_string_lossy());
    let file = more("cloudsFile", file.as_deref());
    format!("openstack: {{cloud: {}{file}}}  # an entry of clouds.yaml", scalar(cloud))
}

fn tag(text: &str, _: Option<&CloudRef>) -> Result<Mark, (String, String)> {
    if let Some(bad) = text.chars().find(|c| matches!(c, ',' | '/')) {
        let wrong = format!("{} cannot be a tag: Nova allows no {bad:?} in one", quote(text));
        return Err((wrong, "use another tag, or a metadata pair".to_owned()));
    }
    if text.chars().count() > TAG_CHARS_MAX {
        let wrong = format!("{} cannot be a tag: it is longer than {TAG_CHARS_MAX} characters", quote(text));
        return Err((wrong, "use a shorter tag, or a metadata pair".to_owned()));
    }
    Ok(Mark::Tag(Arc::from(text)))
}

fn takes_key(key: &str) -> bool {
    (1..=KEY_CHARS_MAX).contains(&key.chars().count())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.' | ' '))
}
