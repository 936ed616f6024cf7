//! The overview: what is served here, its figures, warnings, and live charts, which a script draws.

use kinfolk_core::IdKind;

use super::live::State;
use super::prelude::*;
use super::warnings::Warning;
use crate::administration::{StateColumn, StateTable};

/// Tables with more rows are folded.
const ROWS_SHOWN: usize = 24;

pub(super) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let endpoint = Endpoint::services(Operation::Console).in_console();
    routes.add_page(endpoint, super::ROOT, get(overview::<S>)).add_page(
        endpoint,
        "/console/",
        get(overview::<S>),
    )
}

async fn overview<S: Store>(visit: Visit<S>) -> Response {
    let State { figures, warnings, .. } = State::of(&visit);
    let settings = &visit.shared.console.settings;
    let ids = match visit.id_kind() {
        IdKind::Integer => "integers",
        IdKind::Uuid => "UUIDs",
    };
    let content = html! {
        div.page-head {
            div {
                div.page-head-title {
                    h1 { "Overview" }
                    span.badge.badge-ok data-when="well" hidden[!warnings.is_empty()] { span.dot.dot-live {} "Ready" }
                    span.badge.badge-warn data-when="warned" hidden[warnings.is_empty()] { span.dot {} "Needs attention" }
                }
                p.muted { "Kinfolk stores follows, home feeds and comment threads. Look up a user, a post or a comment above." }
                dl.facts {
                    div { dt { "Version" } dd { (settings.version) } }
                    div { dt { "Profile" } dd { (settings.profile) } }
                    div { dt { "Ids" } dd { (ids) } }
                    div { dt { "Epoch" } dd.id { (format!("{:x}", visit.service.epoch().0)) } }
                    div { dt { "Authentication" } dd { (if visit.service.access.is_open() { "off" } else { "on" }) } }
                }
            }
            p.live data-live-state role="status" { span.dot {} "Connecting" }
        }
        ul.warnings data-warnings role="list" aria-label="Warnings" aria-live="polite" {
            @for Warning { title, advice } in &warnings {
                li.notice.notice-warn { div { strong { (title) } p { (advice) } } }
            }
        }
        div.grid data-live="/console/live.json" {
            dl.stats.stats-four {
                @for figure in &figures {
                    div { dt { (figure.label) } dd data-figure=(figure.name) { (figure.text) } }
                }
            }
            (charts())
            (operations())
            @for table in visit.administration().tables() { @if !table.rows.is_empty() { (state_table(&table)) } }
        }
    };
    visit.page_with_script("Overview", Nav::Overview, &content, Some("overview.js"))
}

fn charts() -> Markup {
    html! {
        div.grid.grid-two {
            section.panel aria-labelledby="rate-title" {
                div.panel-head { h2 #rate-title { "Requests per second" } ul.legend data-legend role="list" {} }
                figure.chart data-chart="rate" { svg role="img" aria-label="Requests per second in the last ten minutes" {} }
            }
            section.panel aria-labelledby="latency-title" {
                div.panel-head { h2 #latency-title { "Latency" } ul.legend data-legend role="list" {} }
                figure.chart data-chart="latency" { svg role="img" aria-label="Latency in the last ten minutes" {} }
            }
        }
    }
}

fn operations() -> Markup {
    html! {
        section.panel aria-labelledby="operations-title" {
            div.panel-head { h2 #operations-title { "Operations" } p { "Now; the small curve shows the last ten minutes" } }
            div.table-wrap role="group" aria-labelledby="operations-title" tabindex="0" {
                table.table {
                    thead {
                        tr {
                            th scope="col" { "Operation" }
                            th.optional scope="col" { "Protocols" }
                            th.num scope="col" { "Rate" }
                            th.num scope="col" { "p50" }
                            th.num scope="col" { "p99" }
                            th.num scope="col" { "Failures" }
                            th.tight scope="col" { "Rate, 10 min" }
                        }
                    }
                    tbody data-operations {
                        tr { td.muted colspan="7" { "Waiting for the first sample. It takes a few seconds." } }
                    }
                }
            }
        }
    }
}

/// A table about the deployment; a long one is folded.
fn state_table(StateTable { title, columns, rows }: &StateTable) -> Markup {
    let id = format!("state-{}", title.to_ascii_lowercase().replace(' ', "-"));
    let heading = html! { h2 id=(id) { (title) " " span.count { (markup::number(rows.len() as u64)) } } };
    let table = html! {
        div.table-wrap role="group" aria-labelledby=(id) tabindex="0" {
            table.table {
                thead {
                    tr {
                        @for StateColumn { name, is_number } in *columns {
                            th scope="col" class=[is_number.then_some("num")] { (capitalized(name)) }
                        }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for (StateColumn { is_number, .. }, text) in columns.iter().zip(row) {
                                td class=[is_number.then_some("num")] { (text) }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        section.panel aria-labelledby=(id) {
            @if rows.len() > ROWS_SHOWN {
                details.more { summary { (heading) } (table) }
            } @else {
                div.panel-head { (heading) p { "When this page was loaded" } }
                (table)
            }
        }
    }
}

fn capitalized(name: &str) -> String {
    let mut characters = name.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}
