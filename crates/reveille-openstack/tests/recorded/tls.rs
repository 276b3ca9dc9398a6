//! A cloud behind TLS: who is believed, who is not, and what the refusal says to do.

use crate::entry::{config, file, nowhere};
use crate::fake::{Fake, PASSWORD};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use reveille_openstack::Project;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new([]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A cloud on 127.0.0.1 whose certificate is for `host`, signed by `authority`.
async fn cloud(authority: &Authority, host: &str) -> Fake {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([host.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    Fake::start_tls(Arc::new(config)).await
}

/// Logs in by an entry of clouds.yaml with these lines about TLS.
async fn connect(fake: &Fake, tls: &str) -> Result<Project, String> {
    let text = format!(
        "clouds:\n  prod:\n    auth:\n      auth_url: https://{}/identity\n      username: reveille\n      \
         password: {PASSWORD}\n      user_domain_name: Default\n      project_name: prod\n      \
         project_domain_name: Default\n    api_timeout: 5\n{tls}",
        fake.address
    );
    Project::connect_in(&config(file("clouds.yaml", &text)), nowhere())
        .await
        .map_err(|error| error.to_string())
}

fn cacert(path: &Path) -> String {
    format!("    cacert: {}\n", path.display())
}

#[tokio::test]
async fn the_authority_that_the_entry_names_is_believed() {
    let ours = authority("ours");
    let fake = cloud(&ours, "127.0.0.1").await;
    let project = connect(&fake, &cacert(&file("ca.pem", &ours.pem()))).await.unwrap();
    assert!(project.verifies());
    assert!(project.survey().await.unwrap_err().text.contains("404"), "listings go the same way");
    assert_eq!(fake.take_seen()[0].line(), "POST /identity/v3/auth/tokens");
}

#[tokio::test]
async fn unverified_certificate_is_refused_before_password_is_sent() {
    let ours = authority("ours");
    let believed = |authority: &Authority| cacert(&file("ca.pem", &authority.pem()));
    let (ca, other, renewed) = (believed(&ours), believed(&authority("other")), believed(&authority("ours")));
    let cases = [
        ("of another authority", "127.0.0.1", other.as_str(), "Name its authority with cacert"),
        (
            "of one with the same name and another key",
            "127.0.0.1",
            renewed.as_str(),
            "Name its authority with cacert",
        ),
        ("of an authority that the system does not know", "127.0.0.1", "", "Name its authority with cacert"),
        ("for another host", "cloud.example", ca.as_str(), "is not for this host"),
    ];
    for (case, host, tls, says) in cases {
        let fake = cloud(&ours, host).await;
        let error = connect(&fake, tls).await.expect_err(case);
        assert!(error.starts_with("openstack: cannot log in to cloud prod: "), "{case}: {error}");
        assert!(error.contains(says), "{case}: {error}");
        assert!(!error.contains(PASSWORD), "{case}: {error}");
        assert!(fake.take_seen().is_empty(), "{case}: nothing was sent");
    }
}

#[tokio::test]
async fn an_entry_that_verifies_nothing_is_obeyed_and_known_for_it() {
    let ours = authority("ours");
    for (host, tls) in [("127.0.0.1", "    verify: false\n"), ("cloud.example", "    insecure: true\n")] {
        let fake = cloud(&ours, host).await;
        let project = connect(&fake, tls).await.unwrap_or_else(|error| panic!("{tls}: {error}"));
        assert!(!project.verifies(), "{tls}: a page that shows the project can say so");
    }
}

#[tokio::test]
async fn an_authority_that_cannot_be_read_is_named() {
    let fake = cloud(&authority("ours"), "127.0.0.1").await;
    let cases = [
        (cacert(Path::new("/nonexistent/ca.pem")), "cannot read certificate file /nonexistent/ca.pem"),
        (cacert(&file("ca.pem", "not a certificate\n")), "holds no certificate"),
    ];
    for (tls, says) in cases {
        let error = connect(&fake, &tls).await.expect_err(says);
        assert!(error.contains(says), "{error}");
        assert!(fake.take_seen().is_empty());
    }
}
