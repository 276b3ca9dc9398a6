//! A cause for programs: what `explain -o json` prints, the same facts as its page.
//!
//! Left out are the examples of each sign: a program that wants them reads the catalogue.

use reveille_core::model::cause::Cause as OwnCause;
use reveille_core::model::stage::Stage;
use serde::Serialize;

use crate::catalogue::{Catalogue, Cause};
use crate::{own, page};

/// What is known of a cause.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained<'a> {
    /// Its code, as `RV117`.
    pub code: &'a str,
    /// Its name, as `bootstrap-token-invalid`.
    pub name: &'a str,
    /// The stage at which it usually stops a machine.
    pub stage: Stage,
    /// What is wrong, as one clause.
    pub says: &'a str,
    /// Why that stops a machine; absent of a cause that the engine proves itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<&'a str>,
    /// What a person does.
    pub remedy: &'a str,
    /// By which commands.
    pub commands: Vec<&'a str>,
    /// Why a reboot is of no use, if it is of none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_reboot: Option<&'a str>,
    /// Why a replacement is of no use, if it is of none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_replace: Option<&'a str>,
    /// What to collect when it is not sure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<&'a str>,
    /// Codes of the causes that it explains where they are seen beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explains: Vec<&'a str>,
    /// Names of the signs in logs that prove it, or make it likely or possible.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signs: Vec<&'a str>,
    /// On what it rests where the engine proves it itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rests_on: Option<&'a str>,
}

/// What is known of a stage.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedStage<'a> {
    /// Its name, as `cni`.
    pub stage: Stage,
    /// Its place, from 1.
    pub number: usize,
    /// What happens there.
    pub says: &'static str,
    /// Codes of the causes that usually stop a machine there.
    pub causes: Vec<&'a str>,
}

/// What is known of a stage.
pub fn stage(catalogue: &Catalogue, stage: Stage) -> ExplainedStage<'_> {
    let causes = page::causes(catalogue).filter(|cause| cause.stage == stage).map(|cause| cause.code);
    ExplainedStage { stage, number: stage.number(), says: stage.says(), causes: causes.collect() }
}

/// What is known of a cause of the catalogue.
pub fn read<'a>(catalogue: &'a Catalogue, cause: &'a Cause) -> Explained<'a> {
    let explains = cause.explains.iter().filter_map(|place| catalogue.causes.get(*place));
    Explained {
        code: &cause.code,
        name: &cause.label,
        stage: cause.stage,
        says: &cause.title,
        because: Some(&cause.because),
        remedy: &cause.remedy,
        commands: cause.commands.iter().map(String::as_str).collect(),
        no_reboot: cause.no_reboot.as_deref(),
        no_replace: cause.no_replace.as_deref(),
        collect: cause.collect.iter().map(String::as_str).collect(),
        explains: explains.map(|other| other.code.as_str()).collect(),
        signs: catalogue.signs(cause).map(|signal| signal.id.as_str()).collect(),
        rests_on: None,
    }
}

/// What is known of a cause that the engine proves itself.
pub fn proved(cause: &'static OwnCause) -> Explained<'static> {
    let (rests_on, commands) = own::proof(cause).unzip();
    Explained {
        code: cause.code(),
        name: cause.label(),
        stage: cause.stage(),
        says: cause.says(),
        because: None,
        remedy: cause.remedy(),
        commands: commands.unwrap_or_default().to_vec(),
        no_reboot: None,
        no_replace: None,
        collect: Vec::new(),
        explains: Vec::new(),
        signs: Vec::new(),
        rests_on,
    }
}
