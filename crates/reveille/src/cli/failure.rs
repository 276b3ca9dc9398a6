//! An error as the operator sees it: what was tried, why it failed, what to do next.
//!
//! Commands return [`Failure`]; `main` prints it to standard error and returns its exit code. Causes are kept as sources
//! until then, and printed once, one line each. Control characters of foreign texts never reach a terminal.

use std::fmt;

use reveille_core::model::hidden::is_hidden;

use super::exit::Exit;

/// Why a command has no answer.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: anyhow::Error,
    next: Option<String>,
}

impl Failure {
    /// The command line or the roster is wrong.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Usage, error: error.into(), next: None }
    }

    /// A file of the command line is not readable as what it should be.
    pub(crate) fn data(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Data, error: error.into(), next: None }
    }

    /// No source could be asked.
    pub(crate) fn cannot_tell(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::CannotTell, error: error.into(), next: None }
    }

    /// A bug in this program, or a failure of the machine that it runs on.
    pub(crate) fn internal(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Internal, error: error.into(), next: None }
    }

    /// What to do about it.
    #[must_use]
    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// The exit code of the process.
    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }
}

#[cfg(feature = "controller")]
impl From<reveille_cloud::site::OpenError> for Failure {
    fn from(error: reveille_cloud::site::OpenError) -> Self {
        let source = anyhow::Error::from_boxed(error.source);
        let failure = if error.usage { Self::usage(source) } else { Self::cannot_tell(source) };
        Self { next: error.next, ..failure }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::internal(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.error.to_string();
        let mut all = vec![said.clone()];
        write!(f, "reveille: {}", printable(&said))?;
        for cause in self.error.chain().skip(1) {
            let text = cause.to_string();
            // Many errors repeat their source in their own text; once is enough.
            if !said.contains(&text) {
                write!(f, "\n  because: {}", printable(&text))?;
            }
            all.push(text.clone());
            said = text;
        }
        // The hint is left out when a cause says the same.
        if let Some(next) = self.next.as_ref().filter(|next| !all.contains(next)) {
            write!(f, "\n  next: {next}")?;
        }
        Ok(())
    }
}

/// Foreign text without the characters that control a terminal: it can neither move the cursor, nor colour the screen,
/// nor reverse the direction of text beside it. Line breaks stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) && c != '\n' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn each_cause_is_said_once_and_the_next_step_last() {
        let error = Err::<(), _>(std::io::Error::other("no route to host"))
            .context("cannot list nodes: no route to host")
            .context("cannot take the roll of prod");
        let failure = Failure::cannot_tell(error.unwrap_err()).next("look at the network");
        let text = failure.to_string();
        assert_eq!(
            text,
            "reveille: cannot take the roll of prod\n  because: cannot list nodes: no route to host\n  next: look at the network"
        );
        assert_eq!(failure.exit().code(), 2);
    }

    #[test]
    fn a_cause_that_is_also_the_next_step_is_said_once() {
        let again = "name it with --pool";
        let error = Err::<(), _>(std::io::Error::other(again)).context("refused").unwrap_err();
        let text = Failure::usage(error).next(again).to_string();
        assert_eq!(text, "reveille: refused\n  because: name it with --pool");
    }

    #[test]
    fn escape_sequences_of_others_are_defused() {
        let failure = Failure::internal(anyhow::anyhow!("server said \u{1b}[2Jboo"));
        assert!(!failure.to_string().contains('\u{1b}'));
        assert_eq!(printable("a\u{202e}b\u{200b}\nc"), "a\u{fffd}b\u{fffd}\nc");
    }
}
