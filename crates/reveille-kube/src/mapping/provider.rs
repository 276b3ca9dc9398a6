//! Names of instances as nodes spell them: `spec.providerID` and `status.nodeInfo.systemUUID`.
//!
//! Spellings come from the cloud providers: cloud-provider-openstack writes `openstack:///<id>`, and
//! `openstack://<region>/<id>` where regions are on (its `pkg/openstack/instances.go`). cloud-provider-aws writes
//! `aws:///<zone>/<id>` and reads `aws:////<id>` and the bare id as well (its `pkg/providers/v1/instances.go`); whatever
//! stands before the last part, an EC2 instance is `i-` with 8 or 17 digits in it, and a Fargate node (`…/fargate-ip-…`)
//! or a hybrid one (`mi-…`) is no instance. The UUID is the kubelet's, from
//! the machine's firmware: upper case on some machines, 32 digits without dashes on others, all zeros or ones on boards
//! whose maker did not bother.

use std::sync::Arc;

use reveille_core::model::id::InstanceId;
use reveille_core::model::node::Provider;

use super::{NAME_MAX_BYTES, WORD_MAX_BYTES, within};

const OPENSTACK: &str = "openstack://";
const AWS: &str = "aws://";

/// Reads `spec.providerID`.
pub(crate) fn provider(text: Option<&str>) -> Provider {
    let text = text.unwrap_or_default().trim();
    if text.is_empty() {
        return Provider::Unset;
    }
    if let Some(id) = ec2_instance(text) {
        return Provider::Instance(InstanceId::new(id));
    }
    let id = text.strip_prefix(OPENSTACK).and_then(|rest| rest.split_once('/')).map(|(_region, id)| id);
    match id {
        Some(id) if is_plain(id) => Provider::Instance(InstanceId::new(canonical(id))),
        _ => Provider::Unread(Arc::from(within(text, NAME_MAX_BYTES))),
    }
}

/// The EC2 instance that a provider ID names: bare, or as the last part of one of AWS.
fn ec2_instance(text: &str) -> Option<String> {
    let id = match text.strip_prefix(AWS) {
        Some(rest) => {
            let (zone, id) = rest.rsplit_once('/')?;
            // A zone, or a region and a zone, or nothing: more parts are another kind of machine.
            (zone.trim_start_matches('/').matches('/').count() <= 1).then_some(id)?
        }
        None => text,
    };
    let digits = id.strip_prefix("i-")?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte.to_ascii_lowercase());
    (matches!(digits.len(), 8 | 17) && digits.bytes().all(is_digit)).then(|| id.to_ascii_lowercase())
}

/// Reads `status.nodeInfo.systemUUID`; `None` when it is not a UUID or names no machine.
pub(crate) fn system_uuid(text: Option<&str>) -> Option<InstanceId> {
    let digits = uuid_digits(text?.trim())?;
    let first = digits.as_bytes().first().copied()?;
    let says_nothing = matches!(first, b'0' | b'f') && digits.bytes().all(|digit| digit == first);
    (!says_nothing).then(|| InstanceId::new(dashed(&digits)))
}

/// The id becomes a part of the address under which its cloud is asked for it: one that is a way up asks for something else.
fn is_plain(id: &str) -> bool {
    (1..=WORD_MAX_BYTES).contains(&id.len())
        && !matches!(id, "." | "..")
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

/// Lower case; a UUID with its dashes.
fn canonical(id: &str) -> String {
    uuid_digits(id).map_or_else(|| id.to_ascii_lowercase(), |digits| dashed(&digits))
}

/// The 32 lower-case digits of a UUID, spelled with its dashes or without.
fn uuid_digits(text: &str) -> Option<String> {
    let dashes: Vec<usize> = text.char_indices().filter(|(_, c)| *c == '-').map(|(at, _)| at).collect();
    if !dashes.is_empty() && dashes != [8, 13, 18, 23] {
        return None;
    }
    let digits: String = text.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect();
    (digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
}

fn dashed(digits: &str) -> String {
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "5f0c1d2e-0000-4a5b-8c9d-0123456789ab";

    #[test]
    fn provider_ids() {
        let instance = |id: &str| Provider::Instance(InstanceId::from(id));
        let unread = |text: &str| Provider::Unread(Arc::from(text));
        let table = [
            (None, Provider::Unset),
            (Some(""), Provider::Unset),
            (Some("  "), Provider::Unset),
            (Some("openstack:///5f0c1d2e-0000-4a5b-8c9d-0123456789ab"), instance(UUID)),
            (Some("openstack:///5F0C1D2E-0000-4A5B-8C9D-0123456789AB"), instance(UUID)),
            (Some("openstack:///5f0c1d2e00004a5b8c9d0123456789ab"), instance(UUID)),
            (Some("openstack://qa-de-1/5f0c1d2e-0000-4a5b-8c9d-0123456789ab"), instance(UUID)),
            (Some("openstack:///"), unread("openstack:///")),
            (Some("openstack://only-region"), unread("openstack://only-region")),
            (Some("openstack:///a/b"), unread("openstack:///a/b")),
            (Some("openstack:///."), unread("openstack:///.")),
            (Some("openstack:///.."), unread("openstack:///..")),
            (Some("openstack://region/.."), unread("openstack://region/..")),
            (Some("aws:///eu-west-1a/i-0123456789abcdef0"), instance("i-0123456789abcdef0")),
            (Some("aws:///us-gov-east-1b/i-0a1b2c3d"), instance("i-0a1b2c3d")),
            (Some("aws://eu-west-1/eu-west-1a/i-0123456789abcdef0"), instance("i-0123456789abcdef0")),
            (Some("aws:////i-0123456789abcdef0"), instance("i-0123456789abcdef0")),
            (Some("aws:///i-0123456789abcdef0"), instance("i-0123456789abcdef0")),
            (Some("aws://eu-west-1a/i-0123456789abcdef0"), instance("i-0123456789abcdef0")),
            (Some(" i-0123456789abcdef0 "), instance("i-0123456789abcdef0")),
            (Some("i-0123456789ABCDEF0"), instance("i-0123456789abcdef0")),
            (Some("aws:///eu-west-1a/i-0123"), unread("aws:///eu-west-1a/i-0123")),
            (Some("aws:///eu-west-1a/i-0123456789abcdefg"), unread("aws:///eu-west-1a/i-0123456789abcdefg")),
            (Some("aws:///eu-west-1a/"), unread("aws:///eu-west-1a/")),
            (Some("aws://"), unread("aws://")),
            (Some("aws:///a/b/c/i-0123456789abcdef0"), unread("aws:///a/b/c/i-0123456789abcdef0")),
            (
                Some(
                    "aws:///eu-west-1a/1b2c3d4e5f-0123456789abcdef/fargate-ip-10-0-0-1.eu-west-1.compute.internal",
                ),
                unread(
                    "aws:///eu-west-1a/1b2c3d4e5f-0123456789abcdef/fargate-ip-10-0-0-1.eu-west-1.compute.internal",
                ),
            ),
            (
                Some("eks-hybrid:///eu-west-1/prod/mi-0123456789abcdef0"),
                unread("eks-hybrid:///eu-west-1/prod/mi-0123456789abcdef0"),
            ),
            (Some("mi-0123456789abcdef0"), unread("mi-0123456789abcdef0")),
            (Some("gce://project/zone/i-01234567"), unread("gce://project/zone/i-01234567")),
            (Some("kind://docker/kind/node"), unread("kind://docker/kind/node")),
            (Some(UUID), unread(UUID)),
        ];
        for (text, wanted) in table {
            assert_eq!(provider(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn system_uuids() {
        let table = [
            (None, None),
            (Some(""), None),
            (Some("5f0c1d2e-0000-4a5b-8c9d-0123456789ab"), Some(UUID)),
            (Some("5F0C1D2E-0000-4A5B-8C9D-0123456789AB"), Some(UUID)),
            (Some("5f0c1d2e00004a5b8c9d0123456789ab"), Some(UUID)),
            (Some(" 5F0C1D2E00004A5B8C9D0123456789AB\n"), Some(UUID)),
            (Some("00000000-0000-0000-0000-000000000000"), None),
            (Some("ffffffffffffffffffffffffffffffff"), None),
            (Some("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"), None),
            (Some("5f0c-1d2e00004a5b8c9d0123456789ab"), None),
            (Some("Not Specified"), None),
            (Some("03000200-0400-0500-0006-00070008000"), None),
        ];
        for (text, wanted) in table {
            assert_eq!(system_uuid(text), wanted.map(InstanceId::from), "{text:?}");
        }
    }
}
