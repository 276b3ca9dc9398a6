//! The common name that a certificate request asks for: `system:node:NAME`.
//!
//! ```text
//!  PEM ─▶ DER: SEQUENCE { SEQUENCE { INTEGER version, SEQUENCE subject { SET { SEQUENCE { OID, text } } … }, … }, … }
//! ```
//!
//! Only the way to that one field is walked, by lengths, in a document of bounded size; the rest is skipped unread. No
//! signature is checked: the API server has checked it, and nothing but an explanation rests on the name. Whatever does
//! not fit is "no name", never a guess.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A request for a certificate is one to two kilobytes; an RSA key of 16 Kibit fits.
const REQUEST_BYTES_MAX: usize = 16 << 10;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const OBJECT_ID: u8 = 0x06;
/// UTF8String, PrintableString and IA5String: what programs write names as.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];
/// id-at-commonName, 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// The common name in a PKCS 10 request as `spec.request` holds it: base64 of PEM.
pub(crate) fn common_name(request: &str) -> Option<String> {
    if request.len() > 2 * REQUEST_BYTES_MAX {
        return None;
    }
    let pem = STANDARD.decode(request).ok()?;
    let pem = std::str::from_utf8(&pem).ok()?;
    let body = pem.split_once("-----BEGIN CERTIFICATE REQUEST-----")?.1;
    let body: String = body.split_once("-----END")?.0.split_whitespace().collect();
    of_der(&STANDARD.decode(body).ok()?)
}

fn of_der(der: &[u8]) -> Option<String> {
    let (request, _) = inside(SEQUENCE, der)?;
    let (info, _) = inside(SEQUENCE, request)?;
    let (_, info) = inside(INTEGER, info)?;
    let (mut subject, _) = inside(SEQUENCE, info)?;
    while !subject.is_empty() {
        let (set, rest) = inside(SET, subject)?;
        let (pair, _) = inside(SEQUENCE, set)?;
        let (kind, pair) = inside(OBJECT_ID, pair)?;
        let (tag, text, _) = element(pair)?;
        if kind == COMMON_NAME && TEXTS.contains(&tag) {
            return std::str::from_utf8(text).ok().map(str::to_owned);
        }
        subject = rest;
    }
    None
}

/// The content of the element of this kind that begins here, and what comes after it.
fn inside(wanted: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|(tag, ..)| *tag == wanted).map(|(_, content, rest)| (content, rest))
}

/// One element: tag, content, and what comes after it. Lengths of up to two bytes, which is all that fits our bound.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, short], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81 => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
        0x82 => {
            rest.split_first_chunk().map(|(length, rest)| (usize::from(u16::from_be_bytes(*length)), rest))?
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `openssl req -new` for `/O=system:nodes/CN=system:node:w-1` with an ECDSA key.
    const OF_W_1: &str = include_str!("../../tests/support/w-1.csr.pem");

    #[test]
    fn the_name_stands_behind_the_organisation() {
        assert_eq!(common_name(&STANDARD.encode(OF_W_1)).as_deref(), Some("system:node:w-1"));
    }

    #[test]
    fn what_is_no_request_has_no_name() {
        let (whole, certificate) =
            (STANDARD.encode(OF_W_1), STANDARD.encode(OF_W_1.replace("CERTIFICATE REQUEST", "CERTIFICATE")));
        for text in ["", "?", OF_W_1, &certificate, &whole[..whole.len() / 2], &whole.repeat(80)] {
            assert_eq!(common_name(text), None, "{text}");
        }
    }

    /// Wherever a byte is damaged or the rest is missing, it is read to an end.
    #[test]
    fn a_damaged_request_is_survived() {
        let body: String = OF_W_1.lines().filter(|line| !line.starts_with("-----")).collect();
        let der = STANDARD.decode(body).unwrap();
        assert_eq!(of_der(&der).as_deref(), Some("system:node:w-1"));
        for at in 0..der.len() {
            let _ = of_der(&der[..at]);
            for byte in [0, 0x30, 0x7f, 0x81, 0x82, 0x83, 0xff] {
                let mut damaged = der.clone();
                damaged[at] = byte;
                let _ = of_der(&damaged);
            }
        }
        assert_eq!(of_der(&der[..der.len() / 4]), None);
    }
}
