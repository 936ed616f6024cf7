//! Schemas that can't be derived: those of strings, of pages, of the comments of a tree, and of a body with pairs of ids.

pub mod lines;

use std::borrow::Cow;

use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{KnownFormat, Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::{CheckRequest, Comment, CommentId, CommentNode, CommentVersion, Id, ListEntry, Page, Post, Time};

/// Matches UUIDs.
pub const UUID_PATTERN: &str =
    "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";

/// The largest number of pairs in a bulk check.
const PAIRS_MAX: usize = 1_000;

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String))
}

/// A server adds the pattern of its kind of ids.
impl PartialSchema for Id {
    fn schema() -> RefOr<Schema> {
        string().description(Some("An id: of a user or a post")).into()
    }
}

impl ToSchema for Id {
    fn name() -> Cow<'static, str> {
        "UserId".into()
    }
}

impl PartialSchema for CommentId {
    fn schema() -> RefOr<Schema> {
        string()
            .description(Some("The id of a comment, whatever ids users have: a UUID of version 7"))
            .pattern(Some(UUID_PATTERN))
            .examples([serde_json::json!("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")])
            .into()
    }
}

impl ToSchema for CommentId {}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        string()
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("A time in UTC, RFC 3339 with milliseconds"))
            .examples([serde_json::json!("2026-11-15T08:00:00.123Z")])
            .into()
    }
}

impl ToSchema for Time {
    fn name() -> Cow<'static, str> {
        "Moment".into()
    }
}

/// The content of a file.
#[derive(Clone, Copy, Debug)]
pub struct FileBytes;

impl PartialSchema for FileBytes {
    fn schema() -> RefOr<Schema> {
        string().format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary))).into()
    }
}

impl ToSchema for FileBytes {}

impl PartialSchema for CheckRequest {
    fn schema() -> RefOr<Schema> {
        let id = Ref::from_schema_name(Id::name());
        let pair = ArrayBuilder::new().items(id).min_items(Some(2)).max_items(Some(2));
        let pair = pair.description(Some("A follower and a followee"));
        let pairs = ArrayBuilder::new().items(pair).max_items(Some(PAIRS_MAX));
        ObjectBuilder::new()
            .property("pairs", pairs)
            .required("pairs")
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
            .into()
    }
}

impl ToSchema for CheckRequest {
    fn name() -> Cow<'static, str> {
        "Check".into()
    }
}

/// An entry of a list, with what the document says about pages of it.
pub trait Listed: ToSchema {
    /// The name of the schema of a page.
    const PAGE_NAME: &'static str;
    /// Its description.
    const PAGE_DESCRIPTION: &'static str;
    /// The description of the entries.
    const ITEMS_DESCRIPTION: &'static str;
}

macro_rules! listed {
    ($($entry:ident: $name:literal, $description:literal, $items:literal;)+) => {
        $(impl Listed for $entry {
            const PAGE_NAME: &'static str = $name;
            const PAGE_DESCRIPTION: &'static str = $description;
            const ITEMS_DESCRIPTION: &'static str = $items;
        })+
    };
}

listed! {
    ListEntry: "Users", "A page of a list.", "The entries, newest first.";
    Post: "Posts", "A page of posts.", "The posts, newest first.";
    Comment: "Comments", "A page of comments.", "The comments, tombstones included.";
    CommentNode: "Tree", "Some comments on a post as a tree.", "Comments of one branch, oldest first.";
    CommentVersion: "CommentHistory", "A page of the versions of a comment.", "The versions, oldest first.";
}

impl<T: Listed> PartialSchema for Page<T> {
    fn schema() -> RefOr<Schema> {
        let items = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
        let next = string().description(Some("The cursor of the next page; missing on the last one."));
        ObjectBuilder::new()
            .description(Some(T::PAGE_DESCRIPTION))
            .property("items", items.description(Some(T::ITEMS_DESCRIPTION)))
            .required("items")
            .property("next", next)
            .into()
    }
}

impl<T: Listed> ToSchema for Page<T> {
    fn name() -> Cow<'static, str> {
        T::PAGE_NAME.into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into(), T::schema()));
        T::schemas(schemas);
    }
}

/// The fields of the comment and those of the node, side by side: generators make one flat type of them.
impl PartialSchema for CommentNode {
    fn schema() -> RefOr<Schema> {
        let replies = ArrayBuilder::new().items(Ref::from_schema_name(Self::name()));
        let next =
            string().description(Some("The cursor for the replies after these; missing if there are none."));
        let mut schema = Comment::schema();
        if let RefOr::T(Schema::Object(node)) = &mut schema {
            node.description = Some("A comment within a tree.".to_owned());
            let replies = replies.description(Some("The first replies to it, oldest first."));
            node.properties.insert("replies".to_owned(), replies.into());
            node.required.push("replies".to_owned());
            node.properties.insert("next".to_owned(), next.into());
        }
        schema
    }
}

impl ToSchema for CommentNode {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Comment::schemas(schemas);
    }
}
