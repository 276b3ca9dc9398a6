//! No core dump of this process: whatever crashes it, its memory, which holds keys and tokens, stays its own.
//!
//! Two switches, because neither is enough alone. A limit of 0 keeps the kernel from writing a file, and what a process starts
//! inherits it; a handler behind a pipe (systemd-coredump, apport) is given the memory all the same. One that is not dumpable
//! is dumped to nobody, and nobody but root may trace it or read its memory; what it starts is dumpable again.

use std::io;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// From now on, and for as long as this process lives.
///
/// # Errors
///
/// The system refuses; then the other switch is set all the same.
pub fn never_dumped() -> io::Result<()> {
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let limited = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    Ok(hidden.and(limited)?)
}
