//! The change log as it grows. A script shows the events of a stream, which is the one that programs read.

use super::prelude::*;
use crate::rest::stream::changes_stream;

/// How many earlier changes a page begins with.
const EARLIER: u64 = 100;

/// The types of changes that the filter offers.
const TYPES: &str = "follow unfollow dismiss undismiss post post_deleted comment comment_edited comment_deleted comment_removed \
                     comment_purged comments_locked comments_unlocked imported";

pub(super) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let page = Endpoint::services(Operation::Console).in_console();
    let stream = Endpoint::services(Operation::ChangesStream).long().abandonable().in_console();
    routes.add_page(page, "/console/changes", get(changes::<S>)).add_page(
        stream,
        "/console/changes/stream",
        get(changes_stream::<S>),
    )
}

async fn changes<S: Store>(visit: Visit<S>) -> RestResult {
    let after = visit.service.token(visit.service.log_before_end(EARLIER).await?);
    let content = html! {
        div.page-head {
            div { h1 { "Changes" } p.muted { "The change log as it is written, newest first." } }
        }
        section.panel aria-label="Live changes" data-stream={ "/console/changes/stream?after=" (after) } data-types=(TYPES)
            data-users="/console/users/" data-posts="/console/posts/" {
            div.toolbar {
                div.toolbar-row {
                    p.live data-stream-state role="status" { span.dot {} "Connecting" }
                    div.field {
                        label for="of-user" { "Only user" }
                        input.id #of-user data-user type="search" placeholder="Any id" autocomplete="off" spellcheck="false";
                    }
                    button.button type="button" data-pause aria-pressed="false" { "Pause" }
                }
                fieldset {
                    legend.hidden-visually { "Kinds of changes" }
                    div.toolbar-row {
                        div.chips data-chips {}
                        div.button-row {
                            button.button.button-small.button-quiet type="button" data-all { "All" }
                            button.button.button-small.button-quiet type="button" data-none { "None" }
                        }
                    }
                }
                p.hidden-visually data-summary aria-live="polite" {}
            }
            p.empty data-log-empty { "Connecting to the change log." }
            ol.log data-log role="list" {}
            noscript {
                p.empty { "The live view needs JavaScript. Read the log with " code { "kinfolk changes" } " or " code { "GET /v1/changes" } "." }
            }
        }
    };
    Ok(visit.page_with_script("Changes", Nav::Changes, &content, Some("changes.js")))
}
