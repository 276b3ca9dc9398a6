//! Reads one map of the file: its known fields, and a complaint for every other field.
//!
//! A [`Section`] opens a tree with its [`Shape`]. The readers then take fields by name, each as a [`Field`] that knows
//! its position and path. A field without a value is a mistake, not a default: its author meant to write a value.

use super::complaint::{Complaints, Spot};
use super::shape::Shape;
use super::tree::{Kind, Tree};

/// One field of the file with its value.
#[derive(Clone, Debug)]
pub(super) struct Field<'t> {
    pub(super) spot: Spot,
    pub(super) tree: &'t Tree,
}

/// One map of the file whose fields are known.
#[derive(Debug)]
pub(super) struct Section<'t> {
    pub(super) spot: Spot,
    shape: Shape,
    fields: Vec<(&'t str, Field<'t>)>,
    empty: Vec<&'t str>,
}

impl<'t> Section<'t> {
    /// Opens a field as a map, with a complaint for every name that does not belong there. `None` when it is no map.
    pub(super) fn open(field: &Field<'t>, shape: Shape, complaints: &mut Complaints) -> Option<Self> {
        let Kind::Map(entries) = &field.tree.kind else {
            let (wrong, fields) = (field.tree.noun(), shape.fields.join(", "));
            complaints.add(
                &field.spot,
                format!("{wrong} stands where a map belongs"),
                format!("write fields under it: {fields}"),
            );
            return None;
        };
        let (mut fields, mut empty) = (Vec::with_capacity(entries.len()), Vec::new());
        for (key, tree) in entries {
            let at_key = field.spot.member(key.at, &key.text);
            if !shape.fields.contains(&key.text.as_str()) {
                complaints.add(&at_key, "there is no such field", shape.instead_of(&key.text));
            } else if tree.kind == Kind::Nothing {
                complaints.add(&at_key, "it has no value", "give it one, or take the line out");
                empty.push(key.text.as_str());
            } else {
                let spot = Spot { at: tree.at, field: at_key.field };
                fields.push((key.text.as_str(), Field { spot, tree }));
            }
        }
        Some(Self { spot: field.spot.clone(), shape, fields, empty })
    }

    /// The field of that name, where it is written.
    pub(super) fn take(&self, name: &'static str) -> Option<Field<'t>> {
        assert!(self.shape.fields.contains(&name), "{} is not in the shape of {}", name, self.shape.path);
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, field)| field.clone())
    }

    /// True when a field has no value; the complaint about it was added already.
    pub(super) fn has_empty(&self) -> bool {
        !self.empty.is_empty()
    }

    /// The field of that name; a complaint when it is not written.
    pub(super) fn require(
        &self,
        name: &'static str,
        instead: &str,
        complaints: &mut Complaints,
    ) -> Option<Field<'t>> {
        let field = self.take(name);
        if field.is_none() && !self.empty.contains(&name) {
            complaints.add(&self.spot, format!("{name:?} is missing"), instead);
        }
        field
    }
}

impl<'t> Field<'t> {
    /// Its items; a complaint when it is no list.
    pub(super) fn items(&self, of: &str, complaints: &mut Complaints) -> Vec<Self> {
        match &self.tree.kind {
            Kind::List(items) => (items.iter().enumerate())
                .map(|(index, tree)| Self { spot: self.spot.item(tree.at, index), tree })
                .collect(),
            _ => {
                complaints.add(
                    &self.spot,
                    format!("{} stands where a list belongs", self.tree.noun()),
                    format!("write a list of {of}, as in [first, second]"),
                );
                Vec::new()
            }
        }
    }
}
