//! From what was found to a roster that the reader accepts.
