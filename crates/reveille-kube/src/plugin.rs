//! The credential plugin of a kubeconfig (`exec`), run by us and not by kube.
//!
//! ```text
//!  exec ─▶ command, in a process group of its own ─▶ ExecCredential ─▶ token, client certificate and key, when they end
//!             └─ no end within the deadline: the whole group is killed
//! ```
//!
//! kube runs the plugin on a thread that nothing can end, and again inside each request once a credential ends soon. Here the
//! plugin is a process with a deadline, and it ends with the task that waits for it. This module puts its output into the
//! kubeconfig's user as a plain credential, so kube has nothing to renew. `session` decides when to run the plugin again.
//!
//! The rules are client-go's (client authentication v1): the plugin learns of the cluster and of a terminal through
//! `KUBERNETES_EXEC_INFO`, and gets the terminal where there is one and it may. Its output may be YAML. What it says on
//! its error output is shown on a terminal and otherwise left out, because tokens get there.

use std::io::IsTerminal as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use thiserror::Error;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// A person may have to log in with a browser. The task that waits for the login gives up earlier, and uses its result later.
const RUN_WITHIN: Duration = if cfg!(test) { Duration::from_secs(2) } else { Duration::from_secs(300) };

/// Tokens and certificates with their chains are some kilobytes.
const OUTPUT_MAX_BYTES: u64 = 1 << 20;

/// Why there are no credentials. The plugin's own words are left out: they hold tokens.
#[derive(Debug, Error)]
pub(crate) enum PluginError {
    /// The kubeconfig is incomplete.
    #[error("the kubeconfig names a credential plugin without a command")]
    NoCommand,
    /// There is no such program, or it cannot run.
    #[error("the credential plugin cannot be started: {0}")]
    Start(std::io::Error),
    /// It said that it failed.
    #[error("the credential plugin failed ({0})")]
    Failed(ExitStatus),
    /// Its output is no credential.
    #[error("the credential plugin's output cannot be read")]
    Unreadable,
    /// It did not end, and was killed.
    #[error("the credential plugin did not end within {} s and was killed", RUN_WITHIN.as_secs())]
    Late,
}

#[derive(Deserialize)]
struct Credential {
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Replaces the user's plugin, where there is one, by what it says; returns when that ends.
pub(crate) async fn settle(user: &mut AuthInfo) -> Result<Option<Timestamp>, PluginError> {
    settle_provider(user);
    let stated = user.auth_provider.is_some()
        || user.token.is_some()
        || user.token_file.is_some()
        || (user.username.is_some() && user.password.is_some());
    // What is stated comes first, as it does for kube.
    let Some(exec) = user.exec.take().filter(|_| !stated) else { return Ok(None) };
    let Ok(output) = tokio::time::timeout(RUN_WITHIN, run(&exec)).await else {
        return Err(PluginError::Late);
    };
    let credential: Credential = serde_saphyr::from_slice(&output?).map_err(|_| PluginError::Unreadable)?;
    let Status { expiration_timestamp, token, client_certificate_data, client_key_data } = credential.status;
    let ends = expiration_timestamp.map(|at| at.parse()).transpose().map_err(|_| PluginError::Unreadable)?;
    let identity = client_certificate_data.zip(client_key_data);
    if token.is_none() && identity.is_none() {
        return Err(PluginError::Unreadable);
    }
    user.token = token.map(Into::into);
    if let Some((certificate, key)) = identity {
        user.client_certificate_data = Some(STANDARD.encode(certificate));
        user.client_key_data = Some(STANDARD.encode(key).into());
    }
    Ok(ends)
}

/// The provider `gcp` of old kubeconfigs runs a command, too. Without an end for its token kube runs it while logging in
/// and not within requests.
fn settle_provider(user: &mut AuthInfo) {
    if let Some(provider) = &mut user.auth_provider
        && provider.config.contains_key("cmd-path")
    {
        provider.config.remove("expiry-key");
        provider.config.remove("expiry");
    }
}

/// Runs it to its end. Dropped before, it ends the plugin and what that started.
async fn run(exec: &ExecConfig) -> Result<Vec<u8>, PluginError> {
    let mut command = Command::new(exec.command.as_ref().ok_or(PluginError::NoCommand)?);
    command.args(exec.args.iter().flatten());
    let pairs = exec.env.iter().flatten();
    command.envs(pairs.filter_map(|pair| Some((pair.get("name")?, pair.get("value")?))));
    let interactive =
        exec.interactive_mode != Some(ExecInteractiveMode::Never) && std::io::stdin().is_terminal();
    let cluster = exec.cluster.as_ref().filter(|_| exec.provide_cluster_info);
    let info = serde_json::json!({
        "apiVersion": exec.api_version, "kind": "ExecCredential",
        "spec": cluster.map_or_else(
            || serde_json::json!({"interactive": interactive}),
            |cluster| serde_json::json!({"interactive": interactive, "cluster": cluster}),
        ),
    });
    command.env("KUBERNETES_EXEC_INFO", info.to_string()).stdout(Stdio::piped()).kill_on_drop(true);
    if !interactive {
        // A terminal takes no input from another group than its own.
        command.stdin(Stdio::null()).stderr(Stdio::null()).process_group(0);
    }
    let mut child = command.spawn().map_err(PluginError::Start)?;
    // Dropped before the child is: its number is not given away yet.
    let mut group = Group(child.id().filter(|_| !interactive));
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let read = stdout.take(OUTPUT_MAX_BYTES).read_to_end(&mut output).await;
        read.map_err(|_| PluginError::Unreadable)?;
    }
    let status = child.wait().await.map_err(|_| PluginError::Unreadable)?;
    group.0 = None;
    if status.success() { Ok(output) } else { Err(PluginError::Failed(status)) }
}

/// A process group that ends with this value. A plugin is often a script, and what hangs is what the script started.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let leader = self.0.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(leader) = leader {
            // It may have ended by itself meanwhile.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn user(script: &str) -> AuthInfo {
        let exec = ExecConfig {
            api_version: Some("client.authentication.k8s.io/v1".to_owned()),
            command: Some("sh".to_owned()),
            args: Some(vec!["-c".to_owned(), script.to_owned()]),
            env: Some(vec![[("name", "WHO"), ("value", "me")].map(|(k, v)| (k.into(), v.into())).into()]),
            interactive_mode: Some(ExecInteractiveMode::Never),
            ..ExecConfig::default()
        };
        AuthInfo { exec: Some(exec), ..AuthInfo::default() }
    }

    #[tokio::test]
    async fn what_a_plugin_says_becomes_a_plain_credential() {
        let table = [
            (r#"echo '{"status": {"token": "t"}}'"#, Some("t"), None, None),
            ("echo 'status: {token: t}'", Some("t"), None, None),
            (r#"echo "{status: {token: $WHO}}""#, Some("me"), None, None),
            (
                r#"echo '{"status": {"token": "t", "expirationTimestamp": "2026-01-02T03:04:05Z"}}'"#,
                Some("t"),
                None,
                Some("2026-01-02T03:04:05Z"),
            ),
            (
                r#"printf %s '{"status": {"clientCertificateData": "c\n", "clientKeyData": "k\n"}}'"#,
                None,
                Some(("Ywo=", "awo=")),
                None,
            ),
            (
                r#"case $KUBERNETES_EXEC_INFO in *'"interactive":false'*) echo 'status: {token: alone}';; esac"#,
                Some("alone"),
                None,
                None,
            ),
        ];
        for (script, token, identity, ends) in table {
            let mut user = user(script);
            let told = settle(&mut user).await.unwrap();
            assert_eq!(user.token.as_ref().map(|token| token.expose_secret()), token, "{script}");
            let key = user.client_key_data.as_ref().map(|key| key.expose_secret());
            assert_eq!(user.client_certificate_data.as_deref().zip(key), identity, "{script}");
            assert_eq!(told.map(|at| at.to_string()).as_deref(), ends, "{script}");
            assert!(user.exec.is_none(), "kube has nothing to run");
        }
    }

    #[tokio::test]
    async fn without_a_credential_it_is_said_why_and_nothing_is_quoted() {
        let table = [
            ("echo s3cret; exit 3", "the credential plugin failed (exit status: 3)"),
            ("echo s3cret", "the credential plugin's output cannot be read"),
            ("echo 'status: {}'", "the credential plugin's output cannot be read"),
            (
                "echo 'status: {token: s3cret, expirationTimestamp: soon}'",
                "the credential plugin's output cannot be read",
            ),
        ];
        for (script, wanted) in table {
            assert_eq!(settle(&mut user(script)).await.unwrap_err().to_string(), wanted, "{script}");
        }
        let mut missing = user("");
        missing.exec.as_mut().unwrap().command = Some("/nowhere/at/all".to_owned());
        assert!(matches!(settle(&mut missing).await, Err(PluginError::Start(_))));
        missing = user("");
        missing.exec.as_mut().unwrap().command = None;
        assert!(matches!(settle(&mut missing).await, Err(PluginError::NoCommand)));
    }

    #[tokio::test]
    async fn a_stated_token_comes_before_a_plugin() {
        let mut user = user("exit 1");
        user.token = Some("stated".into());
        assert_eq!(settle(&mut user).await.unwrap(), None);
        assert_eq!(user.token.unwrap().expose_secret(), "stated");
    }

    #[tokio::test]
    async fn a_plugin_that_hangs_is_killed_with_what_it_started() {
        let pids = std::env::temp_dir().join(format!("reveille-kube-pids-{}", std::process::id()));
        let script = format!("echo $$ >> {pids}; sleep 600 & echo $! >> {pids}; wait", pids = pids.display());
        assert!(matches!(settle(&mut user(&script)).await, Err(PluginError::Late)));
        let started = std::fs::read_to_string(&pids).unwrap();
        std::fs::remove_file(&pids).unwrap();
        assert_eq!(started.lines().count(), 2);
        let lives = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ") && !stat.contains(") X ")
        };
        for _ in 0..100 {
            if !started.lines().any(lives) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("still there: {started}");
    }
}
