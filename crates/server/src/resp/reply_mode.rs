//! `CLIENT REPLY`: connections that want no replies, for one command or from now on. Their commands run as any others.

use kinfolk_core::Store;

use super::batch::Arguments;
use super::connection::{Connection, Gone};
use super::pipeline::Work;
use super::transport::Socket;

/// Which commands of a connection get replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReplyMode {
    #[default]
    On,
    /// None, until it is set again.
    Off,
    /// All but the next.
    SkipNext,
    /// All but the one that runs.
    Skip,
}

impl<T: Socket, S: Store> Connection<T, S> {
    /// Runs one command of a connection that wants no reply to it.
    pub(super) async fn run_silently(
        &mut self,
        arguments: Arguments<'_>,
        work: &mut Work<'_>,
    ) -> Result<(), Gone> {
        // What the commands before it have replied is not to be dropped.
        self.commit(work).await;
        self.reply_to_checks(work).await;
        self.send(work.out).await?;
        if self.session.reply_mode == ReplyMode::SkipNext {
            self.session.reply_mode = ReplyMode::Skip;
        }
        let ran = self.run_admitted(arguments, work).await;
        self.commit(work).await;
        self.reply_to_checks(work).await;
        // `CLIENT REPLY ON` and `RESET` have a reply again.
        if self.session.reply_mode != ReplyMode::On {
            work.out.bytes.clear();
        }
        if self.session.reply_mode == ReplyMode::Skip {
            self.session.reply_mode = ReplyMode::On;
        }
        ran
    }
}
