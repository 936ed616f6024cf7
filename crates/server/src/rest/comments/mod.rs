//! Comments over HTTP: writes, moderation and reads. Their rules are in `kinfolk-core`.

mod body;
mod moderation;
mod reads;
mod version;
mod writes;

use super::prelude::*;

pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    moderation(writing(reading(routes)))
}

fn reading<S: Store>(routes: Routes<S>) -> Routes<S> {
    const NOT_FOUND: ErrorCode = ErrorCode::NotFound;
    const PAGES: [ErrorCode; 2] = [ErrorCode::LimitOutOfRange, ErrorCode::InvalidCursor];
    let thread = &[PAGES[0], PAGES[1], NOT_FOUND];
    let history = &[PAGES[0], PAGES[1], NOT_FOUND, ErrorCode::CommentDeleted];
    let read = Endpoint::read(Operation::Comments).needing(Capability::Comments).by(ActorRule::CommentViewer);
    routes
        .add(read.refusing(thread), routes!(reads::comments))
        .add(read.refusing(thread), routes!(reads::comment_tree))
        .add(read.refusing(&PAGES), routes!(reads::comments_by))
        .add(read.refusing(&[NOT_FOUND]), routes!(reads::comment))
        .add(read.by(ActorRule::CommentOwner).refusing(history), routes!(reads::comment_history))
}

fn writing<S: Store>(routes: Routes<S>) -> Routes<S> {
    let create_refuses = &[
        ErrorCode::NotFound,
        ErrorCode::IdempotencyConflict,
        ErrorCode::ThreadLocked,
        ErrorCode::InvalidReply,
        ErrorCode::InvalidBody,
        ErrorCode::UnsupportedMediaType,
    ];
    let edit_refuses = &[
        ErrorCode::NotFound,
        ErrorCode::NotYetVisible,
        ErrorCode::VersionConflict,
        ErrorCode::VersionRequired,
        ErrorCode::CommentDeleted,
        ErrorCode::InvalidBody,
        ErrorCode::UnsupportedMediaType,
    ];
    let delete_refuses = &[ErrorCode::NotFound, ErrorCode::NotYetVisible];
    let write = |operation| Endpoint::write(operation).needing(Capability::Comments);
    routes
        .add(
            write(Operation::Comment).costing(Cost::Comment).refusing(create_refuses),
            routes!(writes::write_comment),
        )
        .add(write(Operation::EditComment).refusing(edit_refuses), routes!(writes::edit_comment))
        .add(write(Operation::DeleteComment).refusing(delete_refuses), routes!(writes::delete_comment))
}

fn moderation<S: Store>(routes: Routes<S>) -> Routes<S> {
    let not_found = &[ErrorCode::NotFound];
    let remove_refuses = &[ErrorCode::NotFound, ErrorCode::InvalidBody, ErrorCode::UnsupportedMediaType];
    let moderate = Endpoint::moderate(Operation::Moderate).needing(Capability::Comments);
    routes
        .add(moderate.refusing(remove_refuses), routes!(moderation::remove_comment))
        .add(moderate.refusing(not_found), routes!(moderation::purge_comment))
        .add(moderate.refusing(not_found), routes!(moderation::lock_comments))
        .add(moderate.refusing(not_found), routes!(moderation::unlock_comments))
}
