//! Eyes of our own on the cloud: Keystone, Nova and Neutron read directly, past the fault proxy and past Reveille's adapter.
//!
//! Every claim of a scenario about an effect is read here. It changes things only to set a scene or to clean up after
//! one. JSON stays JSON: a scenario asks for the one field that it is about.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::{Method, Request};

use crate::calls::agent;
use crate::rig::OpenStackFacts;

/// A project, as one of its users.
pub struct Cloud {
    agent: Agent,
    facts: OpenStackFacts,
    user: &'static str,
    password: &'static str,
    token: RefCell<Option<String>>,
}

/// A service that can be asked.
#[derive(Clone, Copy, Debug)]
pub enum Service {
    /// Identity.
    Keystone,
    /// Compute.
    Nova,
    /// Network.
    Neutron,
}

/// Status and body.
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body, `null` when there is none.
    pub body: Value,
}

impl Cloud {
    /// As a member of the project. Logs in at the first question.
    pub fn new(facts: &OpenStackFacts) -> Self {
        Self::of_user(facts, "demo", "demo")
    }

    /// As the cloud's operator, with the same project in hand.
    pub fn operator(facts: &OpenStackFacts) -> Self {
        Self::of_user(facts, "admin", "rigadmin")
    }

    fn of_user(facts: &OpenStackFacts, user: &'static str, password: &'static str) -> Self {
        let agent = agent(Duration::from_secs(30));
        Self { agent, facts: facts.clone(), user, password, token: RefCell::new(None) }
    }

    fn log_in(&self) -> Result<String> {
        let project = if self.user == "admin" { "admin" } else { "demo" };
        let domain = json!({"name": "Default"});
        let body = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {
                "name": self.user, "password": self.password, "domain": domain}}},
            "scope": {"project": {"name": project, "domain": domain}}}});
        let url = format!("{}/auth/tokens", self.facts.direct_endpoints.keystone);
        let answer = self.agent.post(url).send_json(body).context("Keystone")?;
        let token = answer.headers().get("x-subject-token").and_then(|token| token.to_str().ok());
        token.map(str::to_owned).context("Keystone gives no token")
    }

    /// Asks a service.
    ///
    /// # Errors
    /// When no service answers. A refusal is an answer.
    pub fn ask(&self, method: &str, service: Service, path: &str, body: Option<&Value>) -> Result<Answer> {
        if self.token.borrow().is_none() {
            let token = self.log_in()?;
            *self.token.borrow_mut() = Some(token);
        }
        let base = match service {
            Service::Keystone => &self.facts.direct_endpoints.keystone,
            Service::Nova => &self.facts.direct_endpoints.nova,
            Service::Neutron => &self.facts.direct_endpoints.neutron,
        };
        let token = self.token.borrow().clone().unwrap_or_default();
        let request = Request::builder()
            .method(Method::from_bytes(method.as_bytes())?)
            .uri(format!("{base}{path}"))
            .header("X-Auth-Token", token)
            .header("OpenStack-API-Version", "compute 2.79")
            .header("Content-Type", "application/json")
            .body(body.map(Value::to_string).unwrap_or_default())?;
        let mut answer = self.agent.run(request).with_context(|| format!("{service:?} {method} {path}"))?;
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Ok(Answer { status: answer.status().as_u16(), body })
    }

    fn get(&self, service: Service, path: &str) -> Result<Value> {
        let answer = self.ask("GET", service, path, None)?;
        ensure!(answer.status == 200, "{service:?} GET {path}: {} {}", answer.status, answer.body);
        Ok(answer.body)
    }

    fn change(&self, method: &str, service: Service, path: &str, body: Option<&Value>) -> Result<Value> {
        let answer = self.ask(method, service, path, body)?;
        ensure!(answer.status < 300, "{service:?} {method} {path}: {} {}", answer.status, answer.body);
        Ok(answer.body)
    }

    /// Makes a user that may do nothing yet, and gives its id.
    ///
    /// # Errors
    /// When Keystone refuses, as it does to all but the operator.
    pub fn make_user(&self, name: &str, password: &str) -> Result<String> {
        let user = json!({"user": {"name": name, "password": password, "domain_id": "default"}});
        let made = self.change("POST", Service::Keystone, "/users", Some(&user))?;
        Ok(text(&made["user"]["id"]))
    }

    /// Deletes users, whatever they may do.
    ///
    /// # Errors
    /// When Keystone does not answer.
    pub fn delete_users(&self, ids: &[&str]) -> Result<()> {
        for id in ids {
            self.ask("DELETE", Service::Keystone, &format!("/users/{id}"), None)?;
        }
        Ok(())
    }

    /// Lets a user hold a role on the project of the machines.
    ///
    /// # Errors
    /// When Keystone refuses.
    pub fn give_role(&self, user: &str, role: &str) -> Result<()> {
        let roles = list(&self.get(Service::Keystone, &format!("/roles?name={role}"))?, "roles");
        let role = roles.first().map(|role| text(&role["id"])).context("there is no such role")?;
        let project = &self.facts.project_id;
        let path = format!("/projects/{project}/users/{user}/roles/{role}");
        self.change("PUT", Service::Keystone, &path, None).map(drop)
    }

    /// The roles that were given to a user itself on the project of the machines, by name.
    ///
    /// # Errors
    /// When Keystone does not answer.
    pub fn roles_of(&self, user: &str) -> Result<Vec<String>> {
        let path = format!("/projects/{}/users/{user}/roles", self.facts.project_id);
        let mut names: Vec<String> = list(&self.get(Service::Keystone, &path)?, "roles")
            .iter()
            .map(|role| text(&role["name"]))
            .collect();
        names.sort();
        Ok(names)
    }

    /// Every server of the project with this tag.
    ///
    /// # Errors
    /// When Nova does not answer.
    pub fn servers(&self, tag: &str) -> Result<Vec<Value>> {
        let tag = tag.replace('=', "%3D");
        let body = self.get(Service::Nova, &format!("/servers/detail?tags={tag}"))?;
        Ok(list(&body, "servers"))
    }

    /// The server; `None` when there is no such id.
    ///
    /// # Errors
    /// When Nova does not answer.
    pub fn server(&self, id: &str) -> Result<Option<Value>> {
        let answer = self.ask("GET", Service::Nova, &format!("/servers/{id}"), None)?;
        match answer.status {
            200 => Ok(Some(answer.body["server"].clone())),
            404 => Ok(None),
            status => bail!("Nova GET /servers/{id}: {status} {}", answer.body),
        }
    }

    /// How often an action was taken on the server, by its log.
    ///
    /// # Errors
    /// When Nova does not answer.
    pub fn actions(&self, id: &str, action: &str) -> Result<usize> {
        let body = self.get(Service::Nova, &format!("/servers/{id}/os-instance-actions"))?;
        Ok(list(&body, "instanceActions").iter().filter(|entry| entry["action"] == action).count())
    }

    /// Deletes servers, not waiting.
    ///
    /// # Errors
    /// When Nova does not answer.
    pub fn delete_servers(&self, ids: &[&str]) -> Result<()> {
        for id in ids {
            self.ask("DELETE", Service::Nova, &format!("/servers/{id}"), None)?;
        }
        Ok(())
    }

    /// The ports of a server.
    ///
    /// # Errors
    /// When Neutron does not answer.
    pub fn ports(&self, server: &str) -> Result<Vec<Value>> {
        let body = self.get(Service::Neutron, &format!("/v2.0/ports?device_id={server}"))?;
        Ok(list(&body, "ports"))
    }

    /// The groups that each port of a server carries.
    ///
    /// # Errors
    /// When Neutron does not answer.
    pub fn groups_of(&self, server: &str) -> Result<Vec<Vec<String>>> {
        Ok(self.ports(server)?.iter().map(|port| texts(&port["security_groups"])).collect())
    }

    /// Changes a port.
    ///
    /// # Errors
    /// When Neutron refuses.
    pub fn set_port(&self, port: &str, fields: &Value) -> Result<()> {
        let body = json!({"port": fields});
        self.change("PUT", Service::Neutron, &format!("/v2.0/ports/{port}"), Some(&body)).map(drop)
    }

    /// Every rule of a group.
    ///
    /// # Errors
    /// When Neutron does not answer.
    pub fn rules(&self, group: &str) -> Result<Vec<Value>> {
        let path = format!("/v2.0/security-group-rules?security_group_id={group}");
        Ok(list(&self.get(Service::Neutron, &path)?, "security_group_rules"))
    }

    /// Adds an ingress rule and gives its id.
    ///
    /// # Errors
    /// When Neutron refuses.
    pub fn add_rule(&self, group: &str, rule: &Value) -> Result<String> {
        let mut wanted = json!({"security_group_id": group, "direction": "ingress", "ethertype": "IPv4"});
        if let (Some(wanted), Some(rule)) = (wanted.as_object_mut(), rule.as_object()) {
            wanted.extend(rule.clone());
        }
        let body = json!({"security_group_rule": wanted});
        let made = self.change("POST", Service::Neutron, "/v2.0/security-group-rules", Some(&body))?;
        Ok(text(&made["security_group_rule"]["id"]))
    }

    /// Removes a rule.
    ///
    /// # Errors
    /// When Neutron refuses.
    pub fn drop_rule(&self, id: &str) -> Result<()> {
        self.change("DELETE", Service::Neutron, &format!("/v2.0/security-group-rules/{id}"), None).map(drop)
    }

    /// Every extra route of the rig's router: destination and next hop.
    ///
    /// # Errors
    /// When Neutron does not answer.
    pub fn routes(&self) -> Result<Vec<(String, String)>> {
        let body = self.get(Service::Neutron, &format!("/v2.0/routers/{}", self.facts.router))?;
        let routes = list(&body["router"], "routes");
        Ok(routes.iter().map(|route| (text(&route["destination"]), text(&route["nexthop"]))).collect())
    }

    /// Puts routes in or takes them out, leaving all others alone.
    ///
    /// # Errors
    /// When Neutron refuses.
    pub fn change_routes(&self, add: bool, routes: &[(String, String)]) -> Result<()> {
        let routes: Vec<Value> =
            routes.iter().map(|(to, via)| json!({"destination": to, "nexthop": via})).collect();
        let verb = if add { "add_extraroutes" } else { "remove_extraroutes" };
        let path = format!("/v2.0/routers/{}/{verb}", self.facts.router);
        self.change("PUT", Service::Neutron, &path, Some(&json!({"router": {"routes": routes}}))).map(drop)
    }
}

fn list(body: &Value, name: &str) -> Vec<Value> {
    body[name].as_array().cloned().unwrap_or_default()
}

/// A text of a JSON document; empty where there is none.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().map(|items| items.iter().map(text).collect()).unwrap_or_default()
}
