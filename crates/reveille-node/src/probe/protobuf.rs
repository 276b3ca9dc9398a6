//! The part of protocol buffers that a runtime's answers need: fields by their number.

/// One field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// A number, also for a boolean.
    Number(u64),
    /// Bytes: a text, or a nested message.
    Bytes(&'a [u8]),
}

/// The fields of a message, in order; the sequence ends at invalid bytes.
pub(super) struct Fields<'a>(&'a [u8]);

pub(super) const fn fields(bytes: &[u8]) -> Fields<'_> {
    Fields(bytes)
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.number()?;
        let (field, kind) = (key >> 3, key & 7);
        let value = match kind {
            0 => Value::Number(self.number()?),
            1 => Value::Bytes(self.take(8)?),
            2 => {
                let length = usize::try_from(self.number()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((field, value))
    }
}

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take(1)? else { return None };
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

/// The text of a field; empty where the field is missing.
pub(super) fn text(bytes: &[u8], field: u64) -> String {
    message(bytes, field).map_or_else(String::new, |value| String::from_utf8_lossy(value).into_owned())
}

/// The number of a field; 0 where the field is missing, as the format says.
pub(super) fn number(bytes: &[u8], field: u64) -> u64 {
    let found = fields(bytes).find_map(|(number, value)| match value {
        Value::Number(value) if number == field => Some(value),
        _ => None,
    });
    found.unwrap_or(0)
}

/// The message in a field.
pub(super) fn message(bytes: &[u8], field: u64) -> Option<&[u8]> {
    messages(bytes, field).next()
}

/// Each message of a repeated field.
pub(super) fn messages(bytes: &[u8], field: u64) -> impl Iterator<Item = &[u8]> {
    fields(bytes).filter_map(move |(number, value)| match value {
        Value::Bytes(value) if number == field => Some(value),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_number_and_nonsense_ends_them() {
        // 2: "ab", 3: 300, 2: "c", then a length without its content.
        let bytes = [0x12, 2, b'a', b'b', 0x18, 0xac, 0x02, 0x12, 1, b'c', 0x12, 9];
        assert_eq!(text(&bytes, 2), "ab");
        assert_eq!(number(&bytes, 3), 300);
        assert_eq!(messages(&bytes, 2).count(), 2);
        assert_eq!((text(&bytes, 9), number(&bytes, 9)), (String::new(), 0));
        assert_eq!(fields(&[0xff; 12]).count(), 0);
    }
}
