//! The page about the language: its examples are played, and its tables are the language's own.
