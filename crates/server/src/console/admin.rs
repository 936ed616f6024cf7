//! Administration: jobs, downloads, API keys, effective settings. The jobs are those that programs run over REST; a script shows how
//! far they are.

use super::EffectiveSetting;
use super::prelude::*;
use crate::access::KeyEntry;
use crate::rest::admin::{backup, compact::compact, export_file, import_edges, suggest::suggest, verify};

pub(super) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let page = Endpoint { is_long: false, ..Endpoint::admin(Operation::Console) };
    let job = |operation, capability| Endpoint::admin(operation).needing(capability).in_console();
    let import = job(Operation::Import, Capability::Imports).joining_token();
    let everyone = job(Operation::Suggest, Capability::SuggestionRuns).abandonable();
    routes
        .add_page(page.in_console(), "/console/admin", get(admin::<S>))
        .add_page(
            job(Operation::Verify, Capability::Verification),
            "/console/admin/verify",
            post(verify::<S>),
        )
        .add_page(everyone, "/console/admin/suggest", post(suggest::<S>))
        .add_page(
            job(Operation::Compact, Capability::Compaction),
            "/console/admin/compact",
            post(compact::<S>),
        )
        .add_page(import, "/console/admin/import", post(import_edges::<S>))
        .add_page(job(Operation::Export, Capability::Exports), "/console/admin/export", get(export_file::<S>))
        .add_page(job(Operation::Backup, Capability::Backups), "/console/admin/backup", get(backup::<S>))
}

async fn admin<S: Store>(visit: Visit<S>) -> Response {
    let content = html! {
        div.page-head {
            div {
                h1 { "Administration" }
                p.muted { "Keep this page open until a job has reported its result." }
            }
        }
        div.grid.grid-three.grid-stretch {
            (verify_job(&visit))
            (suggest_job(&visit))
            (compact_job(&visit))
        }
        div.grid.grid-two.grid-stretch {
            (import_job(&visit))
            (downloads(&visit))
        }
        (keys(&visit.service.access.key_entries(), visit.service.access.is_open()))
        (settings(&visit.shared.console.settings.settings))
    };
    visit.page_with_script("Administration", Nav::Admin, &content, Some("admin.js"))
}

/// A job that people start.
struct Job<'a> {
    title: &'a str,
    about: &'a str,
    action: &'a str,
    button: &'a str,
    is_available: bool,
    can_stop: bool,
}

impl Job<'_> {
    fn render(&self, fields: &Markup) -> Markup {
        let Self { title, about, action, button, is_available, can_stop } = *self;
        html! {
            section.panel.job.job-unavailable[!is_available] aria-label=(title) {
                div.panel-head { h2 { (title) } @if !is_available { span.badge { "Unavailable" } } }
                form.panel-body method="post" action=(action) data-job {
                    p { (about) }
                    @if is_available { (fields) } @else { p.hint { strong { "This profile does not offer it." } } }
                    div.button-row {
                        button.button.button-primary[is_available] disabled[!is_available] { (button) }
                        @if can_stop { button.button type="button" data-stop hidden { "Stop" } }
                    }
                    div.job-output data-output hidden {}
                }
            }
        }
    }
}

fn verify_job<S: Store>(visit: &Visit<S>) -> Markup {
    let job = Job {
        title: "Verify",
        about: "Compares followers, counts, feeds and comments with the edges, posts and comments that they derive from.",
        action: "/console/admin/verify",
        button: "Verify",
        is_available: visit.has(Capability::Verification),
        can_stop: false,
    };
    job.render(&checkbox("repair", "Repair differences"))
}

fn suggest_job<S: Store>(visit: &Visit<S>) -> Markup {
    let job = Job {
        title: "Suggestions for everyone",
        about: "Computes and stores suggestions for all users. A stopped run resumes.",
        action: "/console/admin/suggest",
        button: "Compute",
        is_available: visit.has(Capability::SuggestionRuns),
        can_stop: true,
    };
    job.render(&html! {})
}

fn compact_job<S: Store>(visit: &Visit<S>) -> Markup {
    let job = Job {
        title: "Compact",
        about: "Merges files, and erases the text of purged comments from them.",
        action: "/console/admin/compact",
        button: "Compact",
        is_available: visit.has(Capability::Compaction),
        can_stop: false,
    };
    job.render(&html! {})
}

fn import_job<S: Store>(visit: &Visit<S>) -> Markup {
    let job = Job {
        title: "Import edges",
        about: "Adds all edges of a file, or none: lines of follower, followee and optionally the time.",
        action: "/console/admin/import",
        button: "Import",
        is_available: visit.has(Capability::Imports),
        can_stop: false,
    };
    job.render(&html! {
        div.form {
            div.field { label for="file" { "File" } input #file type="file" name="file" data-format="format" required; }
            div.field { label for="format" { "Format" } (formats("format")) }
            (checkbox("skip_invalid", "Skip and count malformed lines"))
            (checkbox("no_limit", "Keep edges over the following limit"))
        }
    })
}

fn downloads<S: Store>(visit: &Visit<S>) -> Markup {
    html! {
        section.panel.job aria-label="Downloads" {
            div.panel-head { h2 { "Downloads" } }
            div.panel-body {
                div.form {
                    p { "As of now, while the server keeps working. A file that arrives to its end is complete." }
                    @if visit.has(Capability::Backups) {
                        div.button-row { a.button.button-primary href="/console/admin/backup" { "Download a backup" } }
                    } @else {
                        p.hint { "This profile has no backups of its own: back up its databases." }
                    }
                }
                @if visit.has(Capability::Exports) {
                    form.form action="/console/admin/export" {
                        div.grid.grid-two {
                            div.field {
                                label for="content" { "Export" }
                                select #content name="content" {
                                    option value="edges" { "Edges" }
                                    @if visit.has(Capability::Comments) { option value="comments" { "Comments" } }
                                }
                            }
                            div.field { label for="export-format" { "Format" } (formats("export-format")) }
                        }
                        div.button-row { button.button { "Download the export" } }
                    }
                }
            }
        }
    }
}

fn checkbox(name: &str, label: &str) -> Markup {
    html! {
        label.check for=(name) { input type="checkbox" id=(name) name=(name) value="true"; span { (label) } }
    }
}

fn formats(id: &str) -> Markup {
    html! {
        select id=(id) name="format" {
            option value="csv" { "CSV" }
            option value="csv.gz" { "CSV, gzip" }
            option value="csv.zst" { "CSV, zstd" }
            option value="parquet" { "Parquet" }
        }
    }
}

fn keys(entries: &[KeyEntry], is_open: bool) -> Markup {
    html! {
        section.panel aria-labelledby="keys-title" {
            div.panel-head {
                h2 #keys-title { "API keys " span.count { (entries.len()) } }
                p { "Managed with " code { "kinfolk keys" } }
            }
            @if is_open {
                (markup::empty("Authentication is off", "Every process on this machine has all permissions, and no other machine can connect."))
            } @else if entries.is_empty() {
                (markup::empty("No API keys", "Only end users with tokens are admitted."))
            } @else {
                div.table-wrap role="group" aria-labelledby="keys-title" tabindex="0" {
                    table.table {
                        thead {
                            tr {
                                th scope="col" { "Name" }
                                th scope="col" { "Id" }
                                th scope="col" { "Scopes" }
                                th scope="col" { "Created" }
                                th scope="col" { "Expires" }
                                th.num scope="col" { "Limit" }
                            }
                        }
                        tbody { @for entry in entries { (key(entry)) } }
                    }
                }
            }
        }
    }
}

fn key(entry: &KeyEntry) -> Markup {
    html! {
        tr {
            th scope="row" { (entry.name) }
            td.id { (entry.id) }
            td {
                @for scope in &entry.scopes {
                    span.badge.badge-warn[*scope == Scope::Admin] { (scope.name()) } " "
                }
            }
            td { @if let Some(at) = entry.created_at { (markup::time(at)) } }
            td { @if let Some(at) = entry.not_after { (markup::time(at)) } @else { span.muted { "never" } } }
            td.num { @if let Some(limit) = &entry.limit { (limit) } @else { span.muted { "default" } } }
        }
    }
}

fn settings(settings: &[EffectiveSetting]) -> Markup {
    html! {
        section.panel aria-labelledby="settings-title" {
            div.panel-head {
                h2 #settings-title { "Settings " span.count { (settings.len()) } }
                div.form-row {
                    span.hint role="status" data-filter-count="settings" {}
                    label.hidden-visually for="filter" { "Filter settings" }
                    input #filter type="search" placeholder="Filter" data-filter="settings" autocomplete="off";
                }
            }
            div.table-wrap role="group" aria-labelledby="settings-title" tabindex="0" {
                table.table #settings {
                    thead { tr { th scope="col" { "Key" } th scope="col" { "Value" } th scope="col" { "Origin" } } }
                    tbody {
                        @for EffectiveSetting { key, value, origin } in settings {
                            tr {
                                th.id scope="row" { (key) }
                                td.id.value { (value) }
                                td class=[(origin == "default").then_some("muted")] { (origin) }
                            }
                        }
                    }
                }
            }
        }
    }
}
