//! Pins in kubeadm's format, refused with the place where they stand.

use super::TargetError;
use crate::pin::Pin;

/// Reads `sha256:` and 64 hexadecimal digits.
///
/// # Errors
///
/// The text has another form.
pub(super) fn pin(place: &str, text: &str) -> Result<Pin, TargetError> {
    text.parse().map_err(|wrong| {
        let write =
            "sha256: and 64 hexadecimal digits, as `kubeadm token create --print-join-command` prints it";
        TargetError::new(place, wrong, write)
    })
}
