//! The four lists of a project, each whole: the requests, and how a page is read.
//!
//! A request filters as far as the service filters reliably, and no further. Answers are decoded with shared texts and handed on
//! by id. The module does not decide which objects are ours.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};
use reveille_cloud::interest::{Interest, names_and_ids};
use reveille_cloud::inventory::{NamedRouter, RouterLeg};
use reveille_cloud::known::Known;
use reveille_cloud::text::message;
use reveille_core::effect::ReadError;
use reveille_core::model::id::{InstanceId, RouterId};
use reveille_core::model::instance::{Instance, InstanceState, Port};
use reveille_core::model::network::{Router, SecurityGroup};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::catalog::Service;
use crate::client::Request;
use crate::filter::cluster_tags;
use crate::group::{self, WireGroup};
use crate::instance::{Server, ServerTables, Text, unreadable};
use crate::paging::{Link, Listing, Page, all_pages, next_of};
use crate::port::{self, WirePort};
use crate::project::Project;
use crate::router::{self, WireRouter};
use reveille_core::model::intern::Texts;

/// Nova's own default maximum; a deployment may allow less.
const SERVERS_PER_PAGE: &str = "1000";
/// Fewer calls matter more than small answers: port lists are what rate limiters count.
const PORTS_PER_PAGE: &str = "5000";
/// How far the clocks of one cloud's hosts may differ before a change could be missed.
pub(crate) const CLOCK_OVERLAP: SignedDuration = SignedDuration::from_secs(120);

type Found<T> = Result<T, ReadError>;

pub(crate) async fn list_servers(
    project: &Project,
    interest: &Interest,
    since: Option<Timestamp>,
    tables: &mut ServerTables,
    known: &Known,
) -> Found<Listing<Arc<Instance>>> {
    if interest.cluster_marks.is_empty() {
        return Ok(Listing::unasked());
    }
    let mut request = Request::get(Service::Compute, &["servers", "detail"]).query("limit", SERVERS_PER_PAGE);
    let mut what = "list servers";
    if let Some(since) = since {
        let since = since.checked_sub(CLOCK_OVERLAP).unwrap_or(since);
        request = request.query("changes-since", since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        what = "list changed servers";
    } else if let Some(tags) = cluster_tags(interest).filter(|tags| !tags.is_empty()) {
        request = request.query("tags-any", tags.into_iter().collect::<Vec<_>>().join(","));
    }
    server_pages(project, request, what, tables, known).await
}

/// Every server of the project, whatever it carries.
pub(crate) async fn list_all_servers(
    project: &Project,
    tables: &mut ServerTables,
    known: &Known,
) -> Found<Listing<Arc<Instance>>> {
    let request = Request::get(Service::Compute, &["servers", "detail"]).query("limit", SERVERS_PER_PAGE);
    server_pages(project, request, "list servers", tables, known).await
}

async fn server_pages(
    project: &Project,
    request: Request,
    what: &str,
    tables: &mut ServerTables,
    known: &Known,
) -> Found<Listing<Arc<Instance>>> {
    let reading = project.place().listing(what);
    all_pages(project.client(), request, reading, |body| decode_servers(body, tables, known)).await
}

/// Reads a page of servers. One server that cannot be read must not hide the others: it stays in the list by its id.
fn decode_servers(
    body: &[u8],
    tables: &mut ServerTables,
    known: &Known,
) -> Result<Page<Arc<Instance>>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        servers: Vec<Server<'a>>,
        #[serde(default)]
        servers_links: Vec<Link>,
    }
    #[derive(Deserialize)]
    struct Pieces<'a> {
        #[serde(borrow)]
        servers: Vec<&'a RawValue>,
        #[serde(default)]
        servers_links: Vec<Link>,
    }
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(borrow)]
        id: Text<'a>,
    }
    let keyed = |mut instance: Instance| {
        if is_partial(&instance)
            && let Some(old) = known.last(&instance.id)
        {
            (instance.name, instance.marks) = (old.name.clone(), old.marks.clone());
        }
        let instance = known.instance(instance);
        (instance.id.shared(), instance)
    };
    match serde_json::from_slice::<Body<'_>>(body) {
        Ok(Body { servers, servers_links }) => Ok(Page {
            items: servers.into_iter().map(|server| keyed(server.into_instance(tables))).collect(),
            next: next_of(&servers_links),
        }),
        Err(error) if error.is_data() => {
            let Pieces { servers, servers_links } = serde_json::from_slice(body)?;
            let mut items = Vec::with_capacity(servers.len());
            for piece in servers {
                items.push(keyed(match serde_json::from_str::<Server<'_>>(piece.get()) {
                    Ok(server) => server.into_instance(tables),
                    Err(_) => {
                        let OnlyId { id } = serde_json::from_str(piece.get())?;
                        tracing::warn!(
                            instance = message(&id.0),
                            "openstack: a server cannot be read and is kept by its id only"
                        );
                        unreadable(&id.0, tables)
                    }
                }));
            }
            Ok(Page { items, next: next_of(&servers_links) })
        }
        Err(error) => Err(error),
    }
}

/// A record of a cell that is down, or one that could not be read. Such a record names the machine without its details, so the
/// marks of the last full read stay. Its state is "alive, unknown", on which the controller never acts.
fn is_partial(instance: &Instance) -> bool {
    instance.state == InstanceState::Other && instance.marks.is_empty() && instance.name.as_str().is_empty()
}

/// Every port that was found, by what it is to us.
pub(crate) struct Ports {
    /// Those of instances, ours or not.
    pub(crate) of_instances: Listing<(InstanceId, Arc<Port>)>,
    /// Those by which routers reach into networks.
    pub(crate) legs: Vec<RouterLeg>,
    /// What else is in use: see [`reveille_core::event::CloudSnapshot::in_use`].
    pub(crate) in_use: BTreeSet<IpNet>,
}

pub(crate) async fn list_ports(
    project: &Project,
    interest: &Interest,
    texts: &mut Texts,
    known: &Known,
) -> Found<Ports> {
    // A project may hold the router and no machine: the ports of its VIPs are next hops all the same.
    if interest.cluster_marks.is_empty() && interest.routers.is_empty() {
        return Ok(Ports { of_instances: Listing::unasked(), legs: Vec::new(), in_use: BTreeSet::new() });
    }
    list_all_ports(project, texts, known).await
}

/// Every port of the project.
///
/// A VIP lives on a port whose owner is empty (keepalived) or `Octavia`, and in the allowed address pairs of the ports that may
/// send from it; trunk subports, router legs and DHCP have owners of their own (`trunk:subport`, `network:…`). All of them may be
/// next hops.
pub(crate) async fn list_all_ports(project: &Project, texts: &mut Texts, known: &Known) -> Found<Ports> {
    let request = ports_request().query("project_id", project.id().to_string());
    port_pages(project, request, texts, known).await
}

/// Every port on the networks that this router reaches into, also of other projects as far as Neutron shows them. Neutron shows
/// the ports of a network to the network's owner (`_port_filter_hook` in neutron/db/db_base_plugin_v2.py). `None`: no port of the
/// router itself is visible.
pub(crate) async fn list_ports_around(project: &Project, router: &RouterId) -> Found<Option<Ports>> {
    let (mut texts, known) = (Texts::default(), Known::default());
    let request = ports_request().query("device_id", router.to_string());
    let legs = port_pages(project, request, &mut texts, &known).await?.legs;
    let networks: BTreeSet<String> =
        legs.into_iter().filter(|leg| leg.router == *router).map(|leg| leg.network.to_string()).collect();
    if networks.is_empty() {
        return Ok(None);
    }
    let request = ports_request().queries("network_id", networks);
    port_pages(project, request, &mut texts, &known).await.map(Some)
}

fn ports_request() -> Request {
    Request::get(Service::Network, &["ports"]).query("limit", PORTS_PER_PAGE).queries("fields", port::FIELDS)
}

async fn port_pages(project: &Project, request: Request, texts: &mut Texts, known: &Known) -> Found<Ports> {
    /// What a port is to us.
    enum Of {
        Instance(InstanceId, Arc<Port>),
        Router(RouterLeg),
        Other,
    }
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        ports: Vec<WirePort<'a>>,
        #[serde(default)]
        ports_links: Vec<Link>,
    }
    let reading = project.place().listing("list ports");
    let mut listing = all_pages(project.client(), request, reading, |body| {
        let Body { ports, ports_links } = serde_json::from_slice(body)?;
        let items = ports.into_iter().map(|wire| {
            let (instance, router) = (wire.instance(), wire.router());
            let port = wire.into_port(texts);
            let key = port.id.shared();
            let mut nets = port.pairs.to_vec();
            if instance.is_none() {
                nets.extend(port.addresses.iter().copied().map(IpNet::from));
            }
            let of = match (instance, router) {
                (Some(instance), _) => Of::Instance(known.id(instance), known.port(port)),
                (None, Some(router)) => Of::Router(RouterLeg { router, network: port.network }),
                (None, None) => Of::Other,
            };
            (key, (of, nets))
        });
        Ok(Page { items: items.collect(), next: next_of(&ports_links) })
    })
    .await?;
    let (mut items, mut legs, mut in_use) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
    for (key, (of, nets)) in std::mem::take(&mut listing.items) {
        in_use.extend(nets);
        match of {
            Of::Instance(instance, port) => drop(items.insert(key, (instance, port))),
            Of::Router(leg) => legs.push(leg),
            Of::Other => {}
        }
    }
    let of_instances = Listing { items, begun: listing.begun, pages: listing.pages };
    Ok(Ports { of_instances, legs, in_use })
}

/// One question by name or by id; Neutron cannot be asked for "this name or that id". Where rosters use both, all groups
/// of the project are listed, and only ids that are not among them (shared by another project) cost a second question.
pub(crate) async fn list_groups(project: &Project, interest: &Interest) -> Found<Vec<Arc<SecurityGroup>>> {
    let (names, ids) = names_and_ids(&interest.groups);
    let base = || Request::get(Service::Network, &["security-groups"]).queries("fields", group::FIELDS);
    let ours = || base().query("project_id", project.id().to_string());
    let request = match (names.is_empty(), ids.is_empty()) {
        (true, true) => return Ok(Vec::new()),
        (false, true) => ours().queries("name", names.clone()),
        (true, false) => base().queries("id", ids.clone()),
        (false, false) => ours(),
    };
    let mut items = group_pages(project, request).await?;
    if !names.is_empty() && !ids.is_empty() {
        let elsewhere: Vec<String> =
            ids.iter().filter(|id| !items.contains_key(id.as_str())).cloned().collect();
        if !elsewhere.is_empty() {
            items.extend(group_pages(project, base().queries("id", elsewhere)).await?);
        }
    }
    let wanted = |group: &SecurityGroup| {
        names.iter().any(|name| **name == *group.name) || ids.iter().any(|id| id == group.id.as_str())
    };
    Ok(items.into_values().filter(wanted).map(Arc::new).collect())
}

/// Every group of the project.
pub(crate) async fn list_all_groups(project: &Project) -> Found<Vec<Arc<SecurityGroup>>> {
    let request = Request::get(Service::Network, &["security-groups"])
        .queries("fields", group::FIELDS)
        .query("project_id", project.id().to_string());
    Ok(group_pages(project, request).await?.into_values().map(Arc::new).collect())
}

async fn group_pages(project: &Project, request: Request) -> Found<BTreeMap<Arc<str>, SecurityGroup>> {
    #[derive(Deserialize)]
    struct Body {
        security_groups: Vec<WireGroup>,
        #[serde(default)]
        security_groups_links: Vec<Link>,
    }
    let reading = project.place().listing("list security groups");
    let listing = all_pages(project.client(), request, reading, |body| {
        let Body { security_groups, security_groups_links } = serde_json::from_slice(body)?;
        let items = security_groups.into_iter().map(SecurityGroup::from);
        Ok(Page {
            items: items.map(|group| (group.id.shared(), group)).collect(),
            next: next_of(&security_groups_links),
        })
    })
    .await?;
    Ok(listing.items)
}

pub(crate) async fn list_routers(project: &Project, interest: &Interest) -> Found<Vec<Router>> {
    if interest.routers.is_empty() {
        return Ok(Vec::new());
    }
    let request = Request::get(Service::Network, &["routers"])
        .queries("id", interest.routers.iter().map(ToString::to_string))
        .queries("fields", router::FIELDS);
    let routers = router_pages(project, request).await?;
    Ok(routers.into_values().map(|router| router.into_router(None)).collect())
}

/// Every router of the project with its name.
pub(crate) async fn list_all_routers(project: &Project) -> Found<Vec<NamedRouter>> {
    let request = Request::get(Service::Network, &["routers"])
        .query("project_id", project.id().to_string())
        .queries("fields", router::FIELDS)
        .query("fields", "name");
    let routers = router_pages(project, request).await?;
    Ok(routers
        .into_values()
        .map(|mut wire| {
            let name = Arc::from(std::mem::take(&mut wire.name));
            NamedRouter { name, router: Arc::new(wire.into_router(None)) }
        })
        .collect())
}

async fn router_pages(project: &Project, request: Request) -> Found<BTreeMap<Arc<str>, WireRouter>> {
    #[derive(Deserialize)]
    struct Body {
        routers: Vec<WireRouter>,
        #[serde(default)]
        routers_links: Vec<Link>,
    }
    let reading = project.place().listing("list routers");
    let listing = all_pages(project.client(), request, reading, |body| {
        let Body { routers, routers_links } = serde_json::from_slice(body)?;
        let items = routers.into_iter().map(|router| (Arc::from(router.id.as_str()), router));
        Ok(Page { items: items.collect(), next: next_of(&routers_links) })
    })
    .await?;
    Ok(listing.items)
}
