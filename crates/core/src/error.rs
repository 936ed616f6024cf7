//! Every error, and one table that maps each to HTTP, RESP and the exit status.

use std::time::Duration;

use crate::Position;

/// The result of an operation on the graph.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation was refused or failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Text that is not an id of the deployment's kind.
    #[error("{input:?} is not a valid id: {reason}")]
    InvalidId {
        /// The input, shortened.
        input: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An id of the other kind.
    #[error("{input:?} is of the wrong kind: this deployment uses {expected} ids")]
    IdKindMismatch {
        /// The deployment's kind.
        expected: &'static str,
        /// The input.
        input: String,
    },
    /// The id or idempotency key belongs to a post with different contents.
    #[error("post {id} is already registered with different contents")]
    PostConflict {
        /// The id of the post.
        id: String,
    },
    /// The post was deleted; its id cannot be reused.
    #[error("post {id} was deleted; its id cannot be reused")]
    PostDeleted {
        /// The id of the post.
        id: String,
    },
    /// The creation time of a post is too far in the future.
    #[error("a post can be dated at most 5 minutes in the future, not {created_at}")]
    PostInFuture {
        /// The time in the request.
        created_at: crate::Timestamp,
    },
    /// The payload of a post is too long.
    #[error("the payload of a post can have at most {max} bytes")]
    PayloadTooLarge {
        /// The maximum.
        max: usize,
    },
    /// The author has used the idempotency key for a different comment.
    #[error("the idempotency key was used for a different comment; use a new key")]
    IdempotencyConflict,
    /// The comment thread is locked.
    #[error("the comments are locked; no new comments are accepted")]
    ThreadLocked,
    /// The comment cannot be replied to.
    #[error("cannot reply to comment {id}: {reason}")]
    InvalidReply {
        /// The id of the comment.
        id: String,
        /// Why not.
        reason: &'static str,
    },
    /// The body or reason is not valid text.
    #[error("{what} {reason}")]
    InvalidBody {
        /// What the text is, such as "a comment".
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The comment is at another version than the edit expects.
    #[error("the comment is at version {current}; read it again, then edit that version")]
    VersionConflict {
        /// The current version.
        current: u32,
    },
    /// An edit without a version.
    #[error("an edit requires the header If-Match with the version to edit, such as \"1\"")]
    VersionRequired,
    /// The comment was deleted, removed or purged.
    #[error("comment {id} was deleted or removed")]
    CommentDeleted {
        /// The id of the comment.
        id: String,
    },
    /// The follower and the followee are the same user.
    #[error("a user cannot follow itself")]
    SelfFollow,
    /// The follower has reached the following limit.
    #[error("user {follower} already follows {limit} users, the maximum")]
    FollowingLimit {
        /// The follower.
        follower: String,
        /// The limit.
        limit: u32,
    },
    /// The page size is out of range.
    #[error("a limit must be between 1 and {max}, not {limit}")]
    LimitOutOfRange {
        /// The requested limit.
        limit: usize,
        /// The maximum.
        max: usize,
    },
    /// The call has too many items.
    #[error("{count} {what} in one call are too many; send at most {max}")]
    TooMany {
        /// What the items are, such as "pairs".
        what: &'static str,
        /// How many the call has.
        count: usize,
        /// The maximum.
        max: usize,
    },
    /// The cursor was modified, forged, or belongs to another list.
    #[error("the cursor is not valid for this list; start again without one")]
    InvalidCursor,
    /// The token was modified, forged, or belongs to another deployment.
    #[error("the consistency token was not issued by this deployment")]
    InvalidToken,
    /// The token was issued before a restore.
    #[error("the consistency token was issued before a restore; drop it and read the graph again")]
    TokenFromOtherEpoch,
    /// The position did not become visible within the maximum wait of a read.
    #[error("position {asked} is not visible yet; this store is at {current}; try again")]
    NotYetVisible {
        /// The position in the token.
        asked: Position,
        /// The last visible position of the store.
        current: Position,
    },
    /// The changes after the position were trimmed from the log.
    #[error(
        "changes after position {asked} are no longer kept; the oldest is {oldest}: read the graph again"
    )]
    PositionExpired {
        /// The requested position.
        asked: Position,
        /// The oldest position in the log.
        oldest: Position,
    },
    /// The queue of the store is full.
    #[error("too many requests are waiting; try again")]
    Overloaded {
        /// When to try again.
        retry_after: Duration,
    },
    /// A part of the deployment is unreachable; nothing was changed.
    #[error("{what} is unreachable, nothing was changed; try again")]
    Unavailable {
        /// The unreachable part.
        what: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// The disk is full; nothing was written.
    #[error("the disk is full, nothing was written: free some space and try again ({detail})")]
    StorageFull {
        /// The system's error message.
        detail: String,
    },
    /// The disk has less free space than the operation needs; it was not started.
    #[error("{detail}")]
    NoRoom {
        /// How much is needed, how much is free, and what to do.
        detail: String,
    },
    /// A sync or write failed; until the store is reopened, it serves reads only.
    #[error(
        "writes are refused since the storage failed ({reason}); reads go on: check the disk, then restart"
    )]
    ReadOnly {
        /// The first failure.
        reason: String,
    },
    /// Stored data is damaged or inconsistent.
    #[error("{detail}")]
    Corrupt {
        /// What is damaged, where, and what to do.
        detail: String,
    },
    /// Another process has the store open.
    #[error("{detail}")]
    InUse {
        /// What is in use and what to do.
        detail: String,
    },
    /// The folder is not what was expected: missing, foreign, or of another format or id kind.
    #[error("{detail}")]
    InvalidStore {
        /// What is wrong and what to do.
        detail: String,
    },
    /// Bad input in a bulk operation.
    #[error("{detail}")]
    InvalidInput {
        /// Where and why.
        detail: String,
    },
    /// The store failed for another reason.
    #[error("storage error: {detail}")]
    Storage {
        /// The system's error message.
        detail: String,
    },
    /// The store is loading.
    #[error("the store is loading; try again")]
    Loading,
    /// The server should not be sent requests for now.
    #[error("{reason}")]
    NotReady {
        /// Why, and what to do. Anybody may read it.
        reason: String,
    },
    /// The store is shutting down.
    #[error("the store is closed")]
    Closed,
    /// The request is malformed.
    #[error("{detail}")]
    InvalidRequest {
        /// What is wrong with it and what is expected.
        detail: String,
    },
    /// Credentials are missing or invalid.
    #[error("{detail}")]
    Unauthenticated {
        /// What is missing or wrong; never the credential itself.
        detail: &'static str,
    },
    /// A credential that belongs to no caller, or no longer does.
    #[error("{detail}")]
    WrongCredential {
        /// What is wrong; never the credential itself.
        detail: &'static str,
    },
    /// A version of the Redis protocol that is not spoken here.
    #[error("unsupported protocol version")]
    UnsupportedProtocol,
    /// The caller may not do this.
    #[error("{detail}")]
    Forbidden {
        /// What the caller lacks.
        detail: String,
    },
    /// A write without an actor.
    #[error("a write needs an actor: name one in the header Kinfolk-Actor, or use a user's token")]
    ActorRequired,
    /// The caller exceeds its rate limit.
    #[error("too many requests; try again in {} ms", retry_after.as_millis())]
    RateLimited {
        /// When the next request is allowed.
        retry_after: Duration,
    },
    /// The requested object or path does not exist.
    #[error("{detail}")]
    NotFound {
        /// What was not found.
        detail: String,
    },
    /// The path exists, but not for this method.
    #[error("the method is not allowed here")]
    MethodNotAllowed,
    /// The body or frame is too large.
    #[error("the request is larger than the maximum of {max} bytes")]
    TooLarge {
        /// The maximum size in bytes.
        max: usize,
    },
    /// The content type of the body is not supported.
    #[error("the content type must be {expected}")]
    UnsupportedMediaType {
        /// The supported content type.
        expected: &'static str,
    },
    /// The body is compressed, or encoded in another way.
    #[error("a body must not be compressed: send it without the header Content-Encoding")]
    UnsupportedContentCoding,
    /// The client did not send its whole request in time; nothing was changed.
    #[error("the request did not arrive in time; send all of it at once")]
    RequestTimeout,
    /// The URI is too long.
    #[error("the URI is longer than the maximum of {max} bytes; split the request")]
    UriTooLong {
        /// The maximum length in bytes.
        max: usize,
    },
    /// The headers are too large or too many.
    #[error(
        "the headers are too large; send at most {max} headers, and {bytes_max} bytes with the request line"
    )]
    HeadersTooLarge {
        /// The maximum number of headers.
        max: usize,
        /// The maximum size of the request line and all headers.
        bytes_max: usize,
    },
    /// The HTTP version is not supported.
    #[error("this version of HTTP is not supported; use HTTP/1.1")]
    UnsupportedVersion,
    /// The request timed out, or a connection was lost during its commit; whether it took effect is unknown.
    #[error("the request timed out and may have taken effect; repeat it if that is safe")]
    TimedOut,
    /// A RESP key of an unknown family.
    #[error("a key must be following:ID or followers:ID")]
    WrongKey,
    /// A RESP transaction that contains a command which was refused when it was queued.
    #[error("Transaction discarded because of previous errors.")]
    TransactionAborted,
    /// The profile does not support the operation yet.
    #[error("{what} is not available in this profile yet")]
    NotAvailable {
        /// The unsupported operation.
        what: &'static str,
    },
}

/// Codes from their table. A row is a code with its name for clients, the HTTP status, the first word of a RESP error and the
/// exit status; then the errors that have this code.
macro_rules! error_codes {
    ($($code:ident($name:literal, $http:literal, $resp:literal, $exit:literal) <= $($error:ident)|+;)+) => {
        /// The stable name of an error class. Clients match on it; it never changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each name is the code that the table spells out")]
        pub enum ErrorCode {
            $($code,)+
        }

        impl ErrorCode {
            /// All codes.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$code,)+];

            /// The code as clients see it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$code => $name,)+ }
            }

            /// The HTTP status.
            pub fn http_status(self) -> u16 {
                match self { $(Self::$code => $http,)+ }
            }

            /// The first word of a RESP error.
            pub fn resp_prefix(self) -> &'static str {
                match self { $(Self::$code => $resp,)+ }
            }

            /// The exit status of the command line: 1 for failed work, 2 for wrong usage.
            pub fn exit_status(self) -> u8 {
                match self { $(Self::$code => $exit,)+ }
            }
        }

        impl Error {
            /// The class of this error.
            pub fn code(&self) -> ErrorCode {
                match self { $($(Self::$error { .. })|+ => ErrorCode::$code,)+ }
            }
        }
    };
}

error_codes! {
    InvalidId("invalid_id", 400, "ERR", 2) <= InvalidId | IdKindMismatch;
    SelfFollow("self_follow", 422, "ERR", 1) <= SelfFollow;
    PostConflict("post_conflict", 409, "ERR", 1) <= PostConflict;
    PostDeleted("post_deleted", 409, "ERR", 1) <= PostDeleted;
    PostInFuture("post_in_future", 422, "ERR", 1) <= PostInFuture;
    PayloadTooLarge("payload_too_large", 422, "ERR", 2) <= PayloadTooLarge;
    IdempotencyConflict("idempotency_conflict", 409, "ERR", 1) <= IdempotencyConflict;
    ThreadLocked("thread_locked", 423, "ERR", 1) <= ThreadLocked;
    InvalidReply("invalid_reply", 422, "ERR", 1) <= InvalidReply;
    InvalidBody("invalid_body", 422, "ERR", 2) <= InvalidBody;
    VersionConflict("version_conflict", 412, "ERR", 1) <= VersionConflict;
    VersionRequired("version_required", 428, "ERR", 2) <= VersionRequired;
    CommentDeleted("comment_deleted", 410, "ERR", 1) <= CommentDeleted;
    FollowingLimit("following_limit", 422, "LIMIT", 1) <= FollowingLimit;
    LimitOutOfRange("limit_out_of_range", 400, "ERR", 2) <= LimitOutOfRange;
    TooMany("too_many", 400, "ERR", 2) <= TooMany;
    InvalidCursor("invalid_cursor", 400, "ERR", 2) <= InvalidCursor;
    InvalidToken("invalid_token", 400, "ERR", 2) <= InvalidToken | TokenFromOtherEpoch;
    NotYetVisible("not_yet_visible", 503, "TRYAGAIN", 1) <= NotYetVisible;
    PositionExpired("position_expired", 410, "ERR", 1) <= PositionExpired;
    Overloaded("overloaded", 503, "TRYAGAIN", 1) <= Overloaded;
    Unavailable("unavailable", 503, "TRYAGAIN", 1) <= Unavailable;
    StorageFull("storage_full", 507, "ERR", 1) <= StorageFull | NoRoom;
    ReadOnly("read_only", 503, "ERR", 1) <= ReadOnly;
    Corrupt("corrupt", 500, "ERR", 1) <= Corrupt;
    InUse("in_use", 409, "ERR", 1) <= InUse;
    InvalidStore("invalid_store", 500, "ERR", 1) <= InvalidStore;
    InvalidInput("invalid_input", 400, "ERR", 1) <= InvalidInput;
    Internal("internal", 500, "ERR", 1) <= Storage;
    Loading("loading", 503, "LOADING", 1) <= Loading;
    NotReady("not_ready", 503, "TRYAGAIN", 1) <= NotReady;
    Closed("closed", 503, "ERR", 1) <= Closed;
    InvalidRequest("invalid_request", 400, "ERR", 2) <= InvalidRequest;
    Unauthenticated("unauthenticated", 401, "NOAUTH", 1) <= Unauthenticated;
    WrongCredential("wrong_credential", 401, "WRONGPASS", 1) <= WrongCredential;
    UnsupportedProtocol("unsupported_protocol", 400, "NOPROTO", 2) <= UnsupportedProtocol;
    Forbidden("forbidden", 403, "NOPERM", 1) <= Forbidden;
    ActorRequired("actor_required", 400, "ERR", 2) <= ActorRequired;
    RateLimited("rate_limited", 429, "LIMIT", 1) <= RateLimited;
    NotFound("not_found", 404, "ERR", 1) <= NotFound;
    MethodNotAllowed("method_not_allowed", 405, "ERR", 2) <= MethodNotAllowed;
    TooLarge("too_large", 413, "ERR", 2) <= TooLarge;
    UnsupportedMediaType("unsupported_media_type", 415, "ERR", 2) <= UnsupportedMediaType | UnsupportedContentCoding;
    RequestTimeout("request_timeout", 408, "ERR", 1) <= RequestTimeout;
    UriTooLong("uri_too_long", 414, "ERR", 2) <= UriTooLong;
    HeadersTooLarge("headers_too_large", 431, "ERR", 2) <= HeadersTooLarge;
    UnsupportedVersion("unsupported_version", 505, "ERR", 2) <= UnsupportedVersion;
    TimedOut("timed_out", 504, "ERR", 1) <= TimedOut;
    WrongKey("wrong_key", 400, "WRONGTYPE", 2) <= WrongKey;
    TransactionAborted("transaction_aborted", 409, "EXECABORT", 1) <= TransactionAborted;
    NotAvailable("not_available", 501, "ERR", 1) <= NotAvailable;
}

impl Error {
    /// [`Error::Corrupt`]: what is damaged, where, and what to do.
    pub fn corrupt(detail: impl Into<String>) -> Self {
        Self::Corrupt { detail: detail.into() }
    }

    /// [`Error::Storage`]: the system's error message.
    pub fn storage(detail: impl Into<String>) -> Self {
        Self::Storage { detail: detail.into() }
    }

    /// [`Error::InvalidStore`]: what is wrong and what to do.
    pub fn invalid_store(detail: impl Into<String>) -> Self {
        Self::InvalidStore { detail: detail.into() }
    }

    /// [`Error::InUse`]: what is in use and what to do.
    pub fn in_use(detail: impl Into<String>) -> Self {
        Self::InUse { detail: detail.into() }
    }

    /// Whether a write that failed with this error may have taken effect. After any other error, nothing was changed.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::ReadOnly { .. } | Self::Closed | Self::TimedOut)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_code_has_its_own_name() {
        let names: HashSet<_> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), ErrorCode::ALL.len());
        for (at, code) in ErrorCode::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, at, "the table has the order of the codes");
        }
    }

    #[test]
    fn the_contract_is_kept() {
        for (code, name, status) in [
            (ErrorCode::SelfFollow, "self_follow", 422),
            (ErrorCode::FollowingLimit, "following_limit", 422),
            (ErrorCode::NotYetVisible, "not_yet_visible", 503),
            (ErrorCode::PositionExpired, "position_expired", 410),
            (ErrorCode::IdempotencyConflict, "idempotency_conflict", 409),
            (ErrorCode::VersionConflict, "version_conflict", 412),
        ] {
            assert_eq!((code.name(), code.http_status()), (name, status));
        }
        assert_eq!(ErrorCode::FollowingLimit.resp_prefix(), "LIMIT");
        assert_eq!(ErrorCode::InvalidId.exit_status(), 2);
    }
}
