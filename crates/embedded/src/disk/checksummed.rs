//! Files that end with a checksum of all before, written beside the file that they are to replace. Replacing it is the caller's next step.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use kinfolk_core::Result;

use super::files::{IoContext, remove_file};

const BUFFER_BYTES: usize = 1 << 20;
/// What is written is synced in steps: hundreds of megabytes at once would hold up the syncs of the log.
const STEP_BYTES: u64 = 8 << 20;

/// Writes and checksums.
pub(crate) struct ChecksumWriter {
    out: BufWriter<File>,
    checksum: u32,
    /// How many bytes were written.
    pub written: u64,
}

impl ChecksumWriter {
    /// Writes bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
        let before = self.written;
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)?;
        if self.written / STEP_BYTES != before / STEP_BYTES {
            self.out.flush()?;
            self.out.get_ref().sync_data()?;
        }
        Ok(())
    }
}

/// Writes a file durably beside the one at a path, and returns where. What a failure leaves is removed: it may take the last space.
pub(crate) fn write_beside(
    path: &Path,
    write: impl FnOnce(&mut ChecksumWriter) -> io::Result<()>,
) -> Result<PathBuf> {
    let temporary = path.with_extension("tmp");
    let attempt = || -> io::Result<()> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, File::create(&temporary)?);
        let mut out = ChecksumWriter { out, checksum: 0, written: 0 };
        write(&mut out)?;
        let checksum = out.checksum;
        out.bytes(&checksum.to_le_bytes())?;
        out.out.into_inner()?.sync_all()
    };
    attempt().during("writing", &temporary).inspect_err(|_| drop(remove_file(&temporary)))?;
    Ok(temporary)
}
