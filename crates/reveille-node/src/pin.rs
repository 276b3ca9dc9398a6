//! A hash of a public key, by which a machine knows its servers.
//!
//! A pin is the SHA-256 of a SubjectPublicKeyInfo (RFC 7469 §2.4), the form that kubeadm prints for
//! `--discovery-token-ca-cert-hash`. What is trusted because of pins is decided in [`pins`](crate::pins).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// With more pins than this at once, no operator can know which one is right.
pub const PINS_MOST: usize = 8;

/// The SHA-256 of a public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pin([u8; 32]);

/// A pin that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PinError {
    /// The text is not a SHA-256.
    #[error(
        "\"{0}\" does not begin with \"sha256:\"; write the pin as kubeadm prints it: sha256: and 64 hex digits"
    )]
    Kind(String),
    /// The text is too short, too long, or not a number.
    #[error("\"{0}\" is not sha256: and 64 hex digits; it may have been cut when it was copied")]
    Digits(String),
    /// There are no pins, or too many.
    #[error("{0} pins were given; give 1 to {PINS_MOST}")]
    Count(usize),
}

impl Pin {
    /// The pin of a public key, given as its SubjectPublicKeyInfo in DER.
    pub fn of_key(spki: &[u8]) -> Self {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, spki);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }
}

impl FromStr for Pin {
    type Err = PinError;

    fn from_str(text: &str) -> Result<Self, PinError> {
        let text = text.trim();
        let digits = text.strip_prefix("sha256:").ok_or_else(|| PinError::Kind(text.to_owned()))?;
        let wrong = || PinError::Digits(text.to_owned());
        if digits.len() != 64 || !digits.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_read_as_kubeadm_prints_it() {
        let text = format!("sha256:{}", "0af1".repeat(16));
        assert_eq!(text.parse::<Pin>().map(|pin| pin.to_string()), Ok(text.clone()));
        assert_eq!(text.to_uppercase().replace("SHA256", "sha256").parse::<Pin>(), text.parse());
        for wrong in ["", "sha256:", &text[..70], &format!("{text}0"), &text.replace("0af1", "0ag1")] {
            assert!(wrong.parse::<Pin>().is_err(), "{wrong}");
        }
        assert!(matches!(text[7..].parse::<Pin>(), Err(PinError::Kind(_))));
        assert!(matches!(format!("sha256:{}", "é".repeat(32)).parse::<Pin>(), Err(PinError::Digits(_))));
    }

    /// What kubeadm's manual computes with `openssl x509 -pubkey | … -outform der | sha256sum`.
    #[test]
    fn a_pin_is_of_the_whole_public_key_info() {
        // RFC 8410 §10.1: an Ed25519 public key.
        let spki = [
            0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00, 0x19, 0xbf, 0x44, 0x09,
            0x69, 0x84, 0xcd, 0xfe, 0x85, 0x41, 0xba, 0xc1, 0x67, 0xdc, 0x3b, 0x96, 0xc8, 0x50, 0x86, 0xaa,
            0x30, 0xb6, 0xb6, 0xcb, 0x0c, 0x5c, 0x38, 0xad, 0x70, 0x31, 0x66, 0xe1,
        ];
        // `sha256sum` of these bytes.
        let known = "sha256:a1e9156054e04fac899ae9f275132cdc07a5dbc4ea2c2ad3a1ffc6e0d253681f";
        assert_eq!(Pin::of_key(&spki).to_string(), known);
    }
}
