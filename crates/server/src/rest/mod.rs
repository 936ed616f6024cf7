//! REST: routes, JSON, problem documents, server-sent events, the OpenAPI document.
