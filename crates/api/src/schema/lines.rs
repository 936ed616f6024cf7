//! Schemas of responses that are lines: progress of jobs, and the events of the change log. Each is a string for OpenAPI, whose
//! `contentSchema` is that of one line or event.

use std::borrow::Cow;
use std::marker::PhantomData;

use serde_json::json;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{ObjectBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::string;
use crate::{
    Change, CompactOutcome, ImportOutcome, JobLine, Problem, Progress, SuggestOutcome, VerifyOutcome,
};

/// The media type of lines of JSON.
pub const JSON_LINES: &str = "application/x-ndjson";
/// The media type of server-sent events.
pub const EVENTS: &str = "text/event-stream";

/// The outcome of a job that reports progress, with the name of the schema of a line.
pub trait JobOutcome: ToSchema {
    /// The name.
    const LINE_NAME: &'static str;
    /// Some lines.
    const EXAMPLE: &'static str;
}

impl JobOutcome for ImportOutcome {
    const LINE_NAME: &'static str = "ImportLine";
    const EXAMPLE: &'static str = "{\"progress\":{\"stage\":\"reading\",\"done\":1048576,\"total\":4194304}}\n\
        {\"result\":{\"added\":3,\"duplicates\":1,\"self_follows\":0,\"over_limit\":0,\"invalid\":0,\"token\":\"AAAA\"}}\n";
}

impl JobOutcome for VerifyOutcome {
    const LINE_NAME: &'static str = "VerifyLine";
    const EXAMPLE: &'static str = "{\"progress\":{\"stage\":\"comparing\",\"done\":5}}\n\
        {\"result\":{\"edges\":3,\"users\":4,\"differences\":0,\"examples\":[],\"repaired\":false}}\n";
}

impl JobOutcome for CompactOutcome {
    const LINE_NAME: &'static str = "CompactLine";
    const EXAMPLE: &'static str =
        "{\"progress\":{\"stage\":\"compacting\",\"done\":0}}\n{\"result\":{\"erased\":2}}\n";
}

impl JobOutcome for SuggestOutcome {
    const LINE_NAME: &'static str = "SuggestLine";
    const EXAMPLE: &'static str = "{\"progress\":{\"stage\":\"suggesting\",\"done\":50,\"total\":200}}\n\
        {\"result\":{\"users\":200,\"suggested\":180,\"resumed\":0,\"complete\":true}}\n";
}

impl<T: JobOutcome> PartialSchema for JobLine<T> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .description(Some(
                "A line of the response to a long job. It has one of the fields: progress, or in the last line a result or an error.",
            ))
            .property("progress", Ref::from_schema_name(Progress::name()))
            .property("result", Ref::from_schema_name(T::name()))
            .property("error", Ref::from_schema_name(Problem::name()))
            .min_properties(Some(1))
            .max_properties(Some(1))
            .into()
    }
}

impl<T: JobOutcome> ToSchema for JobLine<T> {
    fn name() -> Cow<'static, str> {
        T::LINE_NAME.into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        push::<Progress>(schemas);
        push::<T>(schemas);
    }
}

/// The lines of a job.
#[derive(Clone, Copy, Debug)]
pub struct JobLines<T>(PhantomData<T>);

impl<T: JobOutcome> PartialSchema for JobLines<T> {
    fn schema() -> RefOr<Schema> {
        let description = "Lines, each of which is one JSON value.";
        sequence(JSON_LINES, &JobLine::<T>::name())
            .description(Some(description))
            .examples([T::EXAMPLE])
            .into()
    }
}

impl<T: JobOutcome> ToSchema for JobLines<T> {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        push::<JobLine<T>>(schemas);
    }
}

const EVENTS_EXAMPLE: &str = "retry: 1000\n\n\
    event: follow\n\
    data: {\"position\":\"0-17\",\"type\":\"follow\",\"at\":\"2026-11-15T08:00:00.123Z\",\"follower\":\"1\",\"followee\":\"2\"}\n\n\
    id: AAAA\n\
    event: unfollow\n\
    data: {\"position\":\"0-18\",\"type\":\"unfollow\",\"at\":\"2026-11-15T08:00:01.456Z\",\"follower\":\"1\",\"followee\":\"2\",\"since\":\"2026-11-15T08:00:00.123Z\"}\n\n\
    : keep-alive\n\n";

/// The lines of an import.
pub type ImportLines = JobLines<ImportOutcome>;
/// The lines of a verification.
pub type VerifyLines = JobLines<VerifyOutcome>;
/// The lines of a compaction.
pub type CompactLines = JobLines<CompactOutcome>;
/// The lines of a computation of suggestions.
pub type SuggestLines = JobLines<SuggestOutcome>;

/// The change log as server-sent events.
#[derive(Clone, Copy, Debug)]
pub struct ChangeEvents;

impl PartialSchema for ChangeEvents {
    fn schema() -> RefOr<Schema> {
        let description = "Events, each of which has one JSON value as its data.";
        sequence(EVENTS, &Change::name()).description(Some(description)).examples([EVENTS_EXAMPLE]).into()
    }
}

impl ToSchema for ChangeEvents {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        push::<Change>(schemas);
    }
}

/// A string that is a sequence of values of a schema.
fn sequence(media_type: &str, name: &str) -> ObjectBuilder {
    let of_each = json!({ "$ref": format!("#/components/schemas/{name}") });
    string()
        .content_media_type(media_type)
        .extensions(Some(Extensions::from_iter([("contentSchema", of_each)])))
}

fn push<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into(), T::schema()));
    T::schemas(schemas);
}
