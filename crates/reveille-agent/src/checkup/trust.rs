//! The identity of the server: whether it speaks TLS, the pinned CA, its certificate, whether it is an API server, and
//! its answer to the token.

use super::facts::{ClientCertificate, Facts};
use super::found::{Found, known, seconds, word};
use super::network::{best, unread};
use super::reading::Reading;
use super::server::{Api, Authority, Certificate, ClusterInfo, Server, Signature, Tls, TokenSeen, Verified};
use super::supervised;

pub(super) fn tls(facts: &Facts) -> Found {
    best(facts, |server, _| {
        match known!(server.tls) {
        Tls::Shown(chain) => Found::passed("what answers speaks TLS").lines(chain.iter().map(|cert| format!("shows {cert}"))),
        Tls::NotTls(said) => Found::failed(format!("what answers at {} does not speak TLS: it is no API server", server.endpoint))
            .line(format!("it says: {said}"))
            .cause("server-endpoint-wrong")
            .advise("correct HOST:PORT; kubectl cluster-info on a machine of the cluster prints it")
            .run(format!("curl -sv http://{} 2>&1 | head -n 20", server.endpoint)),
        Tls::Silent => hangs(server, "it takes the connection and does not answer the handshake"),
        Tls::Broken(said) => Found::failed(format!("the handshake with {} breaks off", server.endpoint))
            .line(said.clone())
            .cause("proxy-intercepts-traffic")
            .advise("see what stands in between: a load balancer without a server behind it, or a proxy that does not let TLS through")
            .run(format!("openssl s_client -connect {} -servername kubernetes </dev/null", server.endpoint)),
    }
    })
}

fn hangs(server: &Server, line: &str) -> Found {
    Found::failed(format!("what listens at {} hangs", server.endpoint))
        .line(line)
        .cause("apiserver-unreachable")
        .advise("see on the control plane whether the API server is frozen, starved or out of memory, or what stands in between")
        .run("crictl ps -a --name kube-apiserver; uptime; free -m   # on a control plane")
}

pub(super) fn cluster_info(facts: &Facts) -> Found {
    if let Some(own) = &facts.supervised {
        return Found::passed(format!("it is not needed: {} tells its authorities by /cacerts", own.name));
    }
    best(facts, |server, aim| {
        let mend = |found: Found| {
            found
                .cause("cluster-info-malformed")
                .advise("create it again where kubeadm init was run; the bootstrap-signer of the controller manager signs it")
                .run("kubectl -n kube-public get configmap cluster-info -o yaml")
                .run("sudo kubeadm init phase bootstrap-token --kubeconfig /etc/kubernetes/admin.conf")
        };
        if aim.token_id.is_none() || aim.is_of_machine {
            return Found::passed("it is not needed: the authority is known without it");
        }
        match &server.cluster_info {
            Reading::CannotTell(why) if is_kubernetes(server) => Found::cannot_tell(why.to_string()),
            // The checks that follow report a server that does not speak as an API server.
            Reading::CannotTell(why) => Found::passed("it was not read").line(why.to_string()),
            Reading::Read(ClusterInfo::There(_)) => Found::passed("the cluster tells its authority to those who join"),
            Reading::Read(ClusterInfo::Absent) => mend(Found::failed("the cluster publishes no CA: there is no ConfigMap cluster-info")),
            Reading::Read(ClusterInfo::Forbidden(said)) => {
                mend(Found::warned("anonymous clients may not read the ConfigMap cluster-info, so no machine can join with a token alone").line(said.clone()))
            }
            Reading::Read(ClusterInfo::Malformed(said)) => mend(Found::failed("the ConfigMap cluster-info cannot be used").line(said.clone())),
        }
    })
}

fn is_kubernetes(server: &Server) -> bool {
    matches!(server.api.read(), Some(Api::Is(_) | Api::Refuses(..)))
}

pub(super) fn ca_pin(facts: &Facts) -> Found {
    best(facts, |server, aim| {
        if let Some(found) = facts.supervised.as_ref().and_then(|own| supervised::ca_hash(own, server, aim)) {
            return found;
        }
        let shown = match server.tls.read() {
            Some(Tls::Shown(chain)) => chain.as_slice(),
            _ => &[],
        };
        let told = server.authorities.read().map_or(&[][..], Vec::as_slice);
        let is_pinned = |cert: &Certificate| cert.pin.as_ref().is_some_and(|pin| aim.pins.contains(pin));
        let all = || {
            told.iter()
                .map(line_of_authority)
                .chain(shown.iter().map(|cert| format!("shown in the handshake: {}", dated(cert))))
        };
        if aim.pins.is_empty() {
            return if aim.is_unpinned_on_purpose {
                Found::warned("no pin is wanted: any server could answer in the API server's place")
                    .lines(all())
            } else {
                Found::warned("no pin is given: who answers is taken at its word").lines(all()).advise(
                    "give the pin that kubeadm token create --print-join-command prints, as --discovery-token-ca-cert-hash",
                )
            };
        }
        if let Some(authority) = told.iter().find(|authority| is_pinned(&authority.certificate)) {
            return Found::passed("the cluster's authority is the pinned one")
                .line(line_of_authority(authority));
        }
        if let Some(cert) = shown.iter().find(|cert| is_pinned(cert)) {
            return Found::passed("the pinned key is in the chain that it shows").line(dated(cert));
        }
        // A chain without its root proves nothing against the pin while the agent could not read the CA itself.
        if told.is_empty()
            && let Some(line) = unread(&server.authorities, "the cluster's authority")
        {
            return Found::cannot_tell(line).lines(all());
        }
        let wanted = aim.pins.iter().map(|pin| format!("wanted: {pin}, after {}", aim.told_by));
        Found::failed("the authority of what answers is not the pinned one: it is another cluster, or the pin was copied wrong")
            .lines(wanted)
            .lines(all())
            .cause("ca-hash-mismatch")
            .advise("compare with the pin that a control plane of the right cluster prints; correct the pin, or the address")
            .run("sudo kubeadm token create --print-join-command")
            .run("openssl x509 -pubkey -in /etc/kubernetes/pki/ca.crt | openssl pkey -pubin -outform der | openssl dgst -sha256 -hex")
    })
}

fn line_of_authority(authority: &Authority) -> String {
    format!("{}: {}", authority.from, dated(&authority.certificate))
}

fn dated(certificate: &Certificate) -> String {
    format!("{certificate}, until {}", day(certificate.not_after_s))
}

pub(super) fn server_certificate(facts: &Facts) -> Found {
    best(facts, |server, _| {
        let Server { endpoint, host, .. } = server;
        let own = match server.tls.read() {
            Some(Tls::Shown(chain)) => chain.first(),
            _ => None,
        };
        let shown = || own.map(|own| format!("it shows {}", dated(own)));
        let mend = |says: String, cause, words: &str| {
            let show = format!(
                "openssl s_client -connect {endpoint} </dev/null 2>/dev/null | openssl x509 -noout -subject -issuer -dates -ext subjectAltName"
            );
            Found::failed(says).lines(shown()).cause(cause).advise(words).run(show)
        };
        match known!(server.verified) {
            Verified::Yes => Found::passed(format!("it is {host}'s, of the cluster's authority, and valid")).lines(shown()),
            Verified::WrongName => mend(
                format!("it is not for {host}, which is asked"),
                "apiserver-cert-san-mismatch",
                "ask an address that the certificate names, or add this one to apiServer.certSANs and renew the certificate on the control plane",
            )
            .line(format!("it is for {}", own.map_or_else(String::new, |own| own.names.join(", ")))),
            Verified::Expired => mend(
                own.map_or_else(|| "it has run out".to_owned(), |own| format!("it ran out {} ago", seconds(facts.now_s - own.not_after_s))),
                "server-certificate-expired",
                "renew the certificates on the control plane and restart its API server",
            )
            .run("sudo kubeadm certs check-expiration"),
            Verified::NotYet => mend(
                own.map_or_else(|| "it is not valid yet".to_owned(), |own| format!("it is valid only in {}", seconds(own.not_before_s - facts.now_s))),
                "clock-skew",
                "compare the clocks of this machine and of the one that made the certificate",
            ),
            Verified::OtherAuthority => mend(
                "it is of another authority than the cluster's".to_owned(),
                "ca-untrusted",
                "something that is not this cluster answers there, or the cluster's authority was replaced and this machine has the old one",
            ),
            Verified::No(said) => mend("it is not accepted".to_owned(), "ca-untrusted", "read the reason").line(said.clone()),
        }
    })
}

pub(super) fn api_server(facts: &Facts) -> Found {
    best(facts, |server, _| match known!(server.api) {
        Api::Is(version) => Found::passed(match &facts.supervised {
            Some(own) => format!("a supervisor of {} answers", own.name),
            None => format!("Kubernetes {version}"),
        }),
        // A server that answers 401 or 403 to this request is an API server.
        Api::Refuses(status @ (401 | 403), said) => {
            Found::passed("an API server answers").line(format!("{status}: {said}"))
        }
        Api::Refuses(status, said) => {
            Found::failed(format!("the API server answers {status}: it is not well"))
                .line(said.clone())
                .cause("apiserver-unreachable")
                .advise("see on the control plane why; what it rests on is often etcd")
                .run(format!("curl -sk https://{}/readyz?verbose", server.endpoint))
        }
        Api::Silent => hangs(server, "it was asked for its version and does not answer"),
        Api::Else(status, said) => {
            Found::failed(format!("what answers at {} is no API server", server.endpoint))
                .line(format!("{status}: {said}"))
                .cause("server-endpoint-wrong")
                .advise("correct HOST:PORT, or what stands in between")
        }
    })
}

pub(super) fn token(facts: &Facts) -> Found {
    if let Reading::Read(Some(ClientCertificate { path, .. })) = &facts.kubelet.certificate {
        return Found::passed("it is not needed any more: the kubelet has a certificate").line(path.clone());
    }
    best(facts, |server, aim| {
        let Some(id) = &aim.token_id else {
            return Found::skipped("no token is given");
        };
        if let Some(own) = &facts.supervised {
            return match &server.token {
                Reading::Read(TokenSeen::Accepted) => {
                    Found::passed(format!("the supervisor takes the token of {id}"))
                }
                Reading::Read(TokenSeen::Refused) => supervised::token_refused(own, server, id),
                Reading::CannotTell(why) => Found::cannot_tell(why.to_string()),
            };
        }
        let mend = |found: Found| {
            found
                .cause("bootstrap-token-invalid")
                .advise("make a new one on a control plane and join with the line that it prints; tokens live for a day unless told otherwise")
                .run("sudo kubeadm token create --print-join-command")
                .run(format!("kubectl -n kube-system get secret bootstrap-token-{}", word(id)))
        };
        let signed = match server.cluster_info.read() {
            Some(ClusterInfo::There(signature)) => Some(signature),
            _ => None,
        };
        match (&server.token, signed) {
            (Reading::Read(TokenSeen::Accepted), _) => Found::passed(format!("the API server takes {id}")),
            (Reading::Read(TokenSeen::Refused), Some(Signature::Missing(ids))) => {
                mend(Found::failed(format!(
                    "the API server does not know the token {id}: it has run out, was deleted, or never was"
                )))
                .line("401 Unauthorized".to_owned())
                .line(signed_with(ids))
            }
            (Reading::Read(TokenSeen::Refused), Some(Signature::Wrong)) => {
                mend(Found::failed(format!("the API server knows a token {id} with another secret")))
                    .line("401 Unauthorized".to_owned())
            }
            (Reading::Read(TokenSeen::Refused), _) => {
                mend(Found::failed(format!("the API server does not take the token {id}")))
                    .line("401 Unauthorized".to_owned())
            }
            (Reading::CannotTell(_), Some(Signature::Missing(ids))) => mend(Found::failed(format!(
                "the cluster signs nothing with the token {id}: it has run out, was deleted, or never was"
            )))
            .line(signed_with(ids)),
            (Reading::CannotTell(_), Some(Signature::Wrong)) => {
                mend(Found::failed(format!("the cluster knows a token {id} with another secret")))
            }
            (Reading::CannotTell(why), _) => Found::cannot_tell(why.to_string()),
        }
    })
}

fn signed_with(ids: &[String]) -> String {
    if ids.is_empty() {
        "cluster-info is signed with no token".to_owned()
    } else {
        format!("cluster-info is signed with the tokens {}", ids.join(", "))
    }
}

/// Days since the epoch as a date: the end of a certificate is reported by its day.
pub(super) fn day(seconds: i64) -> String {
    // Days of the civil calendar from days since the epoch, by eras of 400 years (Howard Hinnant's algorithm).
    let days = seconds.div_euclid(86_400) + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, wanted) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_795_357_652, "2026-11-22"),
            (-1, "1969-12-31"),
            (4_102_444_800, "2100-01-01"),
        ] {
            assert_eq!(day(seconds), wanted);
        }
    }
}
