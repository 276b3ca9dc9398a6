//! Whose text it is: case files.

pub mod case;
