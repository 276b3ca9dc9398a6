//! Lines without end, bytes that are no text, long logs and short ones.

use super::*;

#[test]
fn a_line_without_end_is_cut_and_the_next_one_is_read() {
    let mut text = vec![b'x'; 3 * LINE_BYTES_MAX];
    text.extend_from_slice(b"\nshort\r\nlast");
    let mut from = io::BufReader::with_capacity(700, text.as_slice());
    let mut line = Vec::new();
    let mut lengths = Vec::new();
    while bounded_line(&mut from, &mut line).unwrap() {
        lengths.push(line.len());
    }
    assert_eq!(lengths, [LINE_BYTES_MAX, 6, 4]);
}

#[test]
fn bytes_that_are_no_text_are_survived() {
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    let mut reader = Reader::new(&scanner);
    let mut bytes: Vec<u8> = (0..=255).cycle().take(5_000).collect();
    bytes.extend_from_slice(b"\n\xff\xfe dial tcp: lookup api.lan: no such host \xff\n");
    reader.lines("noise", bytes.as_slice()).unwrap();
    let place = catalogue.signals.iter().position(|signal| signal.id == "no-such-host").unwrap();
    assert!(reader.seen().sighted(place));
}
#[test]
fn a_long_log_tells_the_same_as_a_short_one() {
    const LINE: &str = "E0101 10:00:00.1 1 x.go:1] dial tcp: lookup api.lan: no such host";
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    let quiet = "Nov 21 01:02:03 host systemd[1]: Started Daily apt download activities.\n";
    let times = 3 * WHOLE_BYTES / quiet.len();
    let long = "y".repeat(2 * BLOCK_BYTES);
    let text = format!("{}{LINE}\n{long}\n{}{LINE}", quiet.repeat(times), quiet.repeat(9));
    for jobs in 1..=3 {
        let mut reader = Reader::new(&scanner).with_jobs(NonZeroUsize::new(jobs).unwrap());
        reader.lines("long", io::BufReader::new(text.as_bytes())).unwrap();
        let place = catalogue.signals.iter().position(|signal| signal.id == "no-such-host").unwrap();
        let (_, sighting) = reader.seen().of(place).next().unwrap();
        let lines: Vec<u64> = sighting.first.iter().map(|hit| hit.line).collect();
        let first = times as u64 + 1;
        assert_eq!(lines, [first, first + 11], "{jobs} jobs");
        assert_eq!(reader.seen().lines, first + 11, "{jobs} jobs");
    }
}
