//! The adapter against recorded answers of the real services, over real sockets: listing, looking, acting, logging in.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test, what cannot be is a failure")]

mod changes;
mod connecting;
mod entry;
mod fake;
mod healthy;
mod instances;
mod listing;
mod logins;
mod pages;
mod ports;
mod queries;
mod rights;
mod roles;
mod routes;
mod rules;
mod surveying;
mod tls;
