//! The async client: it sends on Tokio's blocking pool.

use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::Stream;
use kinfolk_api::{
    Change, CompactOutcome, ExportContent, FileFormat, Id, Import, ImportOutcome, Progress, SuggestOutcome,
    VerifyOutcome,
};
use tokio::sync::mpsc;

use crate::call::{Call, Request};
use crate::jobs::{self, SuggestRun};
use crate::session::Session;
use crate::transport::Upload;
use crate::{ClientBuilder, Error, Result, blocking};

/// How large the parts of a download are.
const PART_BYTES: usize = 64 << 10;
/// How many parts of a download, or changes of a stream, wait to be taken.
const PARTS_MAX: usize = 8;
const CHANGES_MAX: usize = 256;

/// What both clients have in common besides their operations.
macro_rules! common_methods {
    ($client:ty, $build:ident) => {
        impl $client {
            /// A client with the default settings.
            ///
            /// # Errors
            /// If the URL is not one of a server.
            pub fn new(url: impl Into<String>) -> Result<Self> {
                Self::builder(url).$build()
            }

            /// Settings for a client, such as a credential, certificates, timeouts and retries.
            pub fn builder(url: impl Into<String>) -> ClientBuilder {
                ClientBuilder::new(url)
            }

            /// A client that acts as a user, with the same connections and a consistency token of its own.
            pub fn acting_as(&self, actor: impl Into<Id>) -> Self {
                Self { session: self.session.acting_as(actor.into()) }
            }

            /// The user that this client acts as, unless that is the subject of its JWT.
            pub fn actor(&self) -> Option<Id> {
                self.session.actor()
            }

            /// A client with the same connections and actor, and a consistency token of its own. Writes of one client are sent one
            /// after another, so that each token covers those before it; writes of separate clients are sent at the same time.
            pub fn separate(&self) -> Self {
                Self { session: self.session.separate() }
            }

            /// The consistency token of this client's writes so far. A read that carries it, from any client, sees them.
            pub fn token(&self) -> Option<String> {
                self.session.token()
            }

            /// Makes reads see what a token covers, such as the writes of another client. `None` forgets what this client has
            /// written.
            pub fn set_token(&self, token: Option<String>) {
                self.session.set_token(token);
            }
        }

        impl std::fmt::Debug for $client {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.debug_struct(stringify!($client)).field("actor", &self.actor()).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use common_methods;

/// An async client of one server. Clones share connections, the actor and the consistency token.
///
/// It runs on Tokio. A request takes a thread of Tokio's blocking pool while it is sent, and at most
/// [`ClientBuilder::in_flight_max`] are sent at once. A request whose future is dropped may still be applied.
#[derive(Clone)]
pub struct Client {
    pub(crate) session: Session,
}

common_methods!(Client, build);

impl Client {
    pub(crate) async fn send<T: Send + 'static>(&self, call: Call<T>) -> Result<T> {
        let Call { request, read } = call;
        let request = Arc::new(request);
        let turn = match request.is_write {
            true => Some(Arc::new(self.session.write_turn().lock_owned().await)),
            false => None,
        };
        let mut attempt = 1;
        loop {
            let (session, sent, turn) = (self.session.clone(), Arc::clone(&request), turn.clone());
            let attempted = self.run(move || {
                // The turn of a write lasts until it is done, also if nobody waits for its result any more.
                let _turn = turn;
                session.attempt(&sent, read)
            });
            match attempted.await {
                Ok(result) => return Ok(result),
                Err(error) => match self.session.shared.retry.wait(attempt, request.repeat, &error) {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => return Err(error),
                },
            }
            attempt += 1;
        }
    }

    /// Runs what blocks on a thread of its own, when not too many are at work.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let in_flight = Arc::clone(&self.session.shared.in_flight);
        let permit = in_flight.acquire_owned().await.expect("the semaphore is never closed");
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await
            .unwrap_or_else(|error| Err(Error::UnexpectedResponse(format!("the request failed: {error}"))))
    }

    /// The change log as it grows, after a token or from the oldest change that is kept. The stream waits for changes, and
    /// resumes by itself when the connection is lost. It takes a thread of Tokio's blocking pool.
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    ///
    /// # async fn example(client: kinfolk_client::Client) -> kinfolk_client::Result<()> {
    /// let mut changes = client.change_stream(None);
    /// while let Some(change) = changes.try_next().await? {
    ///     println!("{} {}", change.position, change.r#type);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn change_stream(&self, after: Option<&str>) -> ChangeStream {
        let mut events = blocking::ChangeEvents::new(self.session.clone(), after.map(str::to_owned));
        let (sender, items) = mpsc::channel(CHANGES_MAX);
        let reader = sender.downgrade();
        events.is_wanted = Box::new(move || reader.upgrade().is_some_and(|reader| !reader.is_closed()));
        // Not a thread of the runtime, which would wait for it at its end.
        std::thread::spawn(move || {
            for event in events {
                if sender.blocking_send(event).is_err() {
                    return;
                }
            }
        });
        Received { items, length: None }
    }

    /// Adds the edges of a file, all or nothing. It is sent once: a failed import can be run again.
    ///
    /// The file is read, and `progress` called, on a thread that may block.
    ///
    /// # Errors
    /// [`Error::Refused`] with `invalid_input` for a malformed line, unless these are skipped.
    pub async fn import(
        &self,
        mut file: impl Read + Send + 'static,
        options: Import,
        mut progress: impl FnMut(Progress) + Send + 'static,
    ) -> Result<ImportOutcome> {
        // Before a thread is taken: a write that has the turn may wait for one.
        let turn = self.session.write_turn().lock_owned().await;
        let session = self.session.clone();
        self.run(move || {
            let _turn = turn;
            let upload = Upload { file: &mut file, length: options.length };
            jobs::import(&session, &options, upload, &mut progress)
        })
        .await
    }

    /// Compares everything derived with the edges, posts and comments, and repairs it if asked to.
    ///
    /// # Errors
    /// As any operation. Differences are no error.
    pub async fn verify(
        &self,
        repair: bool,
        progress: impl FnMut(Progress) + Send + 'static,
    ) -> Result<VerifyOutcome> {
        let client = self.blocking();
        self.run(move || client.verify(repair, progress)).await
    }

    /// Erases the bodies of purged comments from the disk, and compacts all files.
    ///
    /// # Errors
    /// As any operation.
    pub async fn compact(&self, progress: impl FnMut(Progress) + Send + 'static) -> Result<CompactOutcome> {
        let client = self.blocking();
        self.run(move || client.compact(progress)).await
    }

    /// Computes suggestions for everyone, and stores them.
    ///
    /// # Errors
    /// As any operation.
    pub async fn suggest(
        &self,
        run: SuggestRun,
        progress: impl FnMut(Progress) + Send + 'static,
    ) -> Result<SuggestOutcome> {
        let client = self.blocking();
        self.run(move || client.suggest(&run, progress)).await
    }

    /// Downloads all edges, or all comments.
    ///
    /// # Errors
    /// As any operation.
    pub async fn export(&self, content: ExportContent, format: FileFormat) -> Result<Download> {
        self.download(jobs::export(content, format)).await
    }

    /// Downloads a backup of the whole store.
    ///
    /// # Errors
    /// As any operation.
    pub async fn backup(&self) -> Result<Download> {
        self.download(jobs::backup()).await
    }

    async fn download(&self, request: Request) -> Result<Download> {
        let session = self.session.clone();
        let mut file = self.run(move || blocking::Download::open(session, &request)).await?;
        let length = file.content_length();
        let (sender, items) = mpsc::channel(PARTS_MAX);
        tokio::task::spawn_blocking(move || {
            loop {
                let mut part = vec![0; PART_BYTES];
                let (part, is_last) = match file.read_part(&mut part) {
                    Ok(0) => return,
                    Ok(count) => {
                        part.truncate(count);
                        (Ok(Bytes::from(part)), false)
                    }
                    Err(error) => (Err(error), true),
                };
                if sender.blocking_send(part).is_err() || is_last {
                    return;
                }
            }
        });
        Ok(Received { items, length })
    }

    fn blocking(&self) -> blocking::Client {
        blocking::Client { session: self.session.clone() }
    }
}

/// The change log as it grows. See [`Client::change_stream`].
pub type ChangeStream = Received<Change>;

/// A file that the server sends, in parts. A stream that ends without an error is complete.
pub type Download = Received<Bytes>;

/// What a thread receives from the server, as a stream.
#[derive(Debug)]
pub struct Received<T> {
    items: mpsc::Receiver<Result<T>>,
    length: Option<u64>,
}

impl Received<Bytes> {
    /// How many bytes the file has, if the server says so.
    pub fn content_length(&self) -> Option<u64> {
        self.length
    }
}

impl<T> Stream for Received<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.poll_recv(context)
    }
}
