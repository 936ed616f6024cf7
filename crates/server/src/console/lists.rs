//! The lists of a user, page by page, and what the pages of a user have in common.

use kinfolk_core::graph::ListEntry;
use kinfolk_core::suggestions::{Suggestion, SuggestionPage};

use super::prelude::*;
use super::users::Action;
use super::{posts, thread};

/// How many entries a page has.
const PAGE_LEN: usize = 50;
/// How many suggestions: there are no more pages of them.
const SUGGESTIONS: usize = 100;

named! {
    /// A list of a user.
    pub(crate) List {
        Following = "following",
        Followers = "followers",
        Friends = "friends",
        Suggestions = "suggestions",
        Common = "common",
        KnownFollowers = "known-followers",
        Posts = "posts",
        Feed = "feed",
        Comments = "comments",
    }
}

impl List {
    /// Its heading.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Following => "Following",
            Self::Followers => "Followers",
            Self::Friends => "Friends",
            Self::Suggestions => "Suggestions",
            Self::Common => "Common followees",
            Self::KnownFollowers => "Known followers",
            Self::Posts => "Posts",
            Self::Feed => "Home feed",
            Self::Comments => "Comments",
        }
    }

    /// What it contains.
    fn about(self) -> &'static str {
        match self {
            Self::Following => "The users that this user follows, the most recent first",
            Self::Followers => "The users that follow this user, the most recent first",
            Self::Friends => {
                "The users that follow this user and are followed back, the most recent followers first"
            }
            Self::Suggestions => {
                "Users that this user may know: followed by many of its followees, but not by the user itself"
            }
            Self::Common => "Users that both this user and the one you act as follow, by id",
            Self::KnownFollowers => "Followees of the user you act as that follow this user, by id",
            Self::Posts => "The posts of this user, newest first",
            Self::Feed => "The posts of this user's followees, newest first",
            Self::Comments => "The active comments of this user, newest first",
        }
    }

    /// What is said where it is empty.
    pub(super) fn nothing(self) -> &'static str {
        match self {
            Self::Following => "This user follows nobody.",
            Self::Followers => "Nobody follows this user.",
            Self::Friends => "Nobody that follows this user is followed back.",
            Self::Suggestions => {
                "There is nobody to suggest: the user's followees follow nobody else, or it follows nobody."
            }
            Self::Common => "There is nobody that both follow.",
            Self::KnownFollowers => "None of its followees follows this user.",
            Self::Posts => "This user has no posts.",
            Self::Feed => "The followees of this user have no posts.",
            Self::Comments => "This user has no comments.",
        }
    }

    /// What the profile must have for it.
    fn capability(self) -> Option<Capability> {
        match self {
            Self::Suggestions => Some(Capability::Suggestions),
            Self::Posts | Self::Feed => Some(Capability::Feeds),
            Self::Comments => Some(Capability::Comments),
            _ => None,
        }
    }

    /// Whether it is about this user and the one that the visitor acts as.
    fn is_about_two(self) -> bool {
        matches!(self, Self::Common | Self::KnownFollowers)
    }

    fn path(self) -> String {
        format!("/console/users/{{id}}/{}", self.name())
    }
}

pub(super) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    List::ALL.iter().fold(routes, |routes, &list| {
        let read = Endpoint::read(Operation::Console).by(ActorRule::ViewerInPath).costing(Cost::Rows);
        let endpoint = read.abandonable().in_console();
        let endpoint = list.capability().map_or(endpoint, |capability| endpoint.needing(capability));
        let show = move |visit: Visit<S>, Ids([id]): Ids<1>, query: Query| show(visit, list, id, query);
        routes.add_page(endpoint, &list.path(), get(show))
    })
}

/// The page of a user.
pub(super) fn address(of: Id) -> String {
    format!("/console/users/{of}")
}

/// Whether an address is that of a list about two users, which is refused to visitors who act as nobody.
pub(super) fn needs_actor(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    List::ALL.iter().any(|list| list.is_about_two() && list.name() == name)
}

/// A page of a list.
struct Found {
    /// How many entries the whole list has, if that is known.
    count: Option<u64>,
    /// When it was computed, if it was not computed now.
    computed_at: Option<kinfolk_core::Timestamp>,
    is_empty: bool,
    entries: Markup,
    next: Option<String>,
}

async fn show<S: Store>(visit: Visit<S>, list: List, id: Id, mut query: Query) -> RestResult {
    let cursor = query.one("cursor")?;
    let page = PageRequest { limit: PAGE_LEN, cursor: cursor.as_deref() };
    let Found { count, computed_at, is_empty, entries, next } = read(&visit, list, id, page).await?;
    let path = format!("{}/{}", address(id), list.name());
    let content = html! {
        (head(&visit, id, Some(list)))
        section.panel aria-labelledby="list-title" {
            div.panel-head {
                h2 #list-title { (list.title()) @if let Some(count) = count { span.count { (markup::number(count)) } } }
                p { (list.about()) @if let Some(at) = computed_at { ". Computed " (markup::time(at)) } }
            }
            @if is_empty { (markup::empty("Nothing here", if cursor.is_some() { "There are no more entries." } else { list.nothing() })) } @else { (entries) }
        }
        (markup::pager(&path, "", cursor.as_deref(), next.as_deref()))
    };
    Ok(visit.page(&format!("{} of {id}", list.title()), Nav::Found, &content))
}

async fn read<S: Store>(visit: &Visit<S>, list: List, id: Id, page: PageRequest<'_>) -> Result<Found> {
    let (graph, seen) = (visit.graph(), &visit.seen);
    let other = || visit.actor.ok_or(Error::ActorRequired);
    let counts = async |pick: fn(&kinfolk_core::graph::Counts) -> u64| {
        let counts = graph.counts(EdgeKind::Follow, &[id], seen).await?;
        Result::Ok(counts.first().map(pick))
    };
    Ok(match list {
        List::Following => {
            let page = graph.following(EdgeKind::Follow, id, page, seen).await?;
            Found { count: counts(|counts| counts.following).await?, ..edge_page(visit, list, id, page) }
        }
        List::Followers => {
            let page = graph.followers(EdgeKind::Follow, id, page, seen).await?;
            Found { count: counts(|counts| counts.followers).await?, ..edge_page(visit, list, id, page) }
        }
        List::Friends => edge_page(visit, list, id, visit.service.friends(visit.reading(), id, page).await?),
        List::Suggestions => {
            let SuggestionPage { items, computed_at } = visit.suggest(SUGGESTIONS).await?;
            let entries = suggestions(visit, id, &items);
            Found {
                count: Some(items.len() as u64),
                computed_at,
                is_empty: items.is_empty(),
                entries,
                next: None,
            }
        }
        List::Common => overlap_page(visit.service.common(visit.reading(), &[other()?, id], page).await?),
        List::KnownFollowers => {
            // The endpoint admits the viewer of the path; the console's callers may see what any user sees.
            let viewer = visit.caller.viewer(Some(other()?))?;
            overlap_page(visit.service.known_followers(visit.reading(), viewer, id, page).await?)
        }
        List::Posts => post_page(visit.feeds()?.posts_by(id, page, seen).await?, false),
        List::Feed => post_page(visit.feeds()?.feed(id, page, seen).await?, true),
        List::Comments => {
            let page = visit.comments()?.comments_by(id, page, visit.reader(), seen).await?;
            let (is_empty, entries) = (page.items.is_empty(), thread::flat(&page.items));
            Found { count: None, computed_at: None, is_empty, entries, next: page.next }
        }
    })
}

fn edge_page<S: Store>(visit: &Visit<S>, list: List, of: Id, page: kinfolk_core::graph::ListPage) -> Found {
    let (is_empty, entries) = (page.items.is_empty(), edges(visit, of, list, &page.items));
    Found { count: None, computed_at: None, is_empty, entries, next: page.next }
}

fn overlap_page(page: kinfolk_core::graph::OverlapPage) -> Found {
    let entries = html! {
        ul.rows role="list" { @for id in &page.items { li { div.row-main { (markup::user(*id)) } } } }
    };
    Found {
        count: Some(page.count),
        computed_at: None,
        is_empty: page.items.is_empty(),
        entries,
        next: page.next,
    }
}

fn post_page(page: kinfolk_core::feeds::PostPage, with_authors: bool) -> Found {
    let (is_empty, entries) = (page.items.is_empty(), posts::list(&page.items, with_authors));
    Found { count: None, computed_at: None, is_empty, entries, next: page.next }
}

/// What every page of a user begins with: its id, the links to its lists, and the button to act as it.
pub(super) fn head<S: Store>(visit: &Visit<S>, id: Id, current: Option<List>) -> Markup {
    let is_other = visit.actor.is_some_and(|actor| actor != id);
    let is_shown = |list: &&List| {
        list.capability().is_none_or(|capability| visit.has(capability)) && (is_other || !list.is_about_two())
    };
    html! {
        div.page-head {
            div {
                p.eyebrow { "User" }
                div.page-head-title {
                    h1.id { (id) }
                    (markup::copy(&id.to_string()))
                    @if visit.actor == Some(id) { span.badge.badge-info { "Acting as this user" } }
                }
            }
            @if visit.actor != Some(id) {
                form method="post" action="/console/act-as" {
                    input type="hidden" name="next" value=(visit.here);
                    input type="hidden" name="user" value=(id);
                    button.button { "Act as this user" }
                }
            }
        }
        nav.subnav aria-label="This user" {
            a href=(address(id)) aria-current=[current.is_none().then_some("page")] { "Profile" }
            @for list in List::ALL.iter().filter(is_shown) {
                a href={ (address(id)) "/" (list.name()) } aria-current=[(current == Some(*list)).then_some("page")] { (list.title()) }
            }
        }
    }
}

/// Users with the time of their edge, and what the visitor may do with it.
pub(super) fn edges<S: Store>(visit: &Visit<S>, of: Id, list: List, entries: &[ListEntry]) -> Markup {
    html! {
        ul.rows role="list" {
            @for entry in entries {
                li {
                    div.row-main { (markup::user(entry.id)) }
                    div.row-end {
                        (markup::time(entry.since))
                        @if visit.acts_as(of) {
                            @if list == List::Followers {
                                (row_action(visit, entry.id, "Remove", format!("{}/followers/{}/remove", address(of), entry.id)))
                            } @else {
                                (row_action(visit, entry.id, "Unfollow", format!("{}/unfollow", address(entry.id))))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A button of a row.
fn row_action<S: Store>(visit: &Visit<S>, about: Id, label: &str, address: String) -> Markup {
    let class = "button button-small";
    Action { here: &visit.here, actor: visit.actor, address, label, about: Some(about), class }.render()
}

/// Suggested users, with those through whom they come.
pub(super) fn suggestions<S: Store>(visit: &Visit<S>, of: Id, found: &[Suggestion]) -> Markup {
    html! {
        ul.rows role="list" {
            @for suggestion in found {
                li {
                    div.row-main {
                        (markup::user(suggestion.id))
                        p.row-note {
                            (markup::count(suggestion.mutual_count.into(), "followee follows", "followees follow")) " this user"
                            @for (at, via) in suggestion.via.iter().enumerate() {
                                (if at == 0 { ", such as " } else { ", " }) (markup::user(*via))
                            }
                        }
                    }
                    div.row-end {
                        span title="Adamic-Adar score" { "score " (format!("{:.2}", suggestion.score.value())) }
                        @if visit.acts_as(of) {
                            (row_action(visit, suggestion.id, "Follow", format!("{}/follow", address(suggestion.id))))
                            (row_action(visit, suggestion.id, "Dismiss", format!("{}/suggestions/{}/dismiss", address(of), suggestion.id)))
                        }
                    }
                }
            }
        }
    }
}
