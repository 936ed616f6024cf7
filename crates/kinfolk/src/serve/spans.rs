//! Spans of requests, as children of their callers' spans, with the layers of the store as children. `otlp` sends them.

use std::time::{Duration, SystemTime};

use kinfolk_server::rest::TraceParent;
use opentelemetry::Context;
use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, Tracer as _,
};
use opentelemetry_sdk::trace::SdkTracer;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Span, Subscriber, dispatcher};
use tracing_opentelemetry::{OpenTelemetrySpanExt as _, get_otel_context};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::layer;
use tracing_subscriber::registry::LookupSpan;

use crate::profile::LAYER_TARGET;

/// Converts spans, and reports of the layers of the store, to spans of a tracer.
pub(crate) fn layer<S: Subscriber + for<'span> LookupSpan<'span>>(
    tracer: &SdkTracer,
) -> impl Layer<S> + use<S> {
    let requests = tracing_opentelemetry::layer()
        .with_tracer(tracer.clone())
        // A span starts on first use, so that its name can be set after it was entered.
        .with_context_activation(false)
        .with_tracked_inactivity(false)
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_filter(filter_fn(is_ours).and(LevelFilter::INFO));
    let is_known = |metadata: &Metadata<'_>| {
        metadata.target() == LAYER_TARGET || (metadata.is_span() && is_ours(metadata))
    };
    requests.and_then(LayerSpans { tracer: tracer.clone() }.with_filter(filter_fn(is_known)))
}

/// Spans of this program only: those of the exporter's client would trace the tracing.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("kinfolk")
}

/// Makes a span the child of its caller's span. The caller then decides whether the trace is recorded.
pub(crate) fn adopt(span: &Span, parent: &TraceParent) {
    let flags = if parent.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    // A malformed state is dropped; the parent stays valid.
    let state = parent.state.as_deref().and_then(|state| state.parse::<TraceState>().ok());
    let (trace, id) = (TraceId::from(parent.trace_id), SpanId::from(parent.span_id));
    let context = SpanContext::new(trace, id, flags, true, state.unwrap_or_default());
    // The level may have disabled the span.
    let _ = span.set_parent(Context::new().with_remote_span_context(context));
}

/// Converts reports of the layers of the store to children of the current span.
struct LayerSpans {
    tracer: SdkTracer,
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for LayerSpans {
    fn on_event(&self, event: &Event<'_>, context: layer::Context<'_, S>) {
        let Some(request) = context.event_span(event) else { return };
        let parent = dispatcher::get_default(|dispatch| get_otel_context(&request.id(), dispatch));
        let Some(parent) = parent.filter(|parent| parent.span().span_context().is_sampled()) else { return };
        let mut report = Report::default();
        event.record(&mut report);
        let end = SystemTime::now() - Duration::from_nanos(report.ended_nanos_ago);
        let start = end - Duration::from_nanos(report.nanos);
        let builder = self.tracer.span_builder(report.layer).with_start_time(start);
        builder.start_with_context(&self.tracer, &parent).end_with_timestamp(end);
    }
}

/// A report of a layer.
#[derive(Default)]
struct Report {
    layer: String,
    nanos: u64,
    ended_nanos_ago: u64,
}

impl Visit for Report {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "nanos" => self.nanos = value,
            "ended_nanos_ago" => self.ended_nanos_ago = value,
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "layer" {
            value.clone_into(&mut self.layer);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}
