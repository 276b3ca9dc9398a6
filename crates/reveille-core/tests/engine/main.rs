//! The engine through its one door: events in, effects out. No world model here; each test says what the world says.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail by panicking")]
#![allow(unreachable_pub, reason = "one test binary, several files")]

mod access;
mod acts;
mod agents;
mod ahead;
mod another;
mod away;
mod booting;
mod bursts;
mod clock;
mod consoles;
mod doubted;
mod fixture;
mod freezes;
mod full_disk;
mod gaps;
mod ghosts;
mod given_back;
mod gone;
mod handover;
mod hands;
mod hosting;
mod identity;
mod lamed;
mod late;
mod limits;
mod links;
mod listings;
mod lost_nodes;
mod marks;
mod moved;
mod network;
mod next_process;
mod order;
mod others;
mod presence;
mod reads;
mod recounted;
mod released;
mod removal;
mod replaced;
mod restart;
mod restraint;
mod rotation;
mod routes;
mod signs;
mod steps;
mod traces;
mod tries;
mod unanswered;
mod unconfirmed;
mod unmade;
mod unseen;
mod wishes;
