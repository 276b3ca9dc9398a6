//! The least rights in a project, as access rules of an application credential, and the table that they are made from.
//!
//! ```text
//!  RIGHTS: service, method, path, what for ─▶ access_rules ─▶ openstack application credential create --access-rules FILE
//! ```
//!
//! Keystone refuses every request that no rule names, whatever the roles of its user allow. The adapter's tests compare the table
//! with the requests that they send: the table names each request, and the tests send each line of it. Logging in and asking for
//! the version of a service need no rule. Where a cloud has the project's id in the address of its compute service, rules need
//! it.

use serde_json::{Value, json};

/// What a request is for, and so when it may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// To look.
    Look,
    /// To reboot, start and delete machines.
    Machines,
    /// To repair groups, ports and routes.
    Network,
    /// To tell which roles service users hold.
    Roles,
    /// To give a service user a role that it lacks.
    GiveRoles,
}

/// One request that may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// The service's type in the catalogue.
    pub service: &'static str,
    /// The method.
    pub method: &'static str,
    /// The path below the service's root; `*` stands for one name.
    pub path: &'static str,
    /// What for.
    pub purpose: Purpose,
}

const fn right(purpose: Purpose, service: &'static str, method: &'static str, path: &'static str) -> Right {
    Right { service, method, path, purpose }
}

/// Every request that the adapter sends.
pub const RIGHTS: &[Right] = &[
    right(Purpose::Look, "compute", "GET", "/v2.1/servers/detail"),
    right(Purpose::Look, "compute", "GET", "/v2.1/servers/*"),
    right(Purpose::Look, "compute", "GET", "/v2.1/servers/*/os-instance-actions"),
    // Consoles are read, and machines rebooted and started, by one and the same request; its body makes the difference.
    right(Purpose::Look, "compute", "POST", "/v2.1/servers/*/action"),
    right(Purpose::Look, "network", "GET", "/v2.0/extensions"),
    right(Purpose::Look, "network", "GET", "/v2.0/ports"),
    right(Purpose::Look, "network", "GET", "/v2.0/ports/*"),
    right(Purpose::Look, "network", "GET", "/v2.0/quotas/*"),
    right(Purpose::Look, "network", "GET", "/v2.0/routers"),
    right(Purpose::Look, "network", "GET", "/v2.0/routers/*"),
    right(Purpose::Look, "network", "GET", "/v2.0/security-groups"),
    right(Purpose::Look, "network", "GET", "/v2.0/security-groups/*"),
    right(Purpose::Machines, "compute", "DELETE", "/v2.1/servers/*"),
    right(Purpose::Network, "network", "PUT", "/v2.0/ports/*"),
    right(Purpose::Network, "network", "PUT", "/v2.0/routers/*"),
    right(Purpose::Network, "network", "PUT", "/v2.0/routers/*/add_extraroutes"),
    right(Purpose::Network, "network", "PUT", "/v2.0/routers/*/remove_extraroutes"),
    right(Purpose::Network, "network", "POST", "/v2.0/security-group-rules"),
    right(Purpose::Network, "network", "DELETE", "/v2.0/security-group-rules/*"),
    right(Purpose::Roles, "identity", "GET", "/v3/role_assignments"),
    right(Purpose::Roles, "identity", "GET", "/v3/roles"),
    right(Purpose::Roles, "identity", "GET", "/v3/users"),
    right(Purpose::GiveRoles, "identity", "PUT", "/v3/projects/*/users/*/roles/*"),
];

impl Right {
    /// Whether it is this request.
    pub fn is(&self, method: &str, path: &str) -> bool {
        let (mut own, mut asked) = (self.path.split('/'), path.split('/'));
        self.method == method
            && loop {
                match (own.next(), asked.next()) {
                    (None, None) => break true,
                    (Some("*"), Some(name)) if !name.is_empty() => {}
                    (Some(part), Some(name)) if part == name => {}
                    _ => break false,
                }
            }
    }
}

/// The rules for these purposes, as Keystone takes them.
pub fn access_rules(purposes: &[Purpose]) -> String {
    let wanted = RIGHTS.iter().filter(|right| purposes.contains(&right.purpose));
    let rules: Vec<Value> = wanted
        .map(|right| json!({"service": right.service, "method": right.method, "path": right.path}))
        .collect();
    format!("{:#}\n", Value::Array(rules))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_for_one_method_and_one_depth() {
        let right = right(Purpose::Look, "compute", "GET", "/v2.1/servers/*");
        assert!(right.is("GET", "/v2.1/servers/a-1"));
        for (method, path) in [
            ("DELETE", "/v2.1/servers/a-1"),
            ("GET", "/v2.1/servers"),
            ("GET", "/v2.1/servers/"),
            ("GET", "/v2.1/servers/a-1/action"),
        ] {
            assert!(!right.is(method, path), "{method} {path}");
        }
    }

    #[test]
    fn look_rights_write_nothing_except_the_console_request() {
        let rules: Value = serde_json::from_str(&access_rules(&[Purpose::Look])).unwrap();
        let mut writes = rules.as_array().unwrap().iter().filter(|rule| rule["method"] != "GET");
        assert_eq!(writes.next().unwrap()["path"], "/v2.1/servers/*/action");
        assert_eq!(writes.next(), None);
    }
}
