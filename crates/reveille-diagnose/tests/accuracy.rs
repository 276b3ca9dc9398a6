//! The labelled cases are diagnosed at least as well as they were before.

use std::process::Command;

#[test]
fn the_floor_of_accuracy_holds() {
    let output = Command::new(env!("CARGO_BIN_EXE_accuracy")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
