//! The files that pages load: stylesheet, scripts, logo. They are part of the binary, and anybody may read them.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;

use super::page;
use super::prelude::*;
use crate::rest::entity_tag::{Cached, EntityTag};

struct Asset {
    path: &'static str,
    media_type: &'static str,
    content: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of the folder.
macro_rules! asset {
    ($name:literal, $media_type:expr) => {
        Asset {
            path: concat!("/console/assets/", $name),
            media_type: $media_type,
            content: include_str!(concat!("assets/", $name)),
        }
    };
}

static ASSETS: &[Asset] = &[
    asset!("console.css", "text/css; charset=utf-8"),
    asset!("console.js", SCRIPT),
    asset!("overview.js", SCRIPT),
    asset!("graph.js", SCRIPT),
    asset!("changes.js", SCRIPT),
    asset!("admin.js", SCRIPT),
    asset!("thread.js", SCRIPT),
    asset!("logo.svg", "image/svg+xml"),
];

/// Adds a route for each file.
pub(super) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    ASSETS.iter().fold(routes, |routes, asset| {
        let respond = move |cached: Cached| async move { respond(asset, &cached) };
        routes.add_page(Endpoint::open().in_console(), asset.path, get(respond))
    })
}

fn respond(asset: &'static Asset, cached: &Cached) -> Response {
    let content = Bytes::from_static(asset.content.as_bytes());
    let tag = EntityTag::of(&content);
    let mut response = cached.respond_with(&tag, || {
        ([(CONTENT_TYPE, HeaderValue::from_static(asset.media_type))], content).into_response()
    });
    page::protect(&mut response);
    response
}
