//! `CLIENT REPLY ON|OFF|SKIP`: whether commands get replies.

use super::super::super::reply_mode::ReplyMode;
use super::super::prelude::*;

pub(super) fn set<S: Store>(session: &mut Session<S>, mode: &[u8], out: &mut Output) -> Result<()> {
    let mode = match mode {
        mode if is(mode, "ON") => ReplyMode::On,
        mode if is(mode, "OFF") => ReplyMode::Off,
        mode if is(mode, "SKIP") => ReplyMode::SkipNext,
        _ => return Err(syntax_error()),
    };
    match (mode, session.reply_mode) {
        (ReplyMode::On, ReplyMode::On) => out.ok(),
        // The number of replies was announced.
        _ if session.is_executing => return Err(invalid("CLIENT REPLY is not allowed inside a transaction")),
        (ReplyMode::On, _) => out.ok(),
        (ReplyMode::SkipNext, ReplyMode::Off) => return Ok(()),
        _ => {}
    }
    session.reply_mode = mode;
    Ok(())
}
