//! The configuration of a k3s or RKE2 agent on this machine: its files, the environment of its unit and the unit's
//! arguments.
//!
//! ```text
//!  environment of the unit  <  config.yaml  <  config.yaml.d/*.yaml, by name  <  arguments in the unit's ExecStart
//!                                 the same of a file that `--config` or `K3S_CONFIG_FILE` names
//! ```
//!
//! The later source counts, as for the agent itself: it turns its files into arguments, which override the environment,
//! and the unit's own arguments come after them. A key of one letter is a short option, as in the arguments. Only the
//! settings that a join needs are read. A token is in a type that hides itself; a file that contains one is named, not
//! quoted.

use std::collections::BTreeMap;
use std::path::PathBuf;

use reveille_core::model::id::NodeName;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::file::nothing;
use super::kubeconfig::{Kubeconfig, unreadable};
use super::reader::Reader;
use super::unit::{self, Line, Unit};
use super::{Endpoint, Kind, Target, TargetError, Token, ToldBy, documents};
use crate::bundle_hash::Bundle;
use crate::root::Root;

/// Our own file in `config.yaml.d`. By its name the agent reads it after most operators' files.
pub const OWN_FILE: &str = "90-reveille.yaml";

/// The most data folders of one service that are remembered: more than a machine ever had.
const FOLDERS_MAX: usize = 64;

/// The supervisor's default port.
pub const fn supervisor_port(kind: Kind) -> u16 {
    match kind {
        Kind::Kubeadm | Kind::K3s => 6443,
        Kind::Rke2 => 9345,
    }
}

/// An agent's configuration.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    kind: Kind,
    said: BTreeMap<String, Said>,
    /// Secrets that do not count, because a later place says another: a log may still have them.
    replaced: Vec<SecretString>,
    /// Each data folder that any place names, also one that does not count.
    folders: Vec<String>,
    /// The first place that says in other words than a path where the data or more configuration is.
    riddle: Option<String>,
}

/// One setting, and its place.
#[derive(Clone, Debug)]
struct Said {
    value: SecretString,
    place: String,
    is_argument: bool,
}

/// A setting before it is known what else there is.
struct Setting {
    key: String,
    value: String,
    /// The value with the quotes and backslashes of its place.
    spelled: String,
    place: String,
    counts: bool,
    is_argument: bool,
}

impl Setting {
    fn new(key: &str, value: &str, place: &str) -> Self {
        Self {
            key: long(key).to_owned(),
            value: value.to_owned(),
            spelled: value.to_owned(),
            place: place.to_owned(),
            counts: true,
            is_argument: false,
        }
    }

    /// What cannot be read here may name any folder, in a file or by itself.
    fn riddle(place: &str) -> Self {
        Self::new("config", "$", place)
    }

    /// It says where something is, and its words are no path: a variable, a pattern, an address of the network.
    fn is_riddle(&self) -> bool {
        let is_place = matches!(self.key.as_str(), "data-dir" | "config");
        is_place && !self.value.is_empty() && !is_plain_path(&self.value)
    }
}

impl AgentConfig {
    /// Reads the existing files; a missing file has no settings.
    ///
    /// # Errors
    ///
    /// A file exists and cannot be read, or the configuration is larger than any real one.
    pub fn read(kind: Kind, root: &Root) -> Result<Self, TargetError> {
        let (own, whole) = Self::as_far_as_it_goes(kind, root);
        whole.map(|()| own)
    }

    /// The readable part, and why it is not all: an unreadable file of one sort hides no settings of the others.
    pub(crate) fn as_far_as_it_goes(kind: Kind, root: &Root) -> (Self, Result<(), TargetError>) {
        Self::of_service(kind, &format!("{kind}-agent"), root)
    }

    /// The same of this kind's server, which reads the same files, and whose unit and environment are others.
    pub(crate) fn of_server(kind: Kind, root: &Root) -> (Self, Result<(), TargetError>) {
        let service = if kind == Kind::Rke2 { "rke2-server".to_owned() } else { kind.to_string() };
        Self::of_service(kind, &service, root)
    }

    fn of_service(kind: Kind, service: &str, root: &Root) -> (Self, Result<(), TargetError>) {
        let said = BTreeMap::new();
        let mut own = Self { kind, said, replaced: Vec::new(), folders: Vec::new(), riddle: None };
        let (unit, units) = Unit::of(service, root);
        let (environment, environments) = environment(kind, service, &unit, root);
        let arguments: Vec<Setting> = unit.commands.iter().flat_map(arguments).collect();
        // Of the two the environment's counts, so its file is read last.
        let named = arguments.iter().chain(&environment).filter(|said| said.key == "config");
        let named = named.map(|said| said.value.clone()).filter(|path| is_plain_path(path));
        let named: Vec<String> =
            [format!("/etc/rancher/{kind}/config.yaml")].into_iter().chain(named).collect();
        environment.into_iter().for_each(|said| own.put(said));
        let files = own.files(&named, root);
        arguments.into_iter().for_each(|said| own.put(said));
        (own, environments.and(files).and(units))
    }

    fn files(&mut self, named: &[String], root: &Root) -> Result<(), TargetError> {
        let mut reader = Reader::default();
        for first in named {
            for path in files(first, root)? {
                let text = reader.text(root, &path)?;
                let read = documents::<BTreeMap<String, Value>>(&text);
                for map in read.map_err(|error| error.within(&path))? {
                    map.into_iter().for_each(|(key, value)| self.say(&key, &value, &path));
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, setting: Setting) {
        if setting.is_riddle() {
            self.riddle.get_or_insert_with(|| setting.place.clone());
        }
        let Setting { key, value, spelled, place, counts, is_argument } = setting;
        if is_secret(&key) && spelled != value {
            self.replaced.push(spelled.into());
        }
        if key == "data-dir" {
            self.remember(&value, &place);
        }
        let said = Said { value: value.into(), place, is_argument };
        let before = if counts { self.said.insert(key.clone(), said) } else { Some(said) };
        self.replaced.extend(before.filter(|_| is_secret(&key)).map(|before| before.value));
    }

    fn remember(&mut self, folder: &str, place: &str) {
        let folder = folder.trim_end_matches('/');
        if self.folders.iter().any(|known| known == folder) {
            return;
        }
        if self.folders.len() == FOLDERS_MAX {
            self.riddle.get_or_insert_with(|| place.to_owned());
        } else if folder.starts_with('/') {
            self.folders.push(folder.to_owned());
        }
    }

    fn say(&mut self, key: &str, value: &Value, place: &str) {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Null => return,
            // Of a list the last counts where one is asked for.
            Value::Array(all) => return all.iter().for_each(|one| self.say(key, one, place)),
            other => other.to_string(),
        };
        self.put(Setting::new(key.trim_end_matches('+'), &value, place));
    }

    /// The value of a setting, and its place.
    fn get(&self, key: &str) -> Option<(&str, &str)> {
        let said = self.said.get(key)?;
        let value = said.value.expose_secret();
        (!value.is_empty()).then_some((value, said.place.as_str()))
    }

    /// Each value that is a credential, also one that a later place replaced.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let counting = self.said.iter().filter(|(key, _)| is_secret(key)).map(|(_, said)| &said.value);
        counting.chain(&self.replaced).map(SecretString::expose_secret)
    }

    /// The agent's data directory.
    pub fn data_folder(&self) -> String {
        let usual = || format!("/var/lib/rancher/{}", self.kind);
        let said = self.get("data-dir").map(|(path, _)| path.trim_end_matches('/').to_owned());
        said.filter(|path| path.starts_with('/')).unwrap_or_else(usual)
    }

    /// Each data folder that is named anywhere: a server may have run there.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &str> {
        self.folders.iter().map(String::as_str)
    }

    /// The first place that says in other words than a path where the data or more configuration is.
    pub(crate) fn riddle(&self) -> Option<&str> {
        self.riddle.as_deref()
    }

    /// The server's address, and the place of the setting.
    ///
    /// # Errors
    ///
    /// The value is not an address.
    pub fn server(&self) -> Result<Option<(Endpoint, String)>, TargetError> {
        let Some((text, place)) = self.get("server") else { return Ok(None) };
        let endpoint = Endpoint::of_file(&format!("{place}: server"), text)?;
        Ok(Some((endpoint, place.to_owned())))
    }

    /// The token, as a value or in the file that a setting names.
    ///
    /// # Errors
    ///
    /// The value is not a token.
    pub fn token(&self, root: &Root) -> Result<Option<Token>, TargetError> {
        if let Some((path, _)) = self.get("token-file") {
            let text = root.text(path).map_err(|error| unreadable(path, &error))?;
            return text.map(|text| Token::parse_for(self.kind, path, &text.into())).transpose();
        }
        let Some((text, place)) = self.get("token") else { return Ok(None) };
        Token::parse_for(self.kind, &format!("{place}: token"), &text.into()).map(Some)
    }

    /// The socket of a runtime that is not the agent's own.
    pub fn runtime(&self) -> Option<&str> {
        self.get("container-runtime-endpoint").map(|(socket, _)| socket)
    }

    /// The Node name in the configuration. With `with-node-id` the agent appends an id, which exists once it has run.
    pub fn node_name(&self, root: &Root, host: Option<&NodeName>) -> Option<NodeName> {
        let told = self.get("node-name").map(|(name, _)| NodeName::new(name.to_lowercase()));
        if !self.adds_id() {
            return told;
        }
        let name = told.or_else(|| host.cloned())?;
        let id = root.text("/etc/rancher/node/id").ok().flatten()?;
        Some(NodeName::new(format!("{name}-{}", id.trim())))
    }

    /// The agent appends an id to the name.
    pub fn adds_id(&self) -> bool {
        self.get("with-node-id").is_some_and(|(value, _)| value == "true")
    }

    /// A setting of the server or token in the unit's own arguments, which override every file: the setting, the unit,
    /// and the flag. Returns the first of server, token and token file.
    pub fn fixed(&self) -> Option<(&'static str, &str, String)> {
        ["server", "token", "token-file"].into_iter().find_map(|key| {
            let (_, place) = self.get(key)?;
            self.said.get(key)?.is_argument.then(|| (key, place, format!("--{key}")))
        })
    }
}

/// The setting of this name is a credential.
fn is_secret(key: &str) -> bool {
    const NAMES: [&str; 6] = ["token", "auth", "secret", "password", "key", "datastore-endpoint"];
    !key.ends_with("-file") && NAMES.iter().any(|name| key.contains(name))
}

/// The long name of a setting: k3s makes `-d` of the key `d` in a file, too.
fn long(key: &str) -> &str {
    match key {
        "s" => "server",
        "t" => "token",
        "d" => "data-dir",
        "c" => "config",
        long => long,
    }
}

fn is_plain_path(text: &str) -> bool {
    text.starts_with('/') && !text.contains(['$', '%', '*', '?', '['])
}

/// The settings of a unit's environment; the files count before its own lines.
fn environment(
    kind: Kind,
    service: &str,
    unit: &Unit,
    root: &Root,
) -> (Vec<Setting>, Result<(), TargetError>) {
    let mut all = Vec::new();
    for line in &unit.environment {
        for word in unit::words(&line.text) {
            let spelled = unquoted(after_equals(&word.spelled)).to_owned();
            let said = variable(kind, &word.text, &line.place);
            all.extend(said.map(|said| Setting { spelled, counts: line.counts, ..said }));
        }
    }
    let mut paths = environments(kind, service);
    for line in unit.environment_files.iter().filter(|line| line.counts) {
        let path = line.text.trim_start_matches('-').replace("%N", service).replace("%p", service);
        if !is_plain_path(&path) {
            all.push(Setting::riddle(&line.place));
        } else if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let mut reader = Reader::default();
    let mut read = || {
        for path in &paths {
            let text = reader.text(root, path)?;
            all.extend(text.lines().filter_map(|line| variable(kind, line.trim(), path)));
        }
        Ok(())
    };
    let whole = read();
    (all, whole)
}

/// The setting of `K3S_URL=…`.
fn variable(kind: Kind, line: &str, place: &str) -> Option<Setting> {
    let (name, value) = line.split_once('=')?;
    let name = name.strip_prefix(&kind.name().to_uppercase())?.strip_prefix('_')?;
    let option = name.to_lowercase().replace('_', "-");
    let key = match name {
        "URL" => "server",
        "TOKEN" => "token",
        "TOKEN_FILE" => "token-file",
        "NODE_NAME" => "node-name",
        "DATA_DIR" => "data-dir",
        "CONFIG_FILE" => "config",
        _ if is_secret(&option) => &option,
        _ => return None,
    };
    Some(Setting::new(key, unquoted(value), place))
}

/// The options of a line behind `ExecStart=`.
fn arguments(line: &Line) -> Vec<Setting> {
    let mut all = Vec::new();
    let mut words = unit::words(&line.text).into_iter().peekable();
    while let Some(word) = words.next() {
        // systemd makes words of what the variable holds.
        if word.text.starts_with('$') {
            all.push(Setting { counts: line.counts, ..Setting::riddle(&line.place) });
        }
        // As k3s and RKE2 read options: one dash is as good as two.
        let Some(flag) = word.text.strip_prefix('-') else { continue };
        let flag = flag.strip_prefix('-').unwrap_or(flag);
        let (name, value, spelled) = match flag.split_once('=') {
            Some((name, value)) => (name, value.to_owned(), after_equals(&word.spelled).to_owned()),
            // A token may begin with a dash.
            None => {
                let is_token = flag == "t" || flag.ends_with("token");
                let next = words.next_if(|next| is_token || !next.text.starts_with('-'));
                let alone = || ("true".to_owned(), String::new());
                let (value, spelled) = next.map_or_else(alone, |next| (next.text, next.spelled));
                (flag, value, spelled)
            }
        };
        // `sh -c 'k3s server …'` has the options in one word.
        if name.len() <= 2 && name.ends_with('c') && value.contains(' ') {
            all.extend(arguments(&Line { text: value, place: line.place.clone(), counts: line.counts }));
            continue;
        }
        let spelled = unquoted(&spelled).to_owned();
        let said = Setting::new(name, &value, &line.place);
        all.push(Setting { spelled, counts: line.counts, is_argument: true, ..said });
    }
    all
}

fn after_equals(spelled: &str) -> &str {
    spelled.split_once('=').map_or(spelled, |(_, value)| value)
}

/// Without the quotes around it, which a bundle may show.
fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}

/// Our own file, in whole.
pub fn own_file(kind: Kind) -> String {
    format!("/etc/rancher/{kind}/config.yaml.d/{OWN_FILE}")
}

/// The token file that our own file names.
pub fn own_token_file(kind: Kind) -> String {
    format!("/etc/rancher/{kind}/reveille-token")
}

/// The target of a join with this distribution: from the agent's data, or from its configuration.
pub(super) fn target(kind: Kind, root: &Root) -> Result<Option<Target>, TargetError> {
    let config = AgentConfig::read(kind, root)?;
    let Some((endpoint, place)) = config.server()? else { return Ok(None) };
    let token = config.token(root)?;
    let folder = config.data_folder();
    let kept = format!("{folder}/agent/server-ca.crt");
    let bytes = root.bytes(&kept).map_err(|error| unreadable(&kept, &error))?;
    // A joined agent keeps the CAs of its cluster, which it once accepted by its token.
    let kept = bytes.and_then(|bytes| Bundle::read(&bytes).ok());
    let said = token.as_ref().and_then(Token::bundle);
    let pins = match (&said, &kept) {
        (None, Some(_)) => Kubeconfig::read(root, &format!("{folder}/agent/kubelet.kubeconfig"))
            .ok()
            .flatten()
            .map(|own| own.pins())
            .unwrap_or_default(),
        _ => Vec::new(),
    };
    let host = crate::identity::Identity::read(root).node_name();
    Ok(Some(Target {
        kind,
        told_by: ToldBy::Machine(PathBuf::from(place)),
        endpoints: vec![endpoint],
        bundle: said,
        pins,
        token,
        node_name: config.node_name(root, host.as_ref()),
        cri_socket: config.runtime().map(str::to_owned),
        ..nothing()
    }))
}

/// The distribution of this machine, by its files; none where there are no files, or those of two distributions.
pub(super) fn kind_of(root: &Root) -> Option<Kind> {
    let is_there = |path: String| root.is_seen(path);
    let of = |kind: &Kind| match kind {
        Kind::Kubeadm => {
            [super::KUBECONFIG, super::BOOTSTRAP_KUBECONFIG].iter().any(|path| is_there((*path).to_owned()))
        }
        kind => {
            units(*kind).into_iter().any(is_there)
                || is_there(format!("/etc/rancher/{kind}/config.yaml"))
                || is_there(format!("/var/lib/rancher/{kind}/agent/kubelet.kubeconfig"))
        }
    };
    let mut found = Kind::ALL.into_iter().filter(of);
    let first = found.next();
    if found.next().is_some() { None } else { first }
}

/// A file of configuration, and the files beside it, in the order in which the agent reads them.
fn files(first: &str, root: &Root) -> Result<Vec<String>, TargetError> {
    let folder = format!("{first}.d");
    let names = root.names(&folder).map_err(|error| unreadable(&folder, &error))?.unwrap_or_default();
    let beside = names.iter().filter(|name| [".yaml", ".yml"].iter().any(|end| name.ends_with(end)));
    Ok(std::iter::once(first.to_owned()).chain(beside.map(|name| format!("{folder}/{name}"))).collect())
}

fn environments(kind: Kind, service: &str) -> Vec<String> {
    let usual = ["/etc/default", "/etc/sysconfig"].map(|folder| format!("{folder}/{service}"));
    let own = match kind {
        Kind::Rke2 => format!("/usr/local/lib/systemd/system/{service}.env"),
        Kind::Kubeadm | Kind::K3s => format!("/etc/systemd/system/{service}.service.env"),
    };
    usual.into_iter().chain([own]).collect()
}

/// The possible paths of the agent's unit.
pub(crate) fn units(kind: Kind) -> Vec<String> {
    unit::paths(&format!("{kind}-agent"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        for (path, text) in files {
            fs::create_dir_all(root.at(path).parent().unwrap()).unwrap();
            fs::write(root.at(path), text).unwrap();
        }
        (folder, root)
    }

    #[test]
    fn later_setting_wins_in_the_order_that_the_agent_reads_them() {
        let env = (
            "/etc/systemd/system/k3s-agent.service.env",
            "K3S_URL=\"https://env:6443\"\nK3S_TOKEN='pw'\nHTTP_PROXY=x\n",
        );
        let main = (
            "/etc/rancher/k3s/config.yaml",
            "server: https://main:6443\nnode-label:\n- a=b\nnode-name: One\n",
        );
        let beside = ("/etc/rancher/k3s/config.yaml.d/50.yaml", "server: https://beside:6443\n");
        let ignored = ("/etc/rancher/k3s/config.yaml.d/60.txt", "server: https://ignored:6443\n");
        let unit = (
            "/etc/systemd/system/k3s-agent.service",
            "[Service]\nExecStart=/usr/local/bin/k3s \\\n    agent \\\n\t'--server' \\\n\t'https://unit:6443' \\\n\t'--with-node-id'\n",
        );
        for (files, wanted, fixed) in [
            (vec![env], "env:6443", None),
            (vec![env, main], "main:6443", None),
            (vec![env, main, beside, ignored], "beside:6443", None),
            (vec![env, main, beside, unit], "unit:6443", Some("--server".to_owned())),
        ] {
            let (_folder, root) = machine(&files);
            let config = AgentConfig::read(Kind::K3s, &root).unwrap();
            let (endpoint, _) = config.server().unwrap().unwrap();
            let flag = config.fixed().map(|(_, _, flag)| flag);
            assert_eq!((endpoint.to_string().as_str(), flag), (wanted, fixed));
            assert_eq!(config.token(&root).unwrap().unwrap().whole().expose_secret(), "pw");
            assert!(!format!("{config:?}").contains("pw"));
        }
        let (_folder, root) = machine(&[main, ("/etc/rancher/node/id", "1a2b3c4d\n"), unit]);
        let config = AgentConfig::read(Kind::K3s, &root).unwrap();
        assert_eq!(config.node_name(&root, None), Some(NodeName::from("one-1a2b3c4d")));
    }

    #[test]
    fn every_configured_token_is_known_also_by_short_option() {
        let main = ("/etc/rancher/k3s/config.yaml", "server: https://main:6443\ntoken: lemonade of mine\n");
        let beside = ("/etc/rancher/k3s/config.yaml.d/50.yaml", "token: [another one, a third one]\n");
        for option in
            ["'-t' \\\n\t'hUnt3rTwo9zQ'", "-token hUnt3rTwo9zQ", "-t=hUnt3rTwo9zQ", "--token='hUnt3rTwo9zQ'"]
        {
            let unit = format!(
                "[Service]\nExecStart=/usr/local/bin/k3s \\\n  agent \\\n\t-s https://unit:6443 {option} \\\n\n"
            );
            let unit = ("/etc/systemd/system/k3s-agent.service", unit.as_str());
            let (_folder, root) = machine(&[main, beside, unit]);
            let config = AgentConfig::read(Kind::K3s, &root).unwrap();
            assert_eq!(config.server().unwrap().unwrap().0.to_string(), "unit:6443");
            assert_eq!(config.token(&root).unwrap().unwrap().whole().expose_secret(), "hUnt3rTwo9zQ");
            let known = crate::known::Known::of_machine(&root, None, &[]);
            for secret in ["hUnt3rTwo9zQ", "lemonade of mine", "another one", "a third one"] {
                let text = known.clean(&format!("it said {secret} here"));
                assert!(!text.contains(secret) && text.ends_with(" here"), "{option}: {text}");
            }
        }
    }

    #[test]
    fn machine_config_gives_distribution_endpoint_and_token() {
        let config = format!(
            "server: https://10.0.0.1:9345\ntoken: K10{HASH}::server:pass-word-1\ndata-dir: /data/rke2/\n"
        );
        let (_folder, root) = machine(&[("/etc/rancher/rke2/config.yaml", &config)]);
        assert_eq!(kind_of(&root), Some(Kind::Rke2));
        let target = target(Kind::Rke2, &root).unwrap().unwrap();
        assert_eq!((target.kind, target.endpoints[0].to_string().as_str()), (Kind::Rke2, "10.0.0.1:9345"));
        assert_eq!(target.bundle.map(|hash| hash.to_string()).as_deref(), Some(HASH));
        assert_eq!(target.told_by, ToldBy::Machine("/etc/rancher/rke2/config.yaml".into()));
        assert_eq!(AgentConfig::read(Kind::Rke2, &root).unwrap().data_folder(), "/data/rke2");
        assert!(super::target(Kind::K3s, &root).unwrap().is_none());
        // Files of two distributions do not name one; an operator has to.
        let (_folder, both) =
            machine(&[("/etc/rancher/rke2/config.yaml", ""), (super::super::KUBECONFIG, "")]);
        assert_eq!(kind_of(&both), None);
        assert_eq!(kind_of(&machine(&[]).1), None);
    }

    #[test]
    fn invalid_config_file_is_refused_by_path_without_token() {
        let (_folder, root) = machine(&[("/etc/rancher/k3s/config.yaml", "token: [s3cretpassword1\n")]);
        let error = AgentConfig::read(Kind::K3s, &root).unwrap_err();
        assert!(error.place.contains("config.yaml") && !format!("{error:?}").contains("s3cret"), "{error:?}");
    }
}
