//! (opened by its first commit)
