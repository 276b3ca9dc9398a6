//! YAML of kubeadm, the kubelet, k3s and RKE2: several documents, unknown fields ignored. The bounds are those of
//! [`reveille_wire::yaml`], by which a plan's configuration was taken, so that what the agent wrote is read again.

use reveille_wire::yaml;
use serde::de::DeserializeOwned;

use super::TargetError;

/// All non-empty documents of the text.
///
/// # Errors
///
/// The text is not YAML, or a field has a wrong type: the line, and the reason without the text around it and without a
/// value, which may be a token.
pub(crate) fn documents<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, TargetError> {
    yaml::documents(text).map_err(|error| {
        let place = error.place.map_or("the file".to_owned(), |(line, _)| format!("line {line}"));
        TargetError::new(place, format!("it cannot be read: {}", error.what), "correct that line")
    })
}

#[cfg(test)]
mod tests {
    use crate::root::Root;
    use crate::target::kubeconfig::Kubeconfig;

    #[test]
    fn no_token_of_a_kubeconfig_that_cannot_be_read_is_in_the_error() {
        for text in [
            "users: c4n4ry0123\n",
            "users:\n- name: u\n  user: c4n4ry0123\n",
            "users:\n- name: u\n  user: {token: c4n4ry0123\n",
        ] {
            let error = Kubeconfig::parse(&Root::new("/dev/null"), text).unwrap_err().to_string();
            assert!(!error.contains("c4n4ry"), "{error}");
        }
    }
}
