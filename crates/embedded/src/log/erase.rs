//! Erasing bodies from closed segments of the log.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use kinfolk_core::{Error, IdKind, Result, Sequence};

use super::frame::{EventBody, Frame, FrameBuilder};
use super::reader::{FrameReader, Next};
use super::segment::{self, Segment};
use crate::disk::files::IoContext;

/// Where a segment is written anew, in the folder of the store.
pub(crate) const ERASING_FILE: &str = "erasing.tmp";

/// Writes a closed segment anew, durably, with zeros for the bodies at some positions. Every frame keeps its offset and length, so that
/// what is known of the segment stays true.
/// Returns whether there was such a segment: retention may have removed it.
pub(crate) fn blank(
    segment: &Segment,
    ids: IdKind,
    positions: &BTreeSet<Sequence>,
    to: &Path,
) -> Result<bool> {
    let mut header = vec![0; segment::HEADER_LEN as usize];
    let from = &segment.path;
    let Some(opened) = File::open(from).if_found("opening", from)? else { return Ok(false) };
    opened.read_exact_at(&mut header, 0).during("reading", from)?;
    let file = File::create(to).during("creating", to)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    out.write_all(&header).during("writing", to)?;
    let mut reader = FrameReader::open(from, ids, segment::HEADER_LEN)?;
    let damaged = || {
        Error::corrupt(format!("damage in {}; bodies were not erased: restore from a backup", from.display()))
    };
    loop {
        let start = reader.offset;
        match reader.next()? {
            Next::Frame(frame, end) => {
                let bytes = encode(frame, positions).filter(|bytes| start + bytes.len() as u64 == end);
                out.write_all(&bytes.ok_or_else(damaged)?).during("writing", to)?;
            }
            Next::Unused => break,
            Next::Broken => return Err(damaged()),
        }
    }
    out.flush().during("writing", to)?;
    out.get_ref().sync_all().during("syncing", to)?;
    Ok(true)
}

/// The bytes of a frame without the bodies at some positions.
fn encode(frame: Frame, positions: &BTreeSet<Sequence>) -> Option<Vec<u8>> {
    let mut builder = FrameBuilder::new(frame.events.first()?.position);
    for mut event in frame.events {
        if let EventBody::Comment(body) = &event.body
            && positions.contains(&event.position)
        {
            event.body = EventBody::Comment(Arc::new(body.erased()));
        }
        builder.push(&event);
    }
    Some(builder.finish(frame.floor))
}
