//! The target of traces: from the command line, or from OpenTelemetry's own variables where the operator enables them.
//!
//! Traces are off unless the operator enables them. The variables alone switch nothing on, because injectors put them
//! into every process of a host, and traces describe machines. Headers carry credentials: they are in no log, and come
//! only from the environment, because every process of the host sees the arguments.

use anyhow::anyhow;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::cli;

/// The path below a collector's base URL that takes traces over OTLP/HTTP.
const PATH: &str = "v1/traces";

/// The URL and the headers.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(super) endpoint: Url,
    /// Values are marked as sensitive, so that no debug output shows them.
    pub(super) headers: HeaderMap,
}

impl Config {
    /// The settings; `None` when the operator did not enable traces.
    pub(crate) fn read(
        args: &cli::controller::Run,
        variable: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Option<Self>> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let either = |traces: &str, all: &str| set(traces).or_else(|| set(all));
        let endpoint = match (&args.otlp_endpoint, args.otlp_env) {
            (Some(base), _) => below(base, "--otlp-endpoint")?,
            (None, false) => return Ok(None),
            (None, true) => {
                if either("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
                    .is_some_and(|protocol| !protocol.starts_with("http/"))
                {
                    let says = "OTEL_EXPORTER_OTLP_PROTOCOL asks for something else than HTTP; traces are sent over OTLP/HTTP";
                    return Err(anyhow!("{says}: name a collector's port for it with --otlp-endpoint"));
                }
                match (set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), set("OTEL_EXPORTER_OTLP_ENDPOINT")) {
                    // The specification says that this URL is used as it is.
                    (Some(whole), _) => url(&whole, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")?,
                    (None, Some(base)) => below(&base, "OTEL_EXPORTER_OTLP_ENDPOINT")?,
                    (None, None) => {
                        let says = "--otlp-env needs OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
                        return Err(anyhow!("{says}, and neither is set"));
                    }
                }
            }
        };
        let written = either("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS");
        let headers = headers(written.as_deref().unwrap_or_default())?;
        Ok(Some(Self { endpoint, headers }))
    }
}

fn below(base: &str, name: &str) -> anyhow::Result<Url> {
    let mut url = url(base, name)?;
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with(PATH) {
        url.set_path(&format!("{path}/{PATH}"));
    }
    Ok(url)
}

/// The error does not quote the text, which may hold a password.
fn url(text: &str, name: &str) -> anyhow::Result<Url> {
    let url = Url::parse(text.trim()).map_err(|error| anyhow!("{name} is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(anyhow!("{name} has to begin with http:// or https:// and a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(anyhow!(
            "{name} holds credentials; give them as a header in OTEL_EXPORTER_OTLP_HEADERS, where no log shows them"
        ));
    }
    Ok(url)
}

/// `name=value,name=value`, values percent-encoded where they have to be.
fn headers(text: &str) -> anyhow::Result<HeaderMap> {
    let mut all = HeaderMap::new();
    for (place, pair) in (1..).zip(text.split(',')).filter(|(_, pair)| !pair.trim().is_empty()) {
        let wrong = |what: &str| anyhow!("OTEL_EXPORTER_OTLP_HEADERS: {what} of header {place} is none");
        let (name, value) = pair.split_once('=').ok_or_else(|| wrong("the name=value"))?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| wrong("the name"))?;
        let mut value = decoded(value.trim())
            .and_then(|value| HeaderValue::from_bytes(&value).ok())
            .ok_or_else(|| wrong("the value"))?;
        value.set_sensitive(true);
        all.append(name, value);
    }
    Ok(all)
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            out.push(*first);
            rest = after;
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    const SECRET: &str = "Bearer c4n4ry";

    fn read(args: &[&str], variables: &[(&str, &str)]) -> Result<Option<Config>, String> {
        let line = ["reveille", "run", "--listen", "127.0.0.1:0"].iter().chain(args);
        let cli = cli::Cli::try_parse_from(line).map_err(|error| error.to_string())?;
        let cli::Command::Controller(cli::controller::Command::Run(run)) = cli.command else { panic!("run") };
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Config::read(&run, variable).map_err(|error| error.to_string())
    }

    #[test]
    fn export_needs_an_option_and_variables_follow_the_standard() {
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/base/");
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/as-it-is");
        let table: [(&[&str], &[(&str, &str)], Option<&str>); 5] = [
            (&[], &[all, traces], None),
            (&["--otlp-env"], &[all], Some("http://c:4318/base/v1/traces")),
            (&["--otlp-env"], &[all, traces], Some("https://t/as-it-is")),
            (&["--otlp-endpoint", "http://o:4318"], &[], Some("http://o:4318/v1/traces")),
            (&["--otlp-endpoint", "http://o/v1/traces"], &[], Some("http://o/v1/traces")),
        ];
        for (args, variables, wanted) in table {
            let config = read(args, variables).unwrap();
            assert_eq!(config.as_ref().map(|config| config.endpoint.as_str()), wanted, "{args:?}");
        }
    }

    #[test]
    fn headers_come_from_the_environment_and_stay_hidden() {
        let written = ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20c4n4ry, x-scope=a");
        let config = read(&["--otlp-endpoint", "http://o"], &[written]).unwrap().unwrap();
        assert_eq!(config.headers["authorization"], SECRET);
        assert_eq!(config.headers["x-scope"], "a");
        assert!(!format!("{config:?}").contains("c4n4ry"));
    }

    #[test]
    fn unusable_otlp_setting_is_refused_without_quoting_credentials() {
        let table: [(&[&str], &[(&str, &str)], &str); 6] = [
            (&["--otlp-env"], &[], "neither is set"),
            (&["--otlp-endpoint", "o:4318"], &[], "http://"),
            (&["--otlp-endpoint", "http://u:c4n4ry@o"], &[], "credentials"),
            (&["--otlp-endpoint", "http://o"], &[("OTEL_EXPORTER_OTLP_HEADERS", "c4n4ry")], "header 1"),
            (
                &["--otlp-endpoint", "http://o"],
                &[("OTEL_EXPORTER_OTLP_HEADERS", "a=1,b=%c4n4ry%")],
                "header 2",
            ),
            (&["--otlp-env"], &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "OTLP/HTTP"),
        ];
        for (args, variables, wanted) in table {
            let error = read(args, variables).unwrap_err();
            assert!(error.contains(wanted) && !error.contains("c4n4ry"), "{error}");
        }
    }
}
