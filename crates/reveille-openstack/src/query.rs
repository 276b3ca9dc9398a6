//! One object read past every cache: the engine's targeted questions.
//!
//! "No such thing" is an answer only where the service itself says so. A console log is cleaned of control characters;
//! masking secrets in it is the core's part.

use std::sync::Arc;

use reqwest::StatusCode;
use reveille_cloud::report::Reading;
use reveille_core::effect::{Look, ReadError, ReadErrorKind};
use reveille_core::event::Answer;
use reveille_core::model::console;
use reveille_core::model::id::{GroupId, InstanceId, RouterId};
use reveille_core::model::instance::{Instance, InstanceAction};
use reveille_core::model::network::SecurityGroup;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::catalog::Service;
use crate::client::{Request, SendError};
use crate::group::{self, WireGroup};
use crate::instance::{Action, Server, ServerTables};
use crate::port::{self, WirePort};
use crate::project::Project;
use crate::refusal::Refusal;
use crate::router::{self, WireRouter};
use reveille_core::model::intern::Texts;

/// Lines that are asked for.
const CONSOLE_LINES: u32 = 200;
/// What is kept of them, from the end.
const CONSOLE_MAX_BYTES: usize = 64 * 1024;

impl Project {
    /// Answers one of the engine's questions about this project.
    ///
    /// # Errors
    /// [`ReadError`] whenever it cannot be told; questions that are not for a cloud are [`ReadErrorKind::Malformed`].
    pub async fn look(&self, look: &Look) -> Result<Answer, ReadError> {
        match look {
            Look::Instance(_, id) => Ok(Answer::Instance(self.instance(id).await?.map(Arc::new))),
            Look::Ports(_, id) => self.ports(id).await,
            Look::Group(_, id) => self.group(id).await,
            Look::Router(_, id) => self.router(id).await,
            Look::Console(_, id) | Look::LogEvidence(_, id, _) => self.console(id).await,
            Look::Actions(_, id) => self.actions(id).await,
            Look::Roles(_, user, roles) => self.roles(user, roles).await,
            Look::Node(_) | Look::NodeEvents(_) => Err(self
                .place()
                .look("answer a question about a node")
                .error(ReadErrorKind::Malformed, "only the cluster's API can answer it")),
        }
    }

    /// The path of a server, or below it. A client that may write Nodes writes what stands behind `openstack:///` in a provider
    /// ID. Of some texts an address makes another one, such as the list of all servers, which would be read in each of our looks.
    fn server<'a>(
        reading: &Reading,
        id: &'a InstanceId,
        below: &[&'a str],
    ) -> Result<Vec<&'a str>, ReadError> {
        let text = id.as_str();
        // An address leaves out a segment of dots, and tabs and line ends in any; Nova calls its long list `detail`.
        if matches!(text, "" | "." | ".." | "detail") || text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(
                reading.error(ReadErrorKind::Malformed, "no server has such an id, and none is asked for")
            );
        }
        Ok(["servers", text].into_iter().chain(below.iter().copied()).collect())
    }

    pub(crate) async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>, ReadError> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            server: Server<'a>,
        }
        let reading = self.place().look(format!("read instance {id}"));
        let request = Request::get(Service::Compute, &Self::server(&reading, id, &[])?);
        let Some(body) = self.read(&request, &reading).await? else { return Ok(None) };
        let Body { server } = reading.json(&body)?;
        let instance = server.into_instance(&mut ServerTables::default());
        reading.same(id.as_str(), instance.id.as_str())?;
        Ok(Some(instance))
    }

    async fn ports(&self, id: &InstanceId) -> Result<Answer, ReadError> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            ports: Vec<WirePort<'a>>,
        }
        let reading = self.place().look(format!("list the ports of instance {id}"));
        let request = Request::get(Service::Network, &["ports"])
            .query("device_id", id.to_string())
            .queries("fields", port::FIELDS);
        let body = self.read_existing(&request, &reading).await?;
        let Body { ports } = reading.json(&body)?;
        let mut texts = Texts::default();
        let ports = ports.into_iter().filter(|port| port.instance().as_ref() == Some(id));
        let mut ports: Vec<_> = ports.map(|port| Arc::new(port.into_port(&mut texts))).collect();
        ports.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(Answer::Ports(ports))
    }

    async fn group(&self, id: &GroupId) -> Result<Answer, ReadError> {
        #[derive(Deserialize)]
        struct Body {
            security_group: WireGroup,
        }
        let reading = self.place().look(format!("read security group {id}"));
        let request = Request::get(Service::Network, &["security-groups", id.as_str()])
            .queries("fields", group::FIELDS);
        let Some(body) = self.read_one::<Body>(&request, &reading).await? else {
            return Ok(Answer::Group(None));
        };
        let group = SecurityGroup::from(body.security_group);
        reading.same(id.as_str(), group.id.as_str())?;
        Ok(Answer::Group(Some(Arc::new(group))))
    }

    async fn router(&self, id: &RouterId) -> Result<Answer, ReadError> {
        let Some(wire) = self.wire_router(id).await? else { return Ok(Answer::Router(None)) };
        let limit = self.route_limit(id).await;
        Ok(Answer::Router(Some(Arc::new(wire.into_router(limit)))))
    }

    pub(crate) async fn wire_router(&self, id: &RouterId) -> Result<Option<WireRouter>, ReadError> {
        #[derive(Deserialize)]
        struct Body {
            router: WireRouter,
        }
        let reading = self.place().look(format!("read router {id}"));
        let request =
            Request::get(Service::Network, &["routers", id.as_str()]).queries("fields", router::FIELDS);
        let Some(Body { router }) = self.read_one(&request, &reading).await? else { return Ok(None) };
        reading.same(id.as_str(), &router.id)?;
        Ok(Some(router))
    }

    async fn console(&self, id: &InstanceId) -> Result<Answer, ReadError> {
        #[derive(Deserialize)]
        struct Body {
            output: Option<String>,
        }
        let reading = self.place().look(format!("read the console of instance {id}"));
        let body = json!({ "os-getConsoleOutput": { "length": CONSOLE_LINES } });
        let request = Request::post(Service::Compute, &Self::server(&reading, id, &["action"])?, body);
        let has_none = |refusal: &Refusal| match refusal.status {
            StatusCode::CONFLICT | StatusCode::NOT_IMPLEMENTED => true,
            _ => refusal.says_absent(),
        };
        match self.client().send(&request).await {
            Ok(reply) => {
                let Body { output } = reading.json(&reply.body)?;
                let text = console::plain(&output.unwrap_or_default(), CONSOLE_MAX_BYTES);
                Ok(Answer::Console(Arc::from(text)))
            }
            Err(SendError::Refused(refusal)) if has_none(&refusal) => {
                Ok(Answer::NoConsole(Arc::from(refusal.to_string())))
            }
            Err(error) => Err(reading.failed(&error)),
        }
    }

    async fn actions(&self, id: &InstanceId) -> Result<Answer, ReadError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Body<'a> {
            #[serde(borrow)]
            instance_actions: Vec<Action<'a>>,
        }
        let reading = self.place().look(format!("read the actions of instance {id}"));
        let request = Request::get(Service::Compute, &Self::server(&reading, id, &["os-instance-actions"])?);
        let Some(body) = self.read(&request, &reading).await? else { return Ok(Answer::Actions(Vec::new())) };
        let Body { instance_actions } = reading.json(&body)?;
        let mut actions: Vec<InstanceAction> = instance_actions.into_iter().map(Into::into).collect();
        // Nova lists the newest first; its timestamps are one format of one clock and order as text.
        actions.sort_by(|a, b| b.started.cmp(&a.started));
        Ok(Answer::Actions(actions))
    }

    /// Reads a list: it exists, so a 404 is a failure.
    pub(crate) async fn read_existing(
        &self,
        request: &Request,
        reading: &Reading,
    ) -> Result<Vec<u8>, ReadError> {
        match self.read(request, reading).await? {
            Some(body) => Ok(body),
            None => Err(reading.error(ReadErrorKind::Malformed, "404 for a list")),
        }
    }

    pub(crate) async fn read_one<T: DeserializeOwned>(
        &self,
        request: &Request,
        reading: &Reading,
    ) -> Result<Option<T>, ReadError> {
        match self.read(request, reading).await? {
            Some(body) => reading.json(&body).map(Some),
            None => Ok(None),
        }
    }
}
