//! What is written: a kind of the API, and one object of it.
//!
//! ```text
//!  /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME[/SUBRESOURCE] ─▶ Object { resource, namespace, name }, subresource
//! ```
//!
//! Versions of a group are one kind, because they are one object in the store. Nothing is looked up here.

use std::fmt;
use std::sync::Arc;

/// A kind of the API: its group and its plural.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// Group; the core group is empty.
    pub group: Arc<str>,
    /// Plural, as it stands in paths: `nodes`.
    pub plural: Arc<str>,
}

/// One object of the API.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// Its kind.
    pub resource: Resource,
    /// Its namespace; empty for objects of the whole cluster.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl Resource {
    /// Of this group and plural.
    pub fn new(group: &str, plural: &str) -> Self {
        Self { group: Arc::from(group), plural: Arc::from(plural) }
    }

    /// Of this group and plural?
    pub fn is(&self, group: &str, plural: &str) -> bool {
        &*self.group == group && &*self.plural == plural
    }

    /// A kind whose values are secrets: nothing of them is ever shown.
    pub fn is_secret(&self) -> bool {
        self.is("", "secrets")
    }

    /// A node as Rancher's management server keeps it.
    pub fn is_rancher_node(&self) -> bool {
        self.is("management.cattle.io", "nodes")
    }
}

impl fmt::Display for Resource {
    /// `nodes`, `nodes.management.cattle.io`, as kubectl takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.group {
            "" => f.write_str(&self.plural),
            group => write!(f, "{}.{group}", self.plural),
        }
    }
}

impl Object {
    /// Of this kind, namespace and name.
    pub fn new(resource: Resource, namespace: &str, name: &str) -> Self {
        Self { resource, namespace: Arc::from(namespace), name: Arc::from(name) }
    }

    /// The object that a request's path names, and its subresource; `None` for lists and for what is no path of the API.
    pub fn of_path(path: &str) -> Option<(Self, Option<&str>)> {
        let path = path.split(['?', '#']).next()?;
        let mut parts = path.strip_prefix('/')?.split('/');
        let group = match parts.next()? {
            "api" => "",
            "apis" => parts.next()?,
            _ => return None,
        };
        let _version = parts.next()?;
        let rest: Vec<&str> = parts.collect();
        if rest.iter().any(|part| part.is_empty()) {
            return None;
        }
        let (namespace, rest) = match rest.as_slice() {
            // A namespace's own object has the same first words as what is in it.
            ["namespaces", namespace, plural, rest @ ..] if !matches!(*plural, "status" | "finalize") => {
                (*namespace, [&[*plural], rest].concat())
            }
            _ => ("", rest),
        };
        let (plural, name, sub) = match rest.as_slice() {
            [plural, name] => (*plural, *name, None),
            [plural, name, sub] => (*plural, *name, Some(*sub)),
            _ => return None,
        };
        Some((Self::new(Resource::new(group, plural), namespace, name), sub))
    }
}

impl fmt::Display for Object {
    /// `nodes.management.cattle.io c-abc/m-1`, the words that kubectl takes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} {}", self.resource, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.resource, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_object_and_a_list_names_none() {
        let table = [
            ("/api/v1/nodes/a", Some("nodes a"), None),
            ("/api/v1/nodes/a/status", Some("nodes a"), Some("status")),
            ("/api/v1/namespaces/x", Some("namespaces x"), None),
            ("/api/v1/namespaces/x/status", Some("namespaces x"), Some("status")),
            ("/api/v1/namespaces/x/pods/p?fieldManager=k", Some("pods x/p"), None),
            (
                "/apis/management.cattle.io/v3/namespaces/c-1/nodes/machine-h46dc",
                Some("nodes.management.cattle.io c-1/machine-h46dc"),
                None,
            ),
            ("/apis/apps/v1/namespaces/x/deployments", None, None),
            ("/api/v1/nodes", None, None),
            ("/api/v1/nodes//", None, None),
            ("/healthz", None, None),
            ("", None, None),
        ];
        for (path, object, sub) in table {
            let found = Object::of_path(path);
            assert_eq!(found.as_ref().map(|(object, _)| object.to_string()).as_deref(), object, "{path}");
            assert_eq!(found.and_then(|(_, sub)| sub), sub, "{path}");
        }
    }
}
