//! EC2's words in a roster: one cluster's machines in one region of an account.
//!
//! Credentials come from the usual chain (environment, profile, web identity, instance role); a roster holds none. A tag of EC2
//! is a key with a value; the cluster's key alone stands for the values `owned` and `shared` alike.

use std::sync::Arc;

use reveille_core::model::instance::Mark;
use reveille_core::model::time::Span;

use super::{Words, more};
use crate::roster::complaint::{Complaints, quote};
use crate::roster::scalar::scalar;
use crate::roster::section::{Field, Section};
use crate::roster::shape::EC2;
use crate::roster::{CloudRef, Origin};

pub(super) static WORDS: Words = Words {
    field: "ec2",
    example: ("aws", "{region: …, cluster: …}", ""),
    read,
    line,
    // One part of EC2 may not know for minutes what another part has created ("eventual consistency" in its reference).
    settles_within: Some(Span::from_min(5)),
    tag,
    spelled: |mark| match mark {
        Mark::Metadata(key, value) if is_plain_pair(key, value) => Mark::Tag(format!("{key}={value}").into()),
        _ => mark.clone(),
    },
    takes_key: (|key| !key.is_empty() && fits(key, KEY_CHARS_MAX), TAGS),
    is_group_id: |text| {
        let digits = text.strip_prefix("sg-").unwrap_or_default();
        matches!(digits.len(), 8 | 17) && digits.chars().all(|c| c.is_ascii_hexdigit())
    },
};

fn read(field: &Field<'_>, _: &Origin<'_>, complaints: &mut Complaints) -> Option<CloudRef> {
    let section = Section::open(field, EC2, complaints)?;
    let region = section.require("region", "name the region, as in eu-central-1", complaints);
    let region = region.and_then(|field| plain(&field, "a region such as eu-central-1", complaints));
    let cluster = section.require(
        "cluster",
        "write the id in the tag key kubernetes.io/cluster/<id> that its instances carry",
        complaints,
    );
    let cluster = cluster.and_then(|field| plain(&field, "the id of kubernetes.io/cluster/<id>", complaints));
    let profile = section
        .take("profile")
        .map(|field| field.text("a profile of ~/.aws/config", complaints).map(str::to_owned));
    let endpoint = section.take("endpoint").map(|field| endpoint(&field, complaints));
    Some(CloudRef::Ec2 {
        region: region?,
        profile: match profile {
            None => None,
            Some(read) => Some(read?),
        },
        endpoint: match endpoint {
            None => None,
            Some(read) => Some(read?),
        },
        cluster: cluster?,
    })
}

fn line(at: &CloudRef) -> String {
    let CloudRef::Ec2 { region, profile, endpoint, cluster } = at else { return String::new() };
    let (region, id) = (scalar(region), scalar(cluster));
    let (profile, endpoint) = (more("profile", profile.as_deref()), more("endpoint", endpoint.as_deref()));
    format!(
        "ec2: {{region: {region}{profile}{endpoint}, cluster: {id}}}  # as in the tag kubernetes.io/cluster/{cluster}"
    )
}

fn tag(text: &str, at: Option<&CloudRef>) -> Result<Mark, (String, String)> {
    let cluster = match at {
        Some(CloudRef::Ec2 { cluster, .. }) => cluster.as_str(),
        _ => "",
    };
    if text.strip_prefix("kubernetes.io/cluster/") == Some(cluster) {
        return Ok(Mark::Tag(Arc::from(text)));
    }
    let Some((key, value)) = text.split_once('=') else {
        let wrong = format!("{} is a key without a value", quote(text));
        return Err((wrong, format!("write key=value, or kubernetes.io/cluster/{cluster}")));
    };
    if is_plain_pair(key, value) {
        return Ok(Mark::Metadata(Arc::from(key), Arc::from(value)));
    }
    Err((format!("{} cannot be a tag of EC2", quote(text)), TAGS.to_owned()))
}

/// A word of letters, digits and "-", "_", "."; not a whole tag key or address, of which only one part belongs here.
fn plain(field: &Field<'_>, what: &str, complaints: &mut Complaints) -> Option<String> {
    let text = field.text(what, complaints)?;
    if text.len() <= 128 && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        return Some(text.to_owned());
    }
    let wrong = format!("{} is not {what}", quote(text));
    complaints.add(&field.spot, wrong, "write letters, digits, \"-\", \"_\" and \".\" only");
    None
}

fn endpoint(field: &Field<'_>, complaints: &mut Complaints) -> Option<String> {
    let text = field.text("an address such as https://ec2.eu-central-1.amazonaws.com", complaints)?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['@', ' ', '?', '#'])) {
        return Some(text.to_owned());
    }
    let wrong = format!("{} is not the address of an API", quote(text));
    complaints.add(&field.spot, wrong, "write https://HOST, without a user, a query or blanks");
    None
}

/// Whether `key=value` is a tag of EC2 that the reader turns into this pair.
fn is_plain_pair(key: &str, value: &str) -> bool {
    let taken = fits(key, KEY_CHARS_MAX) && fits(value, VALUE_CHARS_MAX);
    taken && !key.is_empty() && !key.contains('=')
}

/// From the EC2 reference.
const KEY_CHARS_MAX: usize = 128;
const VALUE_CHARS_MAX: usize = 256;
const TAGS: &str =
    "use letters, digits, blanks and \"_\", \".\", \":\", \"/\", \"=\", \"+\", \"-\", \"@\", as EC2 requires";

fn fits(text: &str, chars_max: usize) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || " _.:/=+-@".contains(c);
    text.chars().count() <= chars_max && text.chars().all(allowed)
}
