//! What an endpoint declares once, where it is registered: who may call it, for which user, at what cost, how long it may
//! take, what counts it, and how it may refuse. The guard in front of the route and the OpenAPI document follow from it.

use kinfolk_core::ErrorCode;

use crate::access::Scope;
use crate::metrics::Operation;
use crate::service::Capability;

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Everybody, with or without credentials.
    Everybody,
    /// Callers that hold a scope.
    Callers(Scope),
    /// Services that hold a scope; end users are refused.
    Services(Scope),
}

impl Admission {
    /// The scope that is needed.
    pub(crate) fn scope(self) -> Option<Scope> {
        match self {
            Self::Everybody => None,
            Self::Callers(scope) | Self::Services(scope) => Some(scope),
        }
    }
}

/// The user that a request is made for, and where it is named. An end user must be that user itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActorRule {
    /// No user in particular.
    Anyone,
    /// The actor, in the header `Kinfolk-Actor`.
    Actor,
    /// The actor, in the header, who must be the first user of the path.
    ActorInPath,
    /// The author, in the body or in the header.
    Author,
    /// The viewer, the first user of the path.
    ViewerInPath,
    /// The viewer, in the parameter `viewer` or in the header.
    Viewer,
    /// The viewer of comments, in the header, if there is one. Comments are public.
    CommentViewer,
    /// As [`ActorRule::CommentViewer`]; the graph refuses all but the author of the comment and moderators.
    CommentOwner,
    /// The moderator, in the header; without it, the service itself.
    Moderator,
}

/// What a request takes from budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// One request of the caller.
    Request,
    /// One request of the caller, and more for many rows.
    Rows,
    /// One request of the caller, and one change of the actor.
    Change,
    /// One request of the caller, and a comment of its author and of its thread. Only new comments count.
    Comment,
}

/// Where a request carries its credential, its actor and its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// In headers, as programs send them.
    Headers,
    /// In cookies of the console. Requests that change something must come from a page of the console.
    Cookies,
}

/// What an endpoint does with the token of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenUse {
    /// It takes none.
    Ignored,
    /// The response shows at least what the token covers.
    Awaited,
    /// The token of the response covers it.
    Joined,
}

/// What a route declares, apart from its path and its handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint {
    /// The metric that counts it.
    pub operation: Operation,
    /// Who may call it.
    pub admission: Admission,
    /// Whether it changes something.
    pub changes: bool,
    /// The user that it is for.
    pub actor: ActorRule,
    /// What it takes from budgets.
    pub cost: Cost,
    /// What it does with the request's token.
    pub token: TokenUse,
    /// Where the request has its credential, its actor and its token.
    pub carrier: Carrier,
    /// Whether it has no time limit, and counts itself when it ends.
    pub is_long: bool,
    /// Whether it can be so much work that it is cancelled a moment after its client closes its sending side, and so may be
    /// gone.
    pub is_abandonable: bool,
    /// The capability that the profile must have.
    pub capability: Option<Capability>,
    /// How it may refuse or fail, apart from what every route of its sort has in common.
    pub refusals: &'static [ErrorCode],
}

impl Endpoint {
    /// Needs no caller.
    pub(crate) const fn open() -> Self {
        Self {
            operation: Operation::Other,
            admission: Admission::Everybody,
            changes: false,
            actor: ActorRule::Anyone,
            cost: Cost::Request,
            token: TokenUse::Ignored,
            carrier: Carrier::Headers,
            is_long: false,
            is_abandonable: false,
            capability: None,
            refusals: &[],
        }
    }

    /// Reads the graph.
    pub(crate) const fn read(operation: Operation) -> Self {
        let admission = Admission::Callers(Scope::Read);
        Self { operation, admission, token: TokenUse::Awaited, ..Self::open() }
    }

    /// Changes the graph for an actor.
    pub(crate) const fn write(operation: Operation) -> Self {
        let admission = Admission::Callers(Scope::Write);
        let (actor, cost, token) = (ActorRule::Actor, Cost::Change, TokenUse::Joined);
        Self { operation, admission, changes: true, actor, cost, token, ..Self::open() }
    }

    /// Moderates what others have written.
    pub(crate) const fn moderate(operation: Operation) -> Self {
        let admission = Admission::Callers(Scope::Moderate);
        let (actor, token) = (ActorRule::Moderator, TokenUse::Joined);
        Self { operation, admission, changes: true, actor, token, ..Self::open() }
    }

    /// Reads what belongs to no user, for services only.
    pub(crate) const fn services(operation: Operation) -> Self {
        Self { operation, admission: Admission::Services(Scope::Read), ..Self::open() }
    }

    /// Administers the store, without a time limit.
    pub(crate) const fn admin(operation: Operation) -> Self {
        let admission = Admission::Services(Scope::Admin);
        Self { operation, admission, is_long: true, ..Self::open() }
    }

    /// Is made for this user.
    pub(crate) const fn by(self, actor: ActorRule) -> Self {
        Self { actor, ..self }
    }

    /// Takes this from budgets.
    pub(crate) const fn costing(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }

    /// Whether an actor is needed.
    pub(crate) fn acts(self) -> bool {
        matches!(self.actor, ActorRule::Actor | ActorRule::ActorInPath | ActorRule::Author)
    }

    /// Who else than callers without the scope is refused, as the document names it.
    pub(crate) fn audience(self) -> &'static str {
        use ActorRule::{CommentOwner, Viewer, ViewerInPath};
        match (self.admission, self.actor) {
            (Admission::Everybody, _) => "everybody",
            (Admission::Services(_), _) => "services",
            (Admission::Callers(_), ViewerInPath | Viewer | CommentOwner) => "oneself",
            (Admission::Callers(_), _) => "callers",
        }
    }

    /// May also refuse with these codes.
    pub(crate) const fn refusing(self, refusals: &'static [ErrorCode]) -> Self {
        Self { refusals, ..self }
    }

    /// Is refused where the profile lacks a capability.
    pub(crate) const fn needing(self, capability: Capability) -> Self {
        Self { capability: Some(capability), ..self }
    }

    /// Returns a token that covers the one of the request.
    pub(crate) const fn joining_token(self) -> Self {
        Self { token: TokenUse::Joined, ..self }
    }

    /// Belongs to the console.
    pub(crate) const fn in_console(self) -> Self {
        Self { carrier: Carrier::Cookies, ..self }
    }

    /// Has no time limit.
    pub(crate) const fn long(self) -> Self {
        Self { is_long: true, ..self }
    }

    /// Is cancelled when its client disconnects.
    pub(crate) const fn abandonable(self) -> Self {
        Self { is_abandonable: true, ..self }
    }
}
