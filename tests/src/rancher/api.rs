//! A client of the API server for those who are not under test: whole objects, one request each.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use ureq::Agent;
use ureq::http::{Method, Request};

use crate::calls::agent;
use crate::rig::KubernetesFacts;
use crate::wait::s;

/// The API server.
#[derive(Clone)]
pub struct Api {
    agent: Agent,
    base: String,
}

/// What it answered.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body; null where it is no JSON.
    pub body: Value,
}

impl Api {
    /// The API server of a rig, where clients without credentials go in.
    ///
    /// # Errors
    /// When the kubeconfig names no server.
    pub fn of(facts: &KubernetesFacts) -> Result<Self> {
        Ok(Self { agent: agent(s(20)), base: server(facts)? })
    }

    /// `host:port` of it.
    pub fn host(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    /// One request.
    ///
    /// # Errors
    /// When no answer comes.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer> {
        let request = Request::builder()
            .method(Method::from_bytes(method.as_bytes())?)
            .uri(format!("{}{path}", self.base))
            .header("Content-Type", "application/json")
            .body(body.map(Value::to_string).unwrap_or_default())?;
        let mut answer = self.agent.run(request).with_context(|| format!("{method} {path}"))?;
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Answer { status: answer.status().as_u16(), body })
    }

    /// Reads; `None` when it is not there.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn get(&self, path: &str) -> Result<Option<Value>> {
        let answer = self.ask("GET", path, None)?;
        if answer.status == 404 {
            return Ok(None);
        }
        ensure!(answer.status == 200, "GET {path}: {} {}", answer.status, answer.body);
        Ok(Some(answer.body))
    }

    /// The items of a list.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn list(&self, path: &str) -> Result<Vec<Value>> {
        let list = self.get(path)?.with_context(|| format!("there is no {path}"))?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Makes an object below a list's path.
    ///
    /// # Errors
    /// When it is refused.
    pub fn make(&self, list: &str, object: &Value) -> Result<Value> {
        let answer = self.ask("POST", list, Some(object))?;
        ensure!(answer.status == 201, "POST {list}: {} {}", answer.status, answer.body);
        Ok(answer.body)
    }

    /// Replaces an object, if it has still the revision that it had; says whether it was.
    ///
    /// # Errors
    /// When it is refused for another reason than that another client was faster, or it is gone.
    pub fn replace(&self, path: &str, object: &Value) -> Result<bool> {
        let answer = self.ask("PUT", path, Some(object))?;
        let is_late = matches!(answer.status, 404 | 409);
        ensure!(answer.status == 200 || is_late, "PUT {path}: {} {}", answer.status, answer.body);
        Ok(!is_late)
    }

    /// Deletes an object; one that is not there is no error.
    ///
    /// # Errors
    /// When it is refused.
    pub fn delete(&self, path: &str) -> Result<()> {
        let answer = self.ask("DELETE", path, None)?;
        ensure!(matches!(answer.status, 200 | 202 | 404), "DELETE {path}: {} {}", answer.status, answer.body);
        Ok(())
    }
}

/// Where clients without credentials go in: the fault proxy.
///
/// # Errors
/// When the kubeconfig names no server.
pub fn server(facts: &KubernetesFacts) -> Result<String> {
    let text = std::fs::read_to_string(&facts.proxy_kubeconfig)?;
    let (_, rest) = text.split_once("server: \"").context("the kubeconfig names no server")?;
    Ok(rest.split('"').next().unwrap_or_default().to_owned())
}
