//! Pins as kubeadm writes them, refused with the place where they stand.

use super::TargetError;
use crate::pin::Pin;

/// Reads `sha256:` and 64 hexadecimal digits.
///
/// # Errors
///
/// It is something else.
pub(super) fn pin(place: &str, text: &str) -> Result<Pin, TargetError> {
    text.parse().map_err(|wrong| {
        let write =
            "sha256: and 64 hexadecimal digits, as `kubeadm token create --print-join-command` prints it";
        TargetError::new(place, wrong, write)
    })
}
