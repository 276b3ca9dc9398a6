//! Joins as traces of OpenTelemetry, sent over OTLP/HTTP where a person wants them.
//!
//! ```text
//!  registry: a join is over ─▶ spans: pure ─▶ Exporter (bounded queue) ─▶ json ─▶ POST, within a deadline, tried a few times
//!                                                  └ full: dropped, and counted
//! ```
//!
//! OTLP's JSON encoding over the HTTP client that is there: OTLP/HTTP has it beside protobuf on the same path, and it needs
//! neither a code generator nor a second HTTP stack. Nothing waits for a collector. A join is handed over once, after its end
//! is durable; one that could not be sent is lost to the collector and to nobody else: the ledger has it.

pub(crate) mod config;
pub(crate) mod exporter;
mod json;
#[cfg(test)]
mod sample;
mod spans;

pub(crate) use config::Config;
pub(crate) use exporter::Exporter;
