//! Any bytes as a recording, and each of its lines as a record of the ledger: what is taken can be written and read again.
//!
//! ```text
//!  bytes ─▶ lines ─┬▶ recording::Reader ─▶ header, steps ─▶ Writer ─▶ Reader ─▶ the same header, the same steps
//!                  └▶ ledger::from_wire ─▶ Record ─▶ to_wire ─▶ from_wire ─▶ the same record
//! ```
//!
//! A line that is refused ends the recording, as in a replay.

use reveille_wire::ledger::{LedgerLine, from_wire, to_wire};
use reveille_wire::recording::{Line, Reader, Writer};

/// One try.
pub(crate) fn run(bytes: &[u8]) {
    let (mut reader, mut writer, mut again) = (Reader::default(), Writer::default(), Reader::default());
    let mut reading = true;
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some(record) = record(line) {
            let written = serde_json::to_vec(&to_wire(&record)).unwrap_or_else(|error| panic!("{error}"));
            let back = self::record(&written);
            assert_eq!(back.map(|back| format!("{back:?}")), Some(format!("{record:?}")));
        }
        match reader.read(line).ok().filter(|_| reading) {
            Some(taken) => written_again(&taken, &mut writer, &mut again),
            None => reading = false,
        }
    }
}

fn record(line: &[u8]) -> Option<reveille_core::record::Record> {
    from_wire(serde_json::from_slice::<LedgerLine>(line).ok()?).ok()
}

fn written_again(taken: &Line, writer: &mut Writer, again: &mut Reader) {
    let written = match taken {
        Line::Header(header) => writer.header(header),
        Line::Step(step) => writer.step(step.at, &step.event, &step.effects),
    };
    let written = written.unwrap_or_else(|error| panic!("{error}"));
    let back = again.read(&written).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(format!("{back:?}"), format!("{taken:?}"));
}
