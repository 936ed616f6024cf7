//! A collector of traces on loopback: it takes what the exporter sends by OTLP over HTTP, and decodes it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message;

/// The most that is taken at once.
const BODY_BYTES_MAX: usize = 64 << 20;

/// A request as it came: its first line and what it says.
type Received = (String, ExportTraceServiceRequest);

/// A collector. It ends when it is dropped.
pub struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

/// A span as a collector sees it.
#[derive(Clone, Debug)]
pub struct Collected {
    pub name: String,
    pub trace: String,
    pub id: String,
    /// Empty at the root of a trace.
    pub parent: String,
    pub state: String,
    pub is_server: bool,
    pub is_error: bool,
    pub start_nanos: u64,
    pub end_nanos: u64,
    attributes: Vec<KeyValue>,
}

impl Collected {
    /// An attribute as text, or nothing.
    pub fn attribute(&self, name: &str) -> Option<String> {
        self.attributes.iter().find(|attribute| attribute.key == name).map(|found| text(found.value.as_ref()))
    }
}

impl Collector {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (received, is_over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (taken, ends) = (Arc::clone(&received), Arc::clone(&is_over));
        let accepting = spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if ends.load(Ordering::Acquire) {
                    return;
                }
                let taken = Arc::clone(&taken);
                // It ends with its connection.
                spawn(move || {
                    while let Some(request) = receive(&stream) {
                        taken.lock().unwrap().push(request)
                    }
                });
            }
        });
        Self { address, received, is_over, accepting: Some(accepting) }
    }

    /// The settings that send all traces here, of which so large a part is sampled.
    pub fn settings(&self, sample: &str) -> String {
        format!("--otlp-endpoint http://{} --trace-sample {sample}", self.address)
    }

    /// The first lines of the requests that came, and the names of the services that sent them.
    pub fn senders(&self) -> Vec<(String, String)> {
        let received = self.received.lock().unwrap();
        let sender = |(line, request): &Received| {
            let attributes = request.resource_spans.iter().filter_map(|spans| spans.resource.as_ref());
            let mut attributes = attributes.flat_map(|resource| &resource.attributes);
            let name = attributes.find(|attribute| attribute.key == "service.name");
            (line.clone(), name.map(|name| text(name.value.as_ref())).unwrap_or_default())
        };
        received.iter().map(sender).collect()
    }

    /// All spans that came. A server sends the last ones before it ends.
    pub fn spans(&self) -> Vec<Collected> {
        let received = self.received.lock().unwrap();
        let scopes = received.iter().flat_map(|(_, request)| &request.resource_spans);
        let spans = scopes.flat_map(|resource| &resource.scope_spans).flat_map(|scope| &scope.spans);
        spans.map(collected).collect()
    }

    /// The one span of a name.
    pub fn span(&self, name: &str) -> Collected {
        let mut spans = self.spans();
        let names: Vec<String> = spans.iter().map(|span| span.name.clone()).collect();
        spans.retain(|span| span.name == name);
        assert_eq!(spans.len(), 1, "{name} among {names:?}");
        spans.remove(0)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes it up.
        let _ = TcpStream::connect(self.address);
        let _ = self.accepting.take().map(JoinHandle::join);
    }
}

/// One request of a connection, answered; nothing at its end.
fn receive(mut stream: &TcpStream) -> Option<Received> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok().filter(|&length| length > 0)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&length| length > 0)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    assert!(length <= BODY_BYTES_MAX);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let decoded =
        ExportTraceServiceRequest::decode(&*body).expect("the exporter sends what the protocol says");
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
    Some((first.trim().to_owned(), decoded))
}

fn collected(span: &Span) -> Collected {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Collected {
        name: span.name.clone(),
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        state: span.trace_state.clone(),
        is_server: span.kind == SpanKind::Server as i32,
        is_error: span.status.as_ref().is_some_and(|status| status.code == 2),
        start_nanos: span.start_time_unix_nano,
        end_nanos: span.end_time_unix_nano,
        attributes: span.attributes.clone(),
    }
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(is)) => is.to_string(),
        other => panic!("an attribute is {other:?}"),
    }
}
