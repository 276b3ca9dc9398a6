//! The content of a certificate, for people and for comparisons: names, dates, and the hash of its key.
//!
//! Reading proves nothing; `pins` and rustls decide which certificates are trusted.

use std::fmt;

use tokio_rustls::rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::pin::Pin;

/// A certificate as it was presented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presented {
    /// The subject (RFC 4514 text), or why the certificate could not be read.
    pub subject: String,
    /// The issuer.
    pub issuer: String,
    /// Valid from, seconds since the epoch.
    pub not_before_s: i64,
    /// Valid until, seconds since the epoch.
    pub not_after_s: i64,
    /// The hash of the public key; none when it could not be read.
    pub key: Option<Pin>,
    /// The certificate says that it is a CA.
    pub is_authority: bool,
    /// The host names and addresses that the certificate is valid for.
    pub names: Vec<String>,
}

impl Presented {
    /// Reads a certificate; for one that cannot be read, the subject holds the reason.
    pub fn read(der: &CertificateDer<'_>) -> Self {
        let Ok((_, cert)) = X509Certificate::from_der(der) else {
            return Self {
                subject: format!("a certificate that cannot be read ({} bytes)", der.len()),
                issuer: String::new(),
                not_before_s: 0,
                not_after_s: 0,
                key: None,
                is_authority: false,
                names: Vec::new(),
            };
        };
        let validity = cert.validity();
        Self {
            subject: cert.subject().to_string(),
            issuer: cert.issuer().to_string(),
            not_before_s: validity.not_before.timestamp(),
            not_after_s: validity.not_after.timestamp(),
            key: Some(Pin::of_key(cert.public_key().raw)),
            is_authority: cert.is_ca(),
            names: names_of(&cert),
        }
    }
}

fn names_of(cert: &X509Certificate<'_>) -> Vec<String> {
    use x509_parser::extensions::GeneralName;
    let Ok(Some(names)) = cert.subject_alternative_name() else { return Vec::new() };
    let readable = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|ip| std::net::IpAddr::from(ip).to_string()),
            16 => <[u8; 16]>::try_from(*bytes).ok().map(|ip| std::net::IpAddr::from(ip).to_string()),
            _ => None,
        },
        _ => None,
    };
    names.value.general_names.iter().filter_map(readable).collect()
}

impl fmt::Display for Presented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.subject)?;
        if !self.issuer.is_empty() && self.issuer != self.subject {
            write!(f, " of \"{}\"", self.issuer)?;
        }
        self.key.map_or(Ok(()), |key| write!(f, " ({key})"))
    }
}
