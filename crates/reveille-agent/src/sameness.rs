//! Whether a Node belongs to this machine: compared by boot id, system UUID and machine id, never by name; pure.
//!
//! The boot id is random and never copied, so an equal boot id settles the question. The system UUID comes from the
//! cloud. A cloned image carries its machine id to every machine, so the machine id alone is the weakest evidence. A
//! value that firmware or an image leaves on every machine distinguishes none of them. Ids that cannot be compared say
//! nothing.

/// The ids that distinguish a machine, each as read, or nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ids<'a> {
    /// The boot id, which changes with each boot.
    pub boot: Option<&'a str>,
    /// The SMBIOS system UUID.
    pub system_uuid: Option<&'a str>,
    /// The id in `/etc/machine-id`.
    pub machine: Option<&'a str>,
}

/// True: the same machine. False: two machines. `None`: no two comparable ids were read.
pub fn is_same(one: Ids<'_>, other: Ids<'_>) -> Option<bool> {
    let both = |one: Option<&str>, other: Option<&str>| {
        let (one, other) = (one.filter(|id| is_telling(id))?, other.filter(|id| is_telling(id))?);
        Some(is_same_id(one, other))
    };
    if both(one.boot, other.boot) == Some(true) {
        return Some(true);
    }
    both(one.system_uuid, other.system_uuid).or_else(|| both(one.machine, other.machine))
}

/// False for a value that firmware leaves on every machine: it distinguishes none of them.
fn is_telling(text: &str) -> bool {
    let digits = digits(text);
    digits.len() == 32 && digits.bytes().any(|byte| Some(&byte) != digits.as_bytes().first())
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_hexdigit).map(|digit| digit.to_ascii_lowercase()).collect()
}

/// Ids are written with and without dashes, and in either case. The firmware's first three fields come in either byte
/// order (SMBIOS before 2.6 has them swapped, and so have some hypervisors and kernels).
fn is_same_id(one: &str, other: &str) -> bool {
    let (one, other) = (digits(one), digits(other));
    one == other || swapped(&one).is_some_and(|one| one == other)
}

fn swapped(digits: &str) -> Option<String> {
    const FIELDS: [std::ops::Range<usize>; 3] = [0..8, 8..12, 12..16];
    if digits.len() != 32 {
        return None;
    }
    let mut out = String::with_capacity(digits.len());
    for field in FIELDS {
        for pair in digits.get(field)?.as_bytes().chunks(2).rev() {
            out.push_str(str::from_utf8(pair).ok()?);
        }
    }
    out.push_str(digits.get(16..)?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "33221100-5544-7766-8899-aabbccddeeff";
    const MACHINE: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn same_id_matches_without_dashes_and_in_swapped_byte_order() {
        let one = "12345678-9ABC-DEF0-1122-334455667788";
        for (other, wanted) in [
            (one, true),
            ("123456789abcdef01122334455667788", true),
            ("78563412-bc9a-f0de-1122-334455667788", true),
            ("12345678-9abc-def0-1122-334455667789", false),
            ("", false),
        ] {
            assert_eq!(is_same_id(one, other), wanted, "{other}");
        }
    }

    #[test]
    fn machine_is_identified_by_boot_then_system_then_machine_id() {
        let other_uuid = "ffeeddcc-bbaa-9988-7766-554433221100";
        let (other_machine, zero) =
            ("fedcba9876543210fedcba9876543210", "00000000-0000-0000-0000-000000000000");
        let boot = "8f14e45f-ceea-467f-a1d4-0c6a1b1c2d3e";
        let ids = |boot, system_uuid, machine| Ids { boot, system_uuid, machine };
        let full = ids(Some(boot), Some(UUID), Some(MACHINE));
        for (own, theirs, wanted) in [
            (full, full, Some(true)),
            (full, ids(Some(boot), None, Some(other_machine)), Some(true)),
            // Another boot id says nothing by itself; nor does a new installation on the same machine.
            (full, ids(Some(UUID), Some(UUID), Some(other_machine)), Some(true)),
            // A clone of the disk.
            (full, ids(Some(UUID), Some(other_uuid), Some(MACHINE)), Some(false)),
            // A process without root cannot read the UUID.
            (ids(None, None, Some(MACHINE)), full, Some(true)),
            (ids(None, None, Some(other_machine)), full, Some(false)),
            (full, ids(None, Some(""), Some("")), None),
            (ids(None, None, Some(MACHINE)), ids(None, Some(UUID), None), None),
            // The vendor did not fill in the firmware's UUID.
            (ids(None, Some(zero), Some(MACHINE)), ids(None, Some(other_uuid), Some(MACHINE)), Some(true)),
        ] {
            assert_eq!(is_same(own, theirs), wanted, "{own:?} and {theirs:?}");
        }
    }
}
