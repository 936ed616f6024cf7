//! Sends traces by OTLP over HTTP, from the exporter's own thread with a blocking client. `spans` creates them.

use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use opentelemetry::trace::{Link, SpanKind, TraceId, TracerProvider as _};
use opentelemetry::{Context as TraceContext, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SamplingResult, SdkTracerProvider, ShouldSample};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use super::spans;
use crate::settings::Tracing;

/// The timeout of a batch, and of the last one at the end.
const SEND: Duration = Duration::from_secs(5);
/// The path of the collector, unless the endpoint has one.
const PATH: &str = "/v1/traces";

/// Sends traces to a collector.
pub(crate) struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Starts sending, if an endpoint is configured.
    pub(crate) fn start(settings: &Tracing) -> Result<Option<Self>> {
        let Some(endpoint) = &settings.otlp_endpoint else { return Ok(None) };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new())
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(with_path(endpoint))
            .with_timeout(SEND)
            .build()
            .with_context(|| format!("could not send traces to {endpoint}"))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name("kinfolk").with_attribute(version).build();
        let sampler =
            RequestSampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.sample.0))));
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(sampler)
            .with_resource(resource)
            .build();
        Ok(Some(Self { provider }))
    }

    /// Converts spans to traces.
    pub(crate) fn layer<S: Subscriber + for<'span> LookupSpan<'span>>(&self) -> impl Layer<S> + use<S> {
        spans::layer(&self.provider.tracer("kinfolk"))
    }

    /// Sends the remaining traces.
    pub(crate) fn end(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(SEND) {
            tracing::warn!(%error, "could not send the last traces");
        }
    }
}

/// Samples requests. Commands of the Redis protocol were sampled before: only sampled ones have a span.
#[derive(Clone, Debug)]
struct RequestSampler(Sampler);

impl ShouldSample for RequestSampler {
    fn should_sample(
        &self,
        parent: Option<&TraceContext>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let is_sampled = attributes.contains(&KeyValue::new("network.protocol.name", "resp"));
        let sampler = if is_sampled { &Sampler::AlwaysOn } else { &self.0 };
        sampler.should_sample(parent, trace, name, kind, attributes, links)
    }
}

fn with_path(endpoint: &str) -> String {
    let after_scheme = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let has_path = after_scheme.trim_end_matches('/').contains('/');
    if has_path { endpoint.to_owned() } else { format!("{}{PATH}", endpoint.trim_end_matches('/')) }
}

/// Sends batches. It blocks the thread of the exporter.
#[derive(Debug)]
struct Client {
    agent: ureq::Agent,
}

impl Client {
    fn new() -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(SEND))
            .build();
        Self { agent: config.new_agent() }
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let response = self.agent.run(Request::from_parts(parts, body.as_ref()))?;
        let (parts, mut body) = response.into_parts();
        Ok(Response::from_parts(parts, Bytes::from(body.read_to_vec()?)))
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::trace::SamplingDecision;

    use super::*;

    #[test]
    fn sampled_commands_are_not_sampled_again() {
        let sampler = RequestSampler(Sampler::TraceIdRatioBased(0.0));
        let decision = |protocol| {
            let attributes = [KeyValue::new("network.protocol.name", protocol)];
            sampler.should_sample(None, TraceId::from(7), "x", &SpanKind::Server, &attributes, &[]).decision
        };
        assert_eq!(decision("resp"), SamplingDecision::RecordAndSample);
        assert_eq!(decision("http"), SamplingDecision::Drop);
    }

    #[test]
    fn a_bare_endpoint_gets_the_default_path() {
        for (endpoint, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://collector/otlp/v1/traces", "https://collector/otlp/v1/traces"),
        ] {
            assert_eq!(with_path(endpoint), url);
        }
    }
}
