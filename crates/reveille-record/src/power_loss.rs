//! (grows with the next commit)
