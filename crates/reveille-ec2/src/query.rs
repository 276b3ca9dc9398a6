//! One thing read afresh: the engine's targeted questions.
//!
//! "No such thing" is an answer only where EC2 itself says so, and for an instance only where that may be believed
//! ([`crate::doubt`]): a denial that is doubted is a failed read, which concludes nothing. A console log is cleaned of control
//! characters; masking secrets in it is the core's part.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use reveille_core::effect::{Look, ReadError, ReadErrorKind};
use reveille_core::event::Answer;
use reveille_core::model::id::{GroupId, InstanceId, RequestId, RouterId};
use reveille_core::model::instance::{Instance, InstanceAction, InstanceState};
use reveille_core::model::roster::GroupRef;
use reveille_core::model::time::Span;
use serde::Deserialize;

use crate::account::Account;
use crate::actions::{DESCRIBE_INSTANCES, DESCRIBE_SCALING_INSTANCES, GET_CONSOLE_OUTPUT};
use crate::client::SendError;
use crate::console;
use crate::doubt::{APART, Belief};
use crate::fetch;
use crate::hosting::hosted;
use crate::instance::{Instances, Surroundings, Tables, WireInstance};
use crate::list::{routers, targets};
use crate::query_protocol::Request;
use crate::reply::{decode, filled};
use crate::scaling::{Member, Members, WireMember};
use crate::table::WireTable;
use reveille_core::model::intern::Texts;

impl Account {
    /// Answers one of the engine's questions about this account.
    ///
    /// # Errors
    /// [`ReadError`] whenever it cannot be told; questions that are not for this cloud are [`ReadErrorKind::Malformed`].
    pub async fn look(&self, look: &Look) -> Result<Answer, ReadError> {
        match look {
            Look::Instance(_, id) => Ok(Answer::Instance(self.instance(id).await?.map(Arc::new))),
            Look::Ports(_, id) => self.ports(id).await,
            Look::Group(_, id) => self.group(id).await,
            Look::Router(_, id) => self.router(id).await,
            Look::Console(_, id) | Look::LogEvidence(_, id, _) => self.console(id).await,
            Look::Actions(_, id) => self.actions(id).await,
            Look::Roles(..) => Err(self
                .place()
                .look("read the roles of a user")
                .error(ReadErrorKind::Malformed, "EC2 has no roles on a project")),
            Look::Node(_) | Look::NodeEvents(_) => Err(self
                .place()
                .look("answer a question about a node")
                .error(ReadErrorKind::Malformed, "only the cluster's API can answer it")),
        }
    }

    /// The instance with all that is said of it elsewhere.
    async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>, ReadError> {
        let Some(wire) = self.wire_instance(id).await? else { return Ok(None) };
        let ids = [wire.instance_id.clone()];
        let lives = wire.state() != InstanceState::Gone;
        let statuses = async { fetch::statuses(self, if lives { &ids } else { &[] }).await };
        let member = async { if lives && wire.group().is_some() { self.member(id).await } else { Ok(None) } };
        let spots =
            async { if lives && wire.is_spot() { fetch::spots(self).await } else { Ok(Default::default()) } };
        let kinds: BTreeSet<String> = wire.instance_type.iter().filter(|_| lives).cloned().collect();
        let (statuses, member, spots, disks) =
            futures::try_join!(statuses, member, spots, fetch::disks(self, &kinds))?;
        let members = member.map(|member| (wire.instance_id.clone(), member)).into_iter().collect();
        let around = Surroundings { statuses, members, spots, disks };
        Ok(Some(hosted(wire, &around, &mut Tables::default())))
    }

    /// The instance alone; `None` where EC2 denies it and is believed.
    async fn wire_instance(&self, id: &InstanceId) -> Result<Option<WireInstance>, ReadError> {
        self.wire_instance_again_within(id, Duration::MAX).await
    }

    /// The same directly before a change of it. A denial that is doubted for hours holds a repair for a minute: the next
    /// server of EC2 may know the instance.
    pub(crate) async fn wire_instance_to_change(
        &self,
        id: &InstanceId,
    ) -> Result<Option<WireInstance>, ReadError> {
        self.wire_instance_again_within(id, APART).await
    }

    async fn wire_instance_again_within(
        &self,
        id: &InstanceId,
        longest: Duration,
    ) -> Result<Option<WireInstance>, ReadError> {
        let reading = self.place().look(format!("read instance {id}"));
        let request = Request::new(DESCRIBE_INSTANCES).list("InstanceId", [id.as_str()]);
        let found: Option<Instances> = self.read(&request, &reading).await?;
        let all = found.into_iter().flat_map(|found| found.reservation_set.items);
        let wire = all.flat_map(|one| one.instances_set.items).find(|wire| wire.instance_id == id.as_str());
        if let Some(wire) = wire {
            self.sighted([(id, wire.state() == InstanceState::Gone)].into_iter());
            return Ok(Some(wire));
        }
        match self.denied(id) {
            Belief::Believed => Ok(None),
            Belief::Doubted { seen_ago, again_in } => {
                let seen = match seen_ago {
                    Some(ago) => format!("we saw it {} s ago, and not that it ended", ago.as_secs()),
                    None => "an instance that is seconds old is not known to all of EC2 yet".to_owned(),
                };
                let cause = format!("EC2 says that there is none, which is not believed yet: {seen}");
                let again_in = i64::try_from(again_in.min(longest).as_secs()).unwrap_or(i64::MAX);
                Err(reading.undecided(&cause, Span::from_s(again_in.max(1))))
            }
        }
    }

    /// The Auto Scaling group that owns the instance, as Auto Scaling itself says now.
    pub(crate) async fn member(&self, id: &InstanceId) -> Result<Option<Member>, ReadError> {
        let reading = self.place().look(format!("read which Auto Scaling group owns instance {id}"));
        let request = Request::new(DESCRIBE_SCALING_INSTANCES).list("InstanceIds.member", [id.as_str()]);
        let body = self.client().send(&request).await.map_err(|error| reading.failed(&error))?;
        let found: Members = decode(&body, request.action, &reading)?;
        let mut members = found.result.auto_scaling_instances.items.into_iter();
        let member: Option<WireMember> = members.find(|member| member.instance_id == id.as_str());
        Ok(member.map(|member| member.of("").1))
    }

    async fn ports(&self, id: &InstanceId) -> Result<Answer, ReadError> {
        let mut texts = Texts::default();
        let interfaces = fetch::interfaces_of(self, id).await?;
        let interfaces = interfaces.iter().filter(|interface| interface.instance().as_ref() == Some(id));
        Ok(Answer::Ports(interfaces.map(|interface| Arc::new(interface.to_port(&mut texts))).collect()))
    }

    async fn group(&self, id: &GroupId) -> Result<Answer, ReadError> {
        let wanted = BTreeSet::from([GroupRef::Id(id.clone())]);
        let found = fetch::groups(self, &wanted, &BTreeSet::new()).await?.pop();
        if let Some(group) = &found {
            let reading = self.place().look(format!("read security group {id}"));
            reading.same(id.as_str(), group.id.as_str())?;
        }
        Ok(Answer::Group(found.map(Arc::new)))
    }

    async fn router(&self, id: &RouterId) -> Result<Answer, ReadError> {
        let tables: Vec<WireTable> = self.table(id).await?.into_iter().collect();
        let (targets, ..) = targets(self, std::iter::empty(), &tables).await?;
        Ok(Answer::Router(routers(self, &tables, &targets)?.pop()))
    }

    pub(crate) async fn table(&self, id: &RouterId) -> Result<Option<WireTable>, ReadError> {
        Ok(fetch::tables(self, Some(&BTreeSet::from([id.clone()]))).await?.remove(id.as_str()))
    }

    async fn console(&self, id: &InstanceId) -> Result<Answer, ReadError> {
        #[derive(Deserialize)]
        struct Body {
            output: Option<String>,
        }
        let reading = self.place().look(format!("read the console of instance {id}"));
        let request = Request::new(GET_CONSOLE_OUTPUT).with("InstanceId", id.as_str());
        let latest = self.client().send(&request.clone().with("Latest", "true")).await;
        let sent = match latest {
            // Only newer kinds of machines can be asked for what is on the console now.
            Err(SendError::Refused(refusal)) if is_of_latest(&refusal.code) => {
                self.client().send(&request).await
            }
            sent => sent,
        };
        let body = match sent {
            Ok(body) => body,
            Err(SendError::Refused(refusal)) if refusal.says_absent() || refusal.says_moved() => {
                return Ok(Answer::NoConsole(Arc::from(refusal.to_string())));
            }
            Err(error) => return Err(reading.failed(&error)),
        };
        let body: Body = decode(&body, request.action, &reading)?;
        Ok(match console::text(&body.output.unwrap_or_default()) {
            Some(text) => Answer::Console(Arc::from(text)),
            None => Answer::NoConsole(Arc::from("EC2 has kept nothing of its console yet")),
        })
    }

    /// EC2 keeps no log of what was done to an instance. When it was last started is known, and why it ended.
    async fn actions(&self, id: &InstanceId) -> Result<Answer, ReadError> {
        let Some(wire) = self.wire_instance(id).await? else { return Ok(Answer::Actions(Vec::new())) };
        let started: Arc<str> = Arc::from(wire.launch_time.as_deref().unwrap_or_default());
        let mut actions = Vec::new();
        if wire.state().is_leaving() {
            let reason = wire.state_reason.as_ref().map(|reason| reason.message.clone());
            actions.push(InstanceAction {
                request: RequestId::from(format!("ended-{started}").as_str()),
                action: Arc::from("delete"),
                started: Arc::from(wire.reason.as_deref().unwrap_or_default()),
                user: None,
                message: filled(reason).map(Arc::from),
            });
        }
        actions.push(InstanceAction {
            request: RequestId::from(format!("launched-{started}").as_str()),
            action: Arc::from("launch"),
            started,
            user: None,
            message: None,
        });
        Ok(Answer::Actions(actions))
    }
}

fn is_of_latest(code: &str) -> bool {
    code == "UnsupportedOperation" || code.starts_with("InvalidParameter")
}
