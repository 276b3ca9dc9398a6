//! Disables core dumps of this process: its memory, which holds keys and tokens, stays private in a crash.
//!
//! The module sets two switches, because neither is enough alone. A limit of 0 keeps the kernel from writing a file, and
//! child processes inherit it. But a handler behind a pipe (systemd-coredump, apport) still gets the memory. The kernel
//! dumps a process that is not dumpable to no file and no handler, and only root may trace it or read its memory. Child
//! processes are dumpable again.

use std::io;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// Applies from now on, for as long as this process lives.
///
/// # Errors
///
/// The operating system refuses one switch; the other one is set all the same.
pub fn never_dumped() -> io::Result<()> {
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let limited = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    Ok(hidden.and(limited)?)
}
