//! The driver against a small fake world: what comes before what, and what a failing ledger or a lost lock prevent.
