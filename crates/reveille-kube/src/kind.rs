//! A kind of objects that an API server serves: what a path to its objects is made of, and what their generation counts.
//!
//! `writes` finds out which kinds there are; `paths` makes requests for their objects.

use reveille_hot::Resource;
use reveille_hot::kinds::Generation;

/// A kind that the API server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Group and plural.
    pub resource: Resource,
    /// The version that the server prefers.
    pub version: String,
    /// Its objects lie in namespaces.
    pub is_namespaced: bool,
    /// It can be watched as well as listed.
    pub can_be_watched: bool,
    /// What `metadata.generation` of its objects counts.
    pub counts: Generation,
}
