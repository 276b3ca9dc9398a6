//! Sends joins as OpenTelemetry traces over OTLP/HTTP, where the operator enables it.
//!
//! ```text
//!  registry: a join is over ─▶ spans: pure ─▶ Exporter (bounded queue) ─▶ json ─▶ POST, within a deadline, tried a few times
//!                                                  └ full: dropped, and counted
//! ```
//!
//! The exporter uses OTLP's JSON encoding over the existing HTTP client. OTLP/HTTP has it beside protobuf on the same path,
//! and it needs no code generator and no second HTTP stack. The controller never waits for a collector. It passes a join on
//! once, after its end is durable. A join that could not be sent is missing only in the collector; the ledger has it.

pub(crate) mod config;
pub(crate) mod exporter;
mod json;
#[cfg(test)]
mod sample;
mod spans;

pub(crate) use config::Config;
pub(crate) use exporter::Exporter;
