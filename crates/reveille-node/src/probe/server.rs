//! The API server, from its name to its answers, step by step; each step runs only after the one before succeeded.
//!
//! ```text
//!  name ─▶ TCP ─▶ TLS, unverified (its chain) ─▶ cluster-info, unverified (its authority, its date)
//!                                         └▶ TLS under the pinned authority ─▶ version · token · Node · requests
//! ```
//!
//! The probe uses two connections on purpose. On the first it trusts nothing and shows no credentials; that connection
//! shows which server answers when it is the wrong one. It shows token and certificate on the second one, which it
//! verifies as the kubelet does.

use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::join_all;
use reveille_agent::checkup::Reading;
use reveille_agent::checkup::facts::{ClientCertificate, Node, Request};
use reveille_agent::checkup::server::{
    Api as ApiSeen, Authority, ClusterInfo, Connect, Lookup, Server, Signature, Tls, TokenSeen, Verified,
};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls;

use rustls::RootCertStore;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName};

use super::answers::{OfServer, api, body, certificate, cluster_info, offset, unverified, words};
use super::layout::Layout;
use super::machine::{Files, is_joined};
use super::{Probe, kubelet, node, supervisor};
use crate::api::{Api, Shown, Trust};
use crate::certificate::Presented;
use crate::discovery::CLUSTER_INFO;
use crate::short_chain::ShortChain;
use crate::signing_request;
use crate::target::kubeconfig::Kubeconfig;
use crate::target::{Endpoint, Kind, Target, ToldBy};
use crate::verifier::{AnyServer, Judged};

/// The results of all servers.
pub(super) struct Asked {
    pub(super) servers: Vec<Server>,
    pub(super) node: Reading<Option<Node>>,
    pub(super) requests: Reading<Vec<Request>>,
    pub(super) certificate: Reading<Option<ClientCertificate>>,
}

/// The credentials and questions for the verified connection.
struct Own<'a> {
    target: &'a Target,
    node_name: Option<&'a str>,
    kubeconfig: Option<&'a Kubeconfig>,
    layout: &'a Layout,
}

/// Why the handshake failed.
enum Failure {
    /// The server sent nothing in time.
    Silent,
    /// TLS failed, or the client refused a certificate.
    Tls(rustls::Error),
    /// The connection ended.
    Broken(String),
}

impl Probe {
    pub(super) async fn servers(
        &self,
        target: Option<&Target>,
        node_name: Option<&str>,
        files: &Files,
        layout: &Layout,
    ) -> Asked {
        let kubeconfig = if is_joined(&files.join) {
            Kubeconfig::read(&self.root, &layout.kubeconfig).ok().flatten()
        } else {
            None
        };
        let mut certificate = Reading::Read(
            kubeconfig.as_ref().and_then(|read| kubelet::certificate(read, &layout.kubeconfig)),
        );
        if let Reading::CannotTell(why) = &files.join.kubeconfig {
            certificate = Reading::cannot_tell(why.clone());
        }
        let unnamed = "no API server is named";
        let (mut node, mut requests) = (Reading::cannot_tell(unnamed), Reading::cannot_tell(unnamed));
        let Some(target) = target else {
            return Asked { servers: Vec::new(), node, requests, certificate };
        };
        let own = Own { target, node_name, kubeconfig: kubeconfig.as_ref(), layout };
        let all = join_all(target.endpoints.iter().map(|endpoint| self.server(endpoint, &own))).await;
        let mut servers = Vec::with_capacity(all.len());
        for (index, of) in all.into_iter().enumerate() {
            if index == 0 || node.read().is_none() {
                (node, requests) = (of.node, of.requests);
            }
            if let (Reading::Read(Some(certificate)), accepted @ Reading::Read(_)) =
                (&mut certificate, of.is_accepted)
            {
                certificate.is_accepted = accepted;
            }
            servers.push(of.server);
        }
        Asked { servers, node, requests, certificate }
    }

    async fn server(&self, endpoint: &Endpoint, own: &Own<'_>) -> OfServer {
        let mut server = unasked(endpoint);
        server.lookup = self.lookup(endpoint).await;
        let mut of = OfServer {
            server,
            node: Reading::cannot_tell("the API server could not be asked"),
            requests: Reading::cannot_tell("the API server could not be asked"),
            is_accepted: Reading::cannot_tell("the API server could not be asked"),
        };
        let Reading::Read(Lookup::Found(addresses)) = &of.server.lookup else { return of };
        let (seen, stream) = self.connect(addresses, endpoint.port).await;
        of.server.connect = Reading::Read(seen);
        let Some(stream) = stream.filter(|_| !self.is_late()) else { return of };
        of.server.tls = Reading::Read(self.shake(stream, endpoint).await);
        let Reading::Read(Tls::Shown(_)) = &of.server.tls else { return of };
        if self.is_late() {
            return of;
        }
        let mut told = self.told(endpoint, own, &mut of.server).await;
        if let Some(kubeconfig) = own.kubeconfig {
            told.extend(
                kubeconfig.authorities.iter().map(|der| (der.clone(), own.layout.kubeconfig.clone())),
            );
        }
        if let (ToldBy::File(path), true) = (&own.target.told_by, told.is_empty()) {
            of.server.authorities =
                Reading::cannot_tell(format!("no source names it, nor does {}", path.display()));
        }
        if !told.is_empty() {
            let authority = |(der, from): &(CertificateDer<'static>, String)| Authority {
                certificate: certificate(der),
                from: from.clone(),
            };
            of.server.authorities = Reading::Read(told.iter().map(authority).collect());
        }
        self.ask_verified(endpoint, own, &told, &mut of).await;
        of
    }

    /// A connection to the first address that accepts one, and its result.
    async fn connect(&self, addresses: &[std::net::IpAddr], port: u16) -> (Connect, Option<TcpStream>) {
        use std::io::ErrorKind::{ConnectionRefused, TimedOut};
        let tries = addresses.iter().take(4).map(async |address| {
            let made = timeout(self.left(), TcpStream::connect((*address, port))).await;
            match made {
                Ok(Ok(stream)) => match (stream.local_addr(), stream.peer_addr()) {
                    (Ok(from), Ok(to)) => (Connect::Made { from: from.ip(), to: to.ip() }, Some(stream)),
                    (Err(error), _) | (_, Err(error)) => (Connect::NoWay(*address, error.to_string()), None),
                },
                Ok(Err(error)) => match error.kind() {
                    ConnectionRefused => (Connect::Refused(*address), None),
                    TimedOut => (Connect::Silent(*address), None),
                    _ => (Connect::NoWay(*address, error.to_string()), None),
                },
                Err(_) => (Connect::Silent(*address), None),
            }
        });
        let mut all = join_all(tries).await;
        let best = all.iter().position(|(_, stream)| stream.is_some()).unwrap_or(0);
        if all.is_empty() {
            return (
                Connect::NoWay(std::net::Ipv4Addr::UNSPECIFIED.into(), "the name has no address".to_owned()),
                None,
            );
        }
        all.swap_remove(best)
    }

    /// A handshake with any server, unverified.
    async fn shake(&self, stream: TcpStream, endpoint: &Endpoint) -> Tls {
        match self.handshake(stream, endpoint, Arc::new(Judged::by(AnyServer))).await {
            Ok(Ok(chain)) => Tls::Shown(chain.iter().map(certificate).collect()),
            Ok(Err(Failure::Silent)) => Tls::Silent,
            Ok(Err(Failure::Tls(rustls::Error::InvalidMessage(_)))) => {
                Tls::NotTls(self.first_words(endpoint).await)
            }
            Ok(Err(Failure::Tls(error))) => Tls::Broken(error.to_string()),
            Ok(Err(Failure::Broken(why))) | Err(why) => Tls::Broken(why),
        }
    }

    /// A handshake with the trusted CAs, as the kubelet makes it.
    async fn verify(
        &self,
        to: SocketAddr,
        endpoint: &Endpoint,
        roots: Arc<RootCertStore>,
    ) -> Reading<Verified> {
        let stream = match timeout(self.left(), TcpStream::connect(to)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Reading::cannot_tell(format!("a second connection: {error}")),
            Err(_) => return Reading::cannot_tell("a second connection was not made in time"),
        };
        match self.handshake(stream, endpoint, Arc::new(Judged::by(ShortChain::new(roots)))).await {
            Ok(Ok(_)) => Reading::Read(Verified::Yes),
            Ok(Err(Failure::Tls(error))) => Reading::Read(unverified(&error)),
            Ok(Err(Failure::Silent)) => Reading::cannot_tell("the second handshake did not end in time"),
            Ok(Err(Failure::Broken(why))) | Err(why) => Reading::cannot_tell(why),
        }
    }

    /// The presented chain, or why there is none; the outer error is one of our own.
    async fn handshake(
        &self,
        stream: TcpStream,
        endpoint: &Endpoint,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<Result<Vec<CertificateDer<'static>>, Failure>, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let name = ServerName::try_from(endpoint.host.clone())
            .map_err(|_| format!("\"{}\" cannot be asked for by name", endpoint.host))?;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        Ok(match timeout(self.left(), connector.connect(name, stream)).await {
            Err(_) => Err(Failure::Silent),
            Ok(Ok(stream)) => Ok(stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec()),
            Ok(Err(error)) => {
                let tls = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
                Err(tls.cloned().map_or_else(|| Failure::Broken(error.to_string()), Failure::Tls))
            }
        })
    }

    /// The server's answer to a request in clear text, by which an operator can recognise it.
    async fn first_words(&self, endpoint: &Endpoint) -> String {
        let asked = async {
            let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
            let answer = client.build()?.get(format!("http://{endpoint}/version")).send().await?;
            let by = answer
                .headers()
                .get("server")
                .and_then(|by| by.to_str().ok())
                .unwrap_or("no name")
                .to_owned();
            Ok::<_, reqwest::Error>(format!("plain HTTP, {}, from {}", answer.status(), words(by.as_bytes())))
        };
        match timeout(self.left(), asked).await {
            Ok(Ok(said)) => said,
            Ok(Err(error)) => format!("neither TLS nor HTTP: {}", super::runtime::innermost(&error)),
            Err(_) => "neither TLS nor an answer to plain HTTP".to_owned(),
        }
    }

    /// The cluster's CA, as the cluster tells it to anonymous clients. Fills in the result, and the server's clock.
    async fn told(
        &self,
        endpoint: &Endpoint,
        own: &Own<'_>,
        server: &mut Server,
    ) -> Vec<(CertificateDer<'static>, String)> {
        let any_server = Trust::Verifier(Arc::new(Judged::by(AnyServer)));
        let is_kubeadms = own.layout.kind == Kind::Kubeadm;
        let path = if is_kubeadms { CLUSTER_INFO } else { supervisor::BUNDLE };
        let asked = match Api::new(endpoint, any_server, Shown::Nothing) {
            Ok(api) => api.get(path, self.left()).await,
            Err(error) => Err(error),
        };
        let answer = match asked {
            Ok(answer) => answer,
            Err(error) => {
                server.cluster_info = Reading::cannot_tell(error.to_string());
                return Vec::new();
            }
        };
        server.offset_s = offset(&answer);
        if !is_kubeadms {
            return supervisor::told(&answer, server);
        }
        let (seen, authorities) = cluster_info(&answer, own.target);
        server.cluster_info = seen;
        authorities.into_iter().map(|der| (der, "the cluster's own word (cluster-info)".to_owned())).collect()
    }

    /// The requests that only a verified server gets.
    async fn ask_verified(
        &self,
        endpoint: &Endpoint,
        own: &Own<'_>,
        told: &[(CertificateDer<'static>, String)],
        of: &mut OfServer,
    ) {
        let pins = &own.target.pins;
        let is_signed = matches!(&of.server.cluster_info, Reading::Read(ClusterInfo::There(Signature::Good)));
        // Without a pin, only the token's signature or this machine's own file decides whom to trust; the word of an
        // unknown server does not.
        let is_known = |(der, from): &&(CertificateDer<'static>, String)| match pins.as_slice() {
            [] => {
                is_signed
                    || *from == own.layout.kubeconfig
                    || supervisor::is_meant(from, own.target, &of.server)
            }
            pins => Presented::read(der).key.is_some_and(|key| pins.contains(&key)),
        };
        let may_show = told.iter().any(|one| is_known(&one));
        let is_trusted =
            |one: &&(CertificateDer<'static>, String)| is_known(one) || pins.is_empty() && !may_show;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(told.iter().filter(is_trusted).map(|(der, _)| der.clone()));
        if roots.is_empty() {
            of.server.verified = Reading::cannot_tell("no authority is known that could be trusted");
            return;
        }
        let roots = Arc::new(roots);
        let client = own.kubeconfig.and_then(|read| read.client.as_ref()).filter(|client| client.is_whole());
        let shown = match (client, &own.target.token) {
            (Some(client), _) if may_show => Shown::Certificate(client),
            (None, Some(token)) if may_show => Shown::Token(token.whole()),
            _ => Shown::Nothing,
        };
        let shows = !matches!(shown, Shown::Nothing);
        let is_client = client.is_some();
        of.server.verified = match &of.server.connect {
            Reading::Read(Connect::Made { to, .. }) => {
                self.verify(SocketAddr::new(*to, endpoint.port), endpoint, roots.clone()).await
            }
            _ => Reading::cannot_tell("there is no connection"),
        };
        if !matches!(of.server.verified, Reading::Read(Verified::Yes)) || self.is_late() {
            return;
        }
        if own.layout.kind != Kind::Kubeadm {
            let known = supervisor::Known {
                endpoint,
                target: own.target,
                node_name: own.node_name,
                kubeconfig: own.kubeconfig.filter(|_| is_client),
                roots,
                may_show,
            };
            self.ask_supervisor(known, of).await;
            return;
        }
        // Anonymous clients may ask for the version: so this shows whether it is an API server, whatever the credentials.
        let stranger = Api::new(endpoint, Trust::Authorities(roots.clone()), Shown::Nothing);
        let known = Api::new(endpoint, Trust::Authorities(roots), shown);
        let (version, live) = match &stranger {
            Ok(api) => tokio::join!(api.get("/version", self.left()), api.get("/livez", self.left())),
            Err(error) => {
                of.server.api = Reading::cannot_tell(error.to_string());
                return;
            }
        };
        of.server.api = api(&version, &live);
        let (Ok(known), Reading::Read(ApiSeen::Is(_) | ApiSeen::Refuses(..))) = (known, &of.server.api)
        else {
            return;
        };
        if !shows || self.is_late() {
            return;
        }
        self.ask_known(&known, own.node_name, is_client, of).await;
    }

    /// The requests with a token, or with the kubelet's certificate.
    async fn ask_known(&self, known: &Api, node_name: Option<&str>, is_client: bool, of: &mut OfServer) {
        let path = format!("/api/v1/nodes/{}", node_name.unwrap_or_default());
        let (version, node, requests) = tokio::join!(
            known.get("/version", self.left()),
            known.get(&path, self.left()),
            known.get(signing_request::PATH, self.left()),
        );
        let accepted = match &version {
            Ok(answer) if answer.status == 401 => Reading::Read(false),
            Ok(_) => Reading::Read(true),
            Err(error) => Reading::cannot_tell(error.to_string()),
        };
        if is_client {
            of.is_accepted = accepted;
        } else {
            of.server.token =
                accepted.map(|accepted| if accepted { TokenSeen::Accepted } else { TokenSeen::Refused });
        }
        let Some(name) = node_name else { return };
        of.node = body(node, |status, body| match status {
            404 => Some(Ok(None)),
            200 => Some(node::node(body).map(Some)),
            _ => None,
        });
        of.requests =
            body(requests, |status, body| (status == 200).then(|| signing_request::read(body, name)));
    }
}

fn unasked(endpoint: &Endpoint) -> Server {
    const WHY: &str = "the step before it failed";
    Server {
        endpoint: endpoint.to_string(),
        host: endpoint.host.clone(),
        lookup: Reading::cannot_tell(WHY),
        connect: Reading::cannot_tell(WHY),
        tls: Reading::cannot_tell(WHY),
        authorities: Reading::cannot_tell(WHY),
        verified: Reading::cannot_tell(WHY),
        api: Reading::cannot_tell(WHY),
        offset_s: Reading::cannot_tell(WHY),
        cluster_info: Reading::cannot_tell(WHY),
        bundle: Reading::cannot_tell(WHY),
        token: Reading::cannot_tell(WHY),
    }
}
