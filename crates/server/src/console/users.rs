//! A user: counts, the beginning of each of its lists, the picture of its neighbourhood, and what the visitor may do with it. The
//! whole lists are in `lists`, the data of the picture in `picture`.

use kinfolk_core::PageRequest;
use kinfolk_core::comments::Comment;
use kinfolk_core::feeds::Post;
use kinfolk_core::graph::{Counts, ListEntry, Overlap, Relationship, Side, UserSet};
use kinfolk_core::suggestions::Suggestion;

use super::lists::{self, List};
use super::prelude::*;
use super::{posts, thread};

/// How many entries of each list are shown.
const SHOWN: usize = 5;

pub(super) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let user =
        Endpoint::read(Operation::Console).by(ActorRule::ViewerInPath).costing(Cost::Rows).abandonable();
    let write = |operation| Endpoint::write(operation).in_console();
    let dismiss = write(Operation::Dismiss).by(ActorRule::ActorInPath).needing(Capability::Suggestions);
    let remove = write(Operation::RemoveFollower).by(ActorRule::ActorInPath);
    routes
        .add_page(user.in_console(), "/console/users/{id}", get(show::<S>))
        .add_page(write(Operation::Follow), "/console/users/{id}/follow", post(follow::<S>))
        .add_page(write(Operation::Unfollow), "/console/users/{id}/unfollow", post(unfollow::<S>))
        .add_page(remove, "/console/users/{id}/followers/{other}/remove", post(remove_follower::<S>))
        .add_page(dismiss, "/console/users/{id}/suggestions/{other}/dismiss", post(dismiss_suggestion::<S>))
}

/// What the page shows of a user. A part that could not be read does not take the others with it.
struct Profile {
    counts: Counts,
    following: Result<Vec<ListEntry>>,
    followers: Result<Vec<ListEntry>>,
    friends: Result<Vec<ListEntry>>,
    suggestions: Result<Vec<Suggestion>>,
    posts: Result<Vec<Post>>,
    feed: Result<Vec<Post>>,
    comments: Result<Vec<Comment>>,
}

/// The relationship to the user that the visitor acts as.
struct Relation {
    actor: Id,
    relationship: Relationship,
    common: Result<Overlap>,
    known: Result<Overlap>,
}

async fn read_profile<S: Store>(visit: &Visit<S>, of: Id) -> Result<Profile> {
    let (graph, seen) = (visit.graph(), &visit.seen);
    let page = PageRequest { limit: SHOWN, cursor: None };
    let counts = graph.counts(EdgeKind::Follow, &[of], seen).await?;
    let suggestions = async { Ok(visit.suggest(SHOWN).await?.items) };
    let posts = async { Ok(visit.feeds()?.posts_by(of, page, seen).await?.items) };
    let feed = async { Ok(visit.feeds()?.feed(of, page, seen).await?.items) };
    let comments = async { Ok(visit.comments()?.comments_by(of, page, visit.reader(), seen).await?.items) };
    let (following, followers, friends, suggestions, posts, feed, comments) = tokio::join!(
        graph.following(EdgeKind::Follow, of, page, seen),
        graph.followers(EdgeKind::Follow, of, page, seen),
        visit.service.friends(visit.reading(), of, page),
        suggestions,
        posts,
        feed,
        comments,
    );
    Ok(Profile {
        counts: counts.into_iter().next().unwrap_or_default(),
        following: following.map(|page| page.items),
        followers: followers.map(|page| page.items),
        friends: friends.map(|page| page.items),
        suggestions,
        posts,
        feed,
        comments,
    })
}

async fn read_relation<S: Store>(visit: &Visit<S>, of: Id) -> Result<Option<Relation>> {
    let Some(actor) = visit.actor.filter(|&actor| actor != of) else { return Ok(None) };
    let found = visit.graph().relationships(EdgeKind::Follow, actor, &[of], &visit.seen).await?;
    let Some(relationship) = found.into_iter().next() else { return Ok(None) };
    let followees = UserSet { side: Side::Following, of: actor };
    let common = [followees, UserSet { side: Side::Following, of }];
    let known = [followees, UserSet { side: Side::Followers, of }];
    let (common, known) = tokio::join!(
        visit.service.overlap(visit.reading(), &common, SHOWN),
        visit.service.overlap(visit.reading(), &known, SHOWN),
    );
    Ok(Some(Relation { actor, relationship, common, known }))
}

async fn show<S: Store>(visit: Visit<S>, Ids([id]): Ids<1>, mut query: Query) -> RestResult {
    let profile = read_profile(&visit, id).await?;
    let relation = read_relation(&visit, id).await?;
    let checked = match query.id("check", visit.id_kind())? {
        Some(other) => Some(check(&visit, id, other).await?),
        None => None,
    };
    let content = html! {
        (lists::head(&visit, id, None))
        (figures(id, profile.counts))
        @if let Some(relation) = &relation { (relation_panel(&visit, id, relation)) }
        (picture(id))
        @if visit.acts_as(id) && visit.has(Capability::Feeds) { (posts::new_post(&visit.here, id)) }
        div.grid.grid-two {
            (section(List::Following, id, &profile.following, |entries| lists::edges(&visit, id, List::Following, entries)))
            (section(List::Followers, id, &profile.followers, |entries| lists::edges(&visit, id, List::Followers, entries)))
            (section(List::Friends, id, &profile.friends, |entries| lists::edges(&visit, id, List::Friends, entries)))
            (section(List::Suggestions, id, &profile.suggestions, |found| lists::suggestions(&visit, id, found)))
            @if visit.has(Capability::Feeds) {
                (section(List::Posts, id, &profile.posts, |posts| posts::list(posts, false)))
                (section(List::Feed, id, &profile.feed, |posts| posts::list(posts, true)))
            }
            @if visit.has(Capability::Comments) {
                (section(List::Comments, id, &profile.comments, thread::flat))
            }
            (check_panel(id, checked.as_ref()))
        }
    };
    Ok(visit.page_with_script(&format!("User {id}"), Nav::Found, &content, Some("graph.js")))
}

fn figures(id: Id, counts: Counts) -> Markup {
    html! {
        dl.stats {
            div { dt { "Following" } dd { a href={ "/console/users/" (id) "/following" } { (markup::number(counts.following)) } } }
            div { dt { "Followers" } dd { a href={ "/console/users/" (id) "/followers" } { (markup::number(counts.followers)) } } }
        }
    }
}

/// The beginning of a list, with a link to all of it.
fn section<T>(list: List, of: Id, found: &Result<Vec<T>>, entries: impl FnOnce(&[T]) -> Markup) -> Markup {
    html! {
        section.panel aria-labelledby={ "section-" (list.name()) } {
            div.panel-head {
                h2 id={ "section-" (list.name()) } { (list.title()) }
                @if found.as_ref().is_ok_and(|found| !found.is_empty()) {
                    p { a href={ "/console/users/" (of) "/" (list.name()) } aria-label={ "See all: " (list.title()) } { "See all" } }
                }
            }
            @match found {
                Ok(found) if found.is_empty() => (markup::empty("Nothing here", list.nothing())),
                Ok(found) => (entries(found)),
                Err(error) => (markup::unreadable(error)),
            }
        }
    }
}

/// The picture, which a script draws.
fn picture(id: Id) -> Markup {
    html! {
        section.panel aria-labelledby="graph-title" {
            div.panel-head {
                h2 #graph-title { "Neighbourhood" }
                p { "Up to 150 users around this one. Larger circles have more followers." }
            }
            figure.graph data-graph={ "/console/users/" (id) "/graph.json" } data-users="/console/users/" {
                div.graph-stage {
                    noscript { p.graph-message { "The picture needs JavaScript. The lists below show the same users." } }
                }
                figcaption.graph-foot {
                    ul.legend role="list" aria-label="Colours" {
                        li { span.swatch.kind-center {} "This user" }
                        li { span.swatch.kind-friend {} "Friend" }
                        li { span.swatch.kind-following {} "Followee" }
                        li { span.swatch.kind-follower {} "Follower" }
                        li { span.swatch.swatch-hollow.kind-suggestion {} "Suggestion" }
                    }
                    span.graph-hint { "Drag to move, Ctrl + wheel or pinch to zoom" }
                    span role="status" data-graph-note {}
                }
                details.more {
                    summary { "The same as a table" }
                    div.table-wrap role="group" aria-label="Users in the picture" tabindex="0" {
                        table.table {
                            thead {
                                tr {
                                    th scope="col" { "User" }
                                    th scope="col" { "Relation" }
                                    th.num scope="col" { "Followers" }
                                    th.num scope="col" { "Following" }
                                }
                            }
                            tbody data-graph-table {}
                        }
                    }
                }
            }
        }
    }
}

/// What the user that the visitor acts as has to do with this one.
fn relation_panel<S: Store>(visit: &Visit<S>, id: Id, relation: &Relation) -> Markup {
    let Relation { actor, relationship, common, known } = relation;
    html! {
        section.panel aria-label="Relationship" {
            div.relation {
                p {
                    @if relationship.mutual() { span.badge.badge-ok { "Friends" } " " }
                    @match relationship.since {
                        Some(since) => { (markup::user(*actor)) " follows this user since " (markup::time(since)) }
                        None => { (markup::user(*actor)) " does not follow this user" }
                    }
                    @if relationship.followed_by { ", and is followed back." } @else { ", and is not followed by it." }
                }
                @if visit.writer().is_some() {
                    (follow_button(visit, id, relationship.following()))
                }
            }
            p.panel-foot {
                (overlap(common, "Both follow", &format!("/console/users/{id}/common")))
                " · "
                (overlap(known, "Known followers:", &format!("/console/users/{id}/known-followers")))
            }
        }
    }
}

fn follow_button<S: Store>(visit: &Visit<S>, id: Id, is_following: bool) -> Markup {
    let (verb, label, class) = match is_following {
        true => ("unfollow", "Unfollow", "button"),
        false => ("follow", "Follow", "button button-primary"),
    };
    let address = format!("{}/{verb}", lists::address(id));
    Action { here: &visit.here, actor: visit.actor, address, label, about: None, class }.render()
}

fn overlap(found: &Result<Overlap>, label: &str, address: &str) -> Markup {
    html! {
        (label) " "
        @match found {
            Ok(found) => {
                a href=(address) { (markup::number(found.count)) }
                @for (at, id) in found.ids.iter().enumerate() { (if at == 0 { ": " } else { ", " }) (markup::user(*id)) }
                @if found.count > found.ids.len() as u64 { "…" }
            }
            Err(_) => "unknown",
        }
    }
}

/// A form with one button.
pub(super) struct Action<'a> {
    /// The page to come back to.
    pub(super) here: &'a str,
    /// The user that it is done as.
    pub(super) actor: Option<Id>,
    pub(super) address: String,
    pub(super) label: &'a str,
    /// The user that it is about, where several buttons have the same label.
    pub(super) about: Option<Id>,
    pub(super) class: &'a str,
}

impl Action<'_> {
    pub(super) fn render(&self) -> Markup {
        let Self { here, actor, address, label, about, class } = self;
        html! {
            form method="post" action=(address) {
                input type="hidden" name="next" value=(here);
                (markup::acting_as(*actor))
                button class=(class) { (label) @if let Some(id) = about { span.hidden-visually { " " (id) } } }
            }
        }
    }
}

/// The result of a check, both ways.
struct Checked {
    other: Id,
    relationship: Relationship,
}

async fn check<S: Store>(visit: &Visit<S>, id: Id, other: Id) -> Result<Checked> {
    let graph = visit.graph();
    let found = graph.relationships(EdgeKind::Follow, id, &[other], &visit.seen).await?;
    let relationship = found.into_iter().next().ok_or(Error::TimedOut)?;
    Ok(Checked { other, relationship })
}

fn check_panel(id: Id, checked: Option<&Checked>) -> Markup {
    let answer =
        |yes: bool| html! { @if yes { span.badge.badge-ok { "Yes" } } @else { span.badge { "No" } } };
    html! {
        section.panel #check aria-labelledby="section-check" {
            div.panel-head { h2 #section-check { "Does it follow…?" } }
            div.panel-body {
                form.sentence method="get" action={ "/console/users/" (id) "#check" } {
                    label for="check-other" { "This user and" }
                    input.id #check-other name="check" placeholder="User id" autocomplete="off" spellcheck="false" required
                        value=[checked.map(|checked| checked.other)];
                    button.button { "Check" }
                }
                @if let Some(Checked { other, relationship }) = checked {
                    div role="status" {
                        ul.answers role="list" {
                            li {
                                (answer(relationship.following())) span.linked-text { (id) " follows " (markup::user(*other)) }
                                @if let Some(since) = relationship.since { span.muted { "since " (markup::time(since)) } }
                            }
                            li { (answer(relationship.followed_by)) span.linked-text { (markup::user(*other)) " follows " (id) } }
                        }
                    }
                }
            }
        }
    }
}

async fn follow<S: Store>(visit: Visit<S>, Ids([target]): Ids<1>, mut form: Form) -> RestResult {
    let written = visit.graph().follow(EdgeKind::Follow, visit.actor()?, target).await?;
    Ok(visit.written(&mut form, &lists::address(target), Done::Followed, written.position))
}

async fn unfollow<S: Store>(visit: Visit<S>, Ids([target]): Ids<1>, mut form: Form) -> RestResult {
    let written = visit.graph().unfollow(EdgeKind::Follow, visit.actor()?, target).await?;
    Ok(visit.written(&mut form, &lists::address(target), Done::Unfollowed, written.position))
}

async fn remove_follower<S: Store>(
    visit: Visit<S>,
    Ids([of, follower]): Ids<2>,
    mut form: Form,
) -> RestResult {
    let written = visit.graph().remove_follower(EdgeKind::Follow, visit.actor()?, follower).await?;
    Ok(visit.written(&mut form, &lists::address(of), Done::FollowerRemoved, written.position))
}

async fn dismiss_suggestion<S: Store>(
    visit: Visit<S>,
    Ids([of, target]): Ids<2>,
    mut form: Form,
) -> RestResult {
    let written = visit.suggestions()?.dismiss(visit.actor()?, target).await?;
    Ok(visit.written(&mut form, &lists::address(of), Done::Dismissed, written.position))
}
