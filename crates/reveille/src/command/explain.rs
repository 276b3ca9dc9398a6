//! `explain`: prints what is known of a cause, from the catalogue or the engine, by its code or its name, or what happens at a
//! stage and which causes stop machines there.

use anyhow::anyhow;
use reveille_core::model::stage::Stage;
use reveille_diagnose::{explained, own, page};

use super::{Answer, Context};
use crate::cli::Explain;
use crate::cli::failure::Failure;
use crate::render::markdown;

/// `explain`.
pub(crate) fn explain(context: &Context, args: &Explain) -> Result<Answer, Failure> {
    let (catalogue, code, paper) = (context.catalogue()?, args.code.as_str(), &context.paper);
    let text = if let Some(cause) = catalogue.cause(code) {
        context.print_own(&explained::read(&catalogue, cause), || {
            markdown::plain(&page::page(&catalogue, cause), paper)
        })?
    } else if let Some(cause) = own::cause(&catalogue, code) {
        context.print_own(&explained::proved(cause), || markdown::plain(&page::own_page(cause), paper))?
    } else if let Some(stage) = Stage::from_name(&code.to_ascii_lowercase()) {
        context.print_own(&explained::stage(&catalogue, stage), || {
            markdown::plain(&page::stage(&catalogue, stage), paper)
        })?
    } else {
        return Err(Failure::usage(anyhow!("unknown cause {code}")).next(
            "give a code (RV117), a name (bootstrap-token-invalid) or a stage (cni); docs/reference/findings lists them",
        ));
    };
    Ok(Answer::fine(text))
}
