//! Certificates as the text of configuration files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// One block for each, in order.
pub fn certificates(certificates: &[CertificateDer<'_>]) -> String {
    let mut text = String::new();
    for der in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(der);
        // RFC 7468: lines of 64. The alphabet is ASCII, so no character is cut.
        for line in encoded.as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Authority;
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;

    #[test]
    fn what_is_written_is_read_again() {
        let ders = [Authority::new("one").der(), Authority::new("two").der()];
        let read: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(certificates(&ders).as_bytes()).collect();
        assert_eq!(read.unwrap(), ders);
    }
}
