//! The registry alone: who is let in, who is not and why, what each is told, and that a replay gives the same.

mod admission;
mod anew;
mod answers;
mod claims;
mod conflicts;
mod course;
mod departed;
mod given;
mod joins;
mod names;
mod people;
mod tokens;
mod world;
