//! Where a value stands in an object, and which places must never be shown.
//!
//! ```text
//!  spec.rkeNode.dockerInfo.name     status.conditions[type=Ready].lastHeartbeatTime     metadata.annotations["a.b/c"]
//! ```
//!
//! An item of a list is named by the field that tells it from its siblings, as the API server does; where there is none, by its
//! place. What stands at a path is not known here.

use std::fmt;

/// One step down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A field, or a key of a map.
    Field(String),
    /// The item of a list whose field has this value.
    Keyed(String, String),
    /// The item of a list at this place.
    Place(usize),
    /// Not an item but the order of all.
    Order,
}

/// A place in an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<Step>);

/// A word in a path that makes its value a secret.
const SECRET_WORDS: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "apikey",
    "api-key",
    "api_key",
    "privatekey",
    "private-key",
    "private_key",
    "accesskey",
    "kubeconfig",
    "last-applied-configuration",
];

/// Fields that say when something was true and not what: they differ each time, whatever else does.
const TIMES: [&str; 8] = [
    "lastHeartbeatTime",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "lastTimestamp",
    "renewTime",
    "observedTime",
    "lastSyncTime",
];

impl Path {
    /// One step further.
    #[must_use]
    pub fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// A value here is never shown.
    pub fn is_secret(&self) -> bool {
        let secret = |word: &String| {
            let word = word.to_ascii_lowercase();
            // `sshKey`, `tls.key`, `ENCRYPTION_KEY`; a `key` alone is what labels and lists have.
            let is_key = word.ends_with("key") && word != "key";
            is_key || SECRET_WORDS.iter().any(|secret| word.contains(secret))
        };
        self.0.iter().any(|step| match step {
            Step::Field(name) => secret(name),
            Step::Keyed(_, value) => secret(value),
            Step::Place(_) | Step::Order => false,
        })
    }

    /// It says when, not what.
    pub fn is_time(&self) -> bool {
        matches!(self.0.last(), Some(Step::Field(name)) if TIMES.contains(&name.as_str()))
    }

    /// It begins with these fields.
    pub fn begins(&self, fields: &[&str]) -> bool {
        fields.len() <= self.0.len()
            && fields
                .iter()
                .zip(&self.0)
                .all(|(field, step)| matches!(step, Step::Field(name) if name == field))
    }

    /// A field of this name stands somewhere in it.
    pub fn passes(&self, field: &str) -> bool {
        self.0.iter().any(|step| matches!(step, Step::Field(name) if name == field))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if name.contains(['.', '/']) => write!(f, "[\"{name}\"]")?,
                Step::Field(name) if nth == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Keyed(key, value) => write!(f, "[{key}={value}]")?,
                Step::Place(place) => write!(f, "[{place}]")?,
                Step::Order => f.write_str(" (order)")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A path of plain fields.
    pub(crate) fn path(text: &str) -> Path {
        Path(text.split('.').map(|name| Step::Field(name.to_owned())).collect())
    }

    #[test]
    fn paths_read_as_people_write_them() {
        let keyed = Step::Keyed("type".to_owned(), "Ready".to_owned());
        let conditions = path("status.conditions").then(keyed).then(Step::Field("reason".to_owned()));
        assert_eq!(conditions.to_string(), "status.conditions[type=Ready].reason");
        let annotation = path("metadata.annotations").then(Step::Field("a.b/c".to_owned()));
        assert_eq!(annotation.to_string(), "metadata.annotations[\"a.b/c\"]");
    }

    #[test]
    fn a_secret_is_known_by_any_word_of_its_path() {
        let env = path("spec.containers").then(Step::Place(0)).then(Step::Field("env".to_owned()));
        let env = env.then(Step::Keyed("name".to_owned(), "DB_PASSWORD".to_owned()));
        assert!(env.then(Step::Field("value".to_owned())).is_secret());
        assert!(path("spec.joinToken").is_secret());
        assert!(path("spec.customConfig.sshKey").is_secret() && !path("spec.selector.key").is_secret());
        assert!(!path("spec.rkeNode.dockerInfo.name").is_secret());
    }
}
