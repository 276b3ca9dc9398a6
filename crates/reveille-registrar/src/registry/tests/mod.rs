//! The registry alone: which machines are admitted, why others are not, what each is sent, and that a replay gives the
//! same.

mod admission;
mod answers;
mod claims;
mod conflicts;
mod departed;
mod given;
mod joins;
mod names;
mod people;
mod rebuilt;
mod sequences;
mod tokens;
mod world;
