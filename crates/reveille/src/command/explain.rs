//! `explain`: prints the page of a cause, from the catalogue or the engine, by its code or its name.

use anyhow::anyhow;
use reveille_diagnose::own;

use super::{Answer, Context};
use crate::cli::Explain;
use crate::cli::failure::Failure;

/// `explain`.
pub(crate) fn explain(context: &Context, args: &Explain) -> Result<Answer, Failure> {
    let (catalogue, code) = (context.catalogue()?, args.code.as_str());
    let read = catalogue.cause(code).map(|cause| reveille_diagnose::page::page(&catalogue, cause));
    let own = || own::cause(&catalogue, code).map(own::page);
    read.or_else(own).map(Answer::fine).ok_or_else(|| {
        Failure::usage(anyhow!("unknown cause {code}")).next(
            "give a code (RV117) or a name (bootstrap-token-invalid); docs/reference/findings lists them",
        )
    })
}
