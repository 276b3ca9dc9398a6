//! Pages compared with files.
