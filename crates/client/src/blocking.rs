//! The blocking client. It must not be used from async code: see [`crate::Client`] for that.
//!
//! ```no_run
//! # fn main() -> kinfolk_client::Result<()> {
//! let client = kinfolk_client::blocking::Client::new("http://127.0.0.1:7400")?.acting_as(1);
//! client.follow(2)?;
//! assert!(client.follows(1, 2)?.following);
//! for followee in client.following(1) {
//!     println!("{}", followee?.id);
//! }
//! # Ok(())
//! # }
//! ```

use std::io::{self, Read};

use kinfolk_api::{
    CompactOutcome, ExportContent, FileFormat, Id, Import, ImportOutcome, Progress, SuggestOutcome,
    VerifyOutcome,
};
use ureq::http::Method;

#[cfg(doc)]
use crate::Error;
use crate::call::{Call, Request};
use crate::jobs::{self, SuggestRun};
use crate::session::Session;
use crate::transport::Upload;
use crate::{ClientBuilder, Result};

pub use crate::changes::ChangeEvents;

/// A blocking client of one server. Clones share connections, the actor and the consistency token.
#[derive(Clone)]
pub struct Client {
    pub(crate) session: Session,
}

crate::client::common_methods!(Client, build_blocking);

impl Client {
    pub(crate) fn send<T>(&self, call: Call<T>) -> Result<T> {
        let Call { request, read } = call;
        let turn = self.session.write_turn();
        let _turn = request.is_write.then(|| turn.blocking_lock());
        let mut attempt = 1;
        loop {
            match self.session.attempt(&request, read) {
                Ok(result) => return Ok(result),
                Err(error) => match self.session.shared.retry.wait(attempt, request.repeat, &error) {
                    Some(wait) => std::thread::sleep(wait),
                    None => return Err(error),
                },
            }
            attempt += 1;
        }
    }

    /// The change log as it grows, after a token or from the oldest change that is kept. The iterator waits for changes, and
    /// resumes by itself when the connection is lost.
    ///
    /// ```no_run
    /// # fn example(client: kinfolk_client::blocking::Client) -> kinfolk_client::Result<()> {
    /// for change in client.change_stream(None) {
    ///     let change = change?;
    ///     println!("{} {}", change.position, change.r#type);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn change_stream(&self, after: Option<&str>) -> ChangeEvents {
        ChangeEvents::new(self.session.clone(), after.map(str::to_owned))
    }

    /// Adds the edges of a file, all or nothing. It is sent once: a failed import can be run again.
    ///
    /// # Errors
    /// [`Error::Refused`] with `invalid_input` for a malformed line, unless these are skipped.
    pub fn import(
        &self,
        file: &mut dyn Read,
        options: Import,
        mut progress: impl FnMut(Progress),
    ) -> Result<ImportOutcome> {
        let turn = self.session.write_turn();
        let _turn = turn.blocking_lock();
        let upload = Upload { file, length: options.length };
        jobs::import(&self.session, &options, upload, &mut progress)
    }

    /// Compares everything derived with the edges, posts and comments, and repairs it if asked to.
    ///
    /// # Errors
    /// As any operation. Differences are no error.
    pub fn verify(&self, repair: bool, mut progress: impl FnMut(Progress)) -> Result<VerifyOutcome> {
        let request = Request::write(Method::POST, "/v1/admin/verify").query("repair", repair);
        jobs::run(&self.session, &request, &mut progress)
    }

    /// Erases the bodies of purged comments from the disk, and compacts all files.
    ///
    /// # Errors
    /// As any operation.
    pub fn compact(&self, mut progress: impl FnMut(Progress)) -> Result<CompactOutcome> {
        let request = Request::write(Method::POST, "/v1/admin/compact");
        jobs::run(&self.session, &request, &mut progress)
    }

    /// Computes suggestions for everyone, and stores them.
    ///
    /// # Errors
    /// As any operation.
    pub fn suggest(&self, run: &SuggestRun, mut progress: impl FnMut(Progress)) -> Result<SuggestOutcome> {
        jobs::run(&self.session, &jobs::suggest(run), &mut progress)
    }

    /// Downloads all edges, or all comments.
    ///
    /// # Errors
    /// As any operation.
    pub fn export(&self, content: ExportContent, format: FileFormat) -> Result<Download> {
        Download::open(self.session.clone(), &jobs::export(content, format))
    }

    /// Downloads a backup of the whole store.
    ///
    /// # Errors
    /// As any operation.
    pub fn backup(&self) -> Result<Download> {
        Download::open(self.session.clone(), &jobs::backup())
    }
}

/// A file that the server sends. Reading it fails if the transfer breaks off: a file that came to its end is complete.
pub struct Download {
    session: Session,
    body: ureq::BodyReader<'static>,
    length: Option<u64>,
}

impl Download {
    pub(crate) fn open(session: Session, request: &Request) -> Result<Self> {
        let body = session.shared.transport.open(request, &session.carried(), None)?;
        let length = body.content_length();
        Ok(Self { session, body: body.into_with_config().limit(u64::MAX).reader(), length })
    }

    /// How many bytes it has, if the server says so.
    pub fn content_length(&self) -> Option<u64> {
        self.length
    }

    pub(crate) fn read_part(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.body.read(buffer).map_err(|error| self.session.shared.transport.connection_failed(&error))
    }
}

/// The errors are [`Error::Connection`].
impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_part(buffer).map_err(io::Error::other)
    }
}

/// A list to be read: one page of it, or all entries by iterating.
pub type List<P> = crate::List<P, Client>;

/// All entries of a list.
pub type Items<P> = crate::listing::Items<P, Client>;
