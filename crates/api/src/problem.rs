//! Problem documents (RFC 9457): what a refused or failed request gets.

use std::borrow::Cow;

use kinfolk_core::ErrorCode;
use serde::{Deserialize, Serialize};

/// A problem document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Identifies the class of the problem: `urn:kinfolk:problem:` and the code.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub r#type: String,
    /// The class in words.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub title: String,
    /// The HTTP status.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true, minimum = 400, maximum = 599))]
    pub status: u16,
    /// What went wrong this time, and what to do.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub detail: String,
    /// The stable name of the class. Match on this.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: Cow<'static, str>,
    /// The name of the request, as in the header `X-Request-Id`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub request_id: String,
}

impl Problem {
    /// The media type of problem documents.
    pub const MEDIA_TYPE: &'static str = "application/problem+json";

    /// A problem of a class.
    pub fn new(code: ErrorCode, detail: String, request_id: String) -> Self {
        Self {
            r#type: format!("urn:kinfolk:problem:{}", code.name()),
            title: code.name().replace('_', " "),
            status: code.http_status(),
            detail,
            code: code.name().into(),
            request_id,
        }
    }

    /// The class, unless this version does not know it.
    pub fn code(&self) -> Option<ErrorCode> {
        ErrorCode::ALL.into_iter().find(|code| code.name() == self.code)
    }

    /// What went wrong, in the most specific words that the document has.
    pub fn message(&self) -> &str {
        [&*self.detail, &*self.title].into_iter().find(|text| !text.is_empty()).unwrap_or(&self.code)
    }
}
