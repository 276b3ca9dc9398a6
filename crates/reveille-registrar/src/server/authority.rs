//! The server's own certificate authorities: they sign machines' certificates, and agents identify this server by them.
//!
//! ```text
//!  DIR/authority/0001.pem      key and certificate, 0600       the oldest signs the server's certificate: agents know it
//!  DIR/authority/0002.pem      the next one, while it is being introduced       the newest signs machines' certificates
//!  DIR/authority/0001.retired  one that is retired
//!
//!  first start ─▶ 0001      rotate ─▶ 0002 beside it: both pins are printed, both are accepted      finish ─▶ the oldest retire
//! ```
//!
//! A rotation has two halves with days in between, so that every agent learns the next authority (a welcome names the
//! pins) before the last one is retired. Only the files say which authorities exist. The server never writes its own key
//! to disk: it makes a new one at each start, after two thirds of its certificate's lifetime, and when the clock was set.

use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
};
use reveille_core::model::time::Span;
use thiserror::Error;
use time::{Duration, OffsetDateTime};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::request::key_hash;
use crate::registry::{AuthorityHash, KeyHash, MachineId};

/// The lifetime of an authority, in days: it should never expire by surprise, and a rotation is for the day on which its
/// key leaks.
const AUTHORITY_DAYS: i64 = 3650;
/// The lifetime of the server's certificate, in days.
const SERVING_DAYS: i64 = 90;
/// A certificate is valid from this long before now, for two reasons. Machines' clocks may be behind. This server's clock
/// may be ahead until it is corrected, and is then behind its own certificates.
const BACKDATED: Duration = Duration::days(1);
/// More authorities than this at once mean that operators began rotations again and again and never finished one.
const AUTHORITIES_MAX: usize = 4;

/// Why there is no authority, or no certificate.
#[derive(Debug, Error)]
pub enum AuthorityError {
    /// The file system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file does not hold a key and a certificate.
    #[error("{} holds no key and certificate; put it back from a copy, or move it away and enrol the machines again", .0.display())]
    Unreadable(PathBuf),
    /// A certificate could not be made.
    #[error("cannot make a certificate")]
    Make(#[source] rcgen::Error),
    /// A name to listen under cannot be in a certificate.
    #[error("{0:?} is no host name and no address")]
    Name(String),
    /// Too many authorities at once.
    #[error(
        "there are {0} authorities already; finish the rotation that was begun: reveille invite --finish-rotation"
    )]
    TooMany(usize),
    /// The authorities are retired, but the disk has not confirmed it.
    #[error(
        "the authorities before are retired and count no more, but the disk has not confirmed it in {}: a power loss may bring \
         them back; ask again: reveille invite --finish-rotation", path.display()
    )]
    Unconfirmed {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// There is no second authority to go on with.
    #[error("there is one authority alone, and nothing to finish; begin with: reveille invite --rotate-ca")]
    NothingToFinish,
}

/// One authority.
struct Authority {
    path: PathBuf,
    certificate: CertificateDer<'static>,
    key: KeyHash,
    issuer: Issuer<'static, KeyPair>,
}

/// All authorities in force, oldest first; at least one.
pub(super) struct Authorities {
    directory: PathBuf,
    list: Vec<Authority>,
    /// Authorities were retired, and the disk has not confirmed it.
    is_unconfirmed: bool,
}

/// The certificate and key that the server shows to clients.
pub(super) struct Serving {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

/// An authority by its subject name, which no other authority of this server has or had.
pub(super) struct Signer {
    pub(super) subject: Vec<u8>,
    pub(super) authority: AuthorityHash,
}

impl Authorities {
    /// Reads the authorities, and makes the first one where there is none.
    pub(super) fn open(state: &Path) -> Result<Self, AuthorityError> {
        let directory = state.join("authority");
        let refused = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| AuthorityError::Io { doing, path, source }
        };
        std::fs::create_dir_all(&directory).map_err(refused("make the directory", &directory))?;
        restrict(&directory).map_err(refused("restrict the directory", &directory))?;
        let entries = std::fs::read_dir(&directory).map_err(refused("list", &directory))?;
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(refused("list", &directory))?.path();
            if path.extension().is_some_and(|extension| extension == "pem") {
                paths.push(path);
            }
        }
        paths.sort();
        let mut list = Vec::new();
        for path in paths {
            let bytes = std::fs::read(&path).map_err(refused("read", &path))?;
            list.push(Authority::read(path, &bytes)?);
        }
        let mut authorities = Self { directory, list, is_unconfirmed: false };
        if authorities.list.is_empty() {
            authorities.add()?;
        }
        Ok(authorities)
    }

    /// The pins, oldest first, in kubeadm's format.
    pub(super) fn pins(&self) -> Vec<String> {
        self.list.iter().map(|authority| authority.key.to_string()).collect()
    }

    /// The pins, in the registry's format.
    pub(super) fn keys(&self) -> Vec<AuthorityHash> {
        self.list.iter().map(|authority| AuthorityHash(authority.key.0)).collect()
    }

    /// The subject name that identifies each authority in a certificate.
    pub(super) fn signers(&self) -> Vec<Signer> {
        let named = self.list.iter().filter_map(|authority| {
            let (_, certificate) = X509Certificate::from_der(&authority.certificate).ok()?;
            let subject = certificate.subject().as_raw().to_vec();
            Some(Signer { subject, authority: AuthorityHash(authority.key.0) })
        });
        named.collect()
    }

    /// The certificates, oldest first.
    pub(super) fn certificates(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.list.iter().map(|authority| &authority.certificate)
    }

    /// The certificates as PEM.
    pub(super) fn pem(&self) -> String {
        self.certificates().map(|certificate| pem("CERTIFICATE", certificate)).collect()
    }

    /// Begins a rotation: adds an authority.
    pub(super) fn add(&mut self) -> Result<(), AuthorityError> {
        if self.list.len() >= AUTHORITIES_MAX {
            return Err(AuthorityError::TooMany(self.list.len()));
        }
        let number = 1 + self
            .list
            .iter()
            .map(|authority| number(&authority.path))
            .max()
            .unwrap_or(0)
            .max(retired(&self.directory));
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name = name(&format!("Reveille registration {number}"));
        dates(&mut params, Duration::days(AUTHORITY_DAYS));
        let key = KeyPair::generate().map_err(AuthorityError::Make)?;
        let certificate = params.self_signed(&key).map_err(AuthorityError::Make)?;
        let text = format!("{}{}", key.serialize_pem(), pem("CERTIFICATE", certificate.der()));
        let path = self.directory.join(format!("{number:04}.pem"));
        write_once(&path, text.as_bytes())?;
        self.list.push(Authority::read(path, text.as_bytes())?);
        Ok(())
    }

    /// Ends a rotation: retires all authorities but the newest.
    pub(super) fn finish(&mut self) -> Result<(), AuthorityError> {
        self.retire(sync)
    }

    fn retire(&mut self, sync: impl Fn(&Path) -> std::io::Result<()>) -> Result<(), AuthorityError> {
        if self.list.len() < 2 && !self.is_unconfirmed {
            return Err(AuthorityError::NothingToFinish);
        }
        while self.list.len() > 1 {
            let path = self.list[0].path.clone();
            let to = path.with_extension("retired");
            std::fs::rename(&path, &to).map_err(|source| AuthorityError::Io {
                doing: "retire",
                path,
                source,
            })?;
            self.list.remove(0);
            self.is_unconfirmed = true;
        }
        // An operator may retire an authority because its key has leaked: a host that loses power must not bring it back.
        sync(&self.directory)
            .map_err(|source| AuthorityError::Unconfirmed { path: self.directory.clone(), source })?;
        self.is_unconfirmed = false;
        Ok(())
    }

    /// A certificate for this server, signed by the authority that agents know longest.
    pub(super) fn serving(&self, names: &[String]) -> Result<Serving, AuthorityError> {
        let Some(oldest) = self.list.first() else { return Err(AuthorityError::NothingToFinish) };
        let mut params = CertificateParams::default();
        params.distinguished_name = name("Reveille registration server");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        for text in names {
            params.subject_alt_names.push(match text.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(
                    text.as_str().try_into().map_err(|_| AuthorityError::Name(text.clone()))?,
                ),
            });
        }
        dates(&mut params, Duration::days(SERVING_DAYS));
        let key = KeyPair::generate().map_err(AuthorityError::Make)?;
        let leaf = params.signed_by(&key, &oldest.issuer).map_err(AuthorityError::Make)?;
        let chain = vec![leaf.der().clone(), oldest.certificate.clone()];
        Ok(Serving { chain, key: PrivatePkcs8KeyDer::from(key.serialize_der()).into() })
    }

    /// A machine's certificate. It holds nothing of the machine but its record's name.
    pub(super) fn certify(
        &self,
        machine: &MachineId,
        key: &impl PublicKeyData,
        ttl: Span,
    ) -> Result<String, AuthorityError> {
        let Some(newest) = self.list.last() else { return Err(AuthorityError::NothingToFinish) };
        let mut params = CertificateParams::default();
        params.distinguished_name = name(machine.as_str());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        dates(&mut params, Duration::milliseconds(ttl.ms));
        let certificate = params.signed_by(key, &newest.issuer).map_err(AuthorityError::Make)?;
        Ok(pem("CERTIFICATE", certificate.der()))
    }
}

impl Authority {
    fn read(path: PathBuf, bytes: &[u8]) -> Result<Self, AuthorityError> {
        let unreadable = || AuthorityError::Unreadable(path.clone());
        let certificate = CertificateDer::from_pem_slice(bytes).map_err(|_| unreadable())?;
        let private = PrivateKeyDer::from_pem_slice(bytes).map_err(|_| unreadable())?;
        let pair = KeyPair::try_from(&private).map_err(|_| unreadable())?;
        let key = key_hash(&pair.subject_public_key_info());
        let issuer = Issuer::from_ca_cert_der(&certificate, pair).map_err(|_| unreadable())?;
        Ok(Self { path, certificate, key, issuer })
    }
}

fn name(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

fn dates(params: &mut CertificateParams, lasts: Duration) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - BACKDATED;
    params.not_after = now + lasts;
}

fn number(path: &Path) -> u32 {
    path.file_stem().and_then(|stem| stem.to_str()?.parse().ok()).unwrap_or(0)
}

/// The highest retired number: a number names one authority for ever.
fn retired(directory: &Path) -> u32 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    entries.filter_map(|entry| Some(number(&entry.ok()?.path()))).max().unwrap_or(0)
}

/// One document as PEM.
pub(super) fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(64) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

fn restrict(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))
}

/// Writes a new file, either whole and durable or not at all; it never overwrites an existing one.
fn write_once(path: &Path, bytes: &[u8]) -> Result<(), AuthorityError> {
    let refused = |source| AuthorityError::Io { doing: "write", path: path.to_owned(), source };
    let draft = path.with_extension("draft");
    let mut options = std::fs::OpenOptions::new();
    let mut file =
        options.write(true).create(true).truncate(true).mode(0o600).open(&draft).map_err(refused)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(refused)?;
    std::fs::hard_link(&draft, path).map_err(refused)?;
    std::fs::remove_file(&draft).map_err(refused)?;
    sync(path.parent().unwrap_or(path)).map_err(refused)
}

/// Makes creations, renames and removals in this directory durable.
fn sync(directory: &Path) -> std::io::Result<()> {
    std::fs::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_is_retired_despite_disk_error_and_finish_can_retry() {
        let folder = tempfile::tempdir().unwrap();
        let mut authorities = Authorities::open(folder.path()).unwrap();
        authorities.add().unwrap();
        let newest = authorities.pins().pop();
        let full = |_: &Path| Err(std::io::Error::from(std::io::ErrorKind::StorageFull));
        for _ in 0..2 {
            let failed = authorities.retire(full).unwrap_err().to_string();
            assert!(failed.contains("--finish-rotation"), "{failed}");
            assert_eq!((authorities.pins().len(), authorities.pins().pop()), (1, newest.clone()));
        }
        authorities.finish().unwrap();
        assert!(matches!(authorities.finish(), Err(AuthorityError::NothingToFinish)));
    }
}
