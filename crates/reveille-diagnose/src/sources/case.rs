//! Case files: evidence of one machine as a list of texts, each with its kind, and the platform.
//!
//! Only `platform` and `evidence` are read. Such a file may hold the right answer as well; it is not looked at.

use serde::Deserialize;
use serde_saphyr::Options;

/// What a case file gives to judge.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// What kind of cluster it is.
    pub platform: Option<String>,
    /// The texts.
    pub evidence: Vec<Evidence>,
}

/// One text.
#[derive(Clone, Debug, Deserialize)]
pub struct Evidence {
    /// What it is: `kubelet-log`, `kubectl-get`, …
    #[serde(default)]
    pub kind: String,
    /// The text itself.
    pub text: String,
}

/// Reads a case file; `None` when the text is none.
pub fn read(text: &str) -> Option<Case> {
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    if !has("evidence:") || !has("platform:") {
        return None;
    }
    serde_saphyr::from_str_with_options(text, options()).ok().filter(|case: &Case| !case.evidence.is_empty())
}

/// No aliases: each of them would be as long as the text that it stands for. A file with one is read as a text.
fn options() -> Options {
    serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_documents: 1, max_depth: 24, max_nodes: 50_000, max_aliases: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_platform_and_evidence_are_read() {
        let text = "id: x\nplatform: kubeadm\nevidence:\n- kind: kubelet-log\n  text: |\n    line\nroot_cause: secret\n";
        let case = read(text).unwrap();
        assert_eq!((case.platform.as_deref(), case.evidence[0].text.as_str()), (Some("kubeadm"), "line\n"));
        assert!(read("platform: x\nother: y\n").is_none());
        assert!(read("a log line with evidence: in it\n").is_none());
    }
}
