//! End-to-end tests against the rig.
