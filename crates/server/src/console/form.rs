//! The fields of a form that a browser has sent. Each field is taken once by the handler that knows it.

use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use kinfolk_core::{Error, Id, IdKind, Result};

use super::cookies;
use crate::rest::extract::{Call, read_body, require_plain};
use crate::rest::problem::{Failure, RestResult};
use crate::rest::{Shared, Store};

const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";
/// The longest form of somebody who is not known yet, and has no budget that pays for it.
const STRANGER_BYTES_MAX: usize = 4 * 1024;
/// No form has more fields.
const FIELDS_MAX: usize = 16;
/// The user that the page of the form acts as.
pub(super) const ACTING_AS: &str = "as";

/// The fields of a form.
#[derive(Debug, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    fn parse(text: &[u8]) -> Result<Self> {
        let pairs = form_urlencoded::parse(text).take(FIELDS_MAX + 1);
        let fields: Vec<_> = pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        if fields.len() > FIELDS_MAX {
            return Err(Error::InvalidRequest { detail: format!("a form has at most {FIELDS_MAX} fields") });
        }
        Ok(Self(fields))
    }

    /// A field that is not empty.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, value)| known == name && !value.trim().is_empty())?;
        Some(self.0.swap_remove(at).1)
    }

    /// Refuses a form whose page acted as another user than the visitor does now: it may have chosen one in another tab.
    fn require_actor(&mut self, actor: Option<&str>) -> Result<()> {
        match self.take(ACTING_AS) {
            Some(named) if actor != Some(&*named) => Err(Error::InvalidRequest {
                detail: format!(
                    "this page acts as user {named}, and you do not any more: go back, load it again and send it again"
                ),
            }),
            _ => Ok(()),
        }
    }

    /// A field that stays.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A field that must be there; `what` names it for the visitor.
    pub(super) fn require(&mut self, name: &str, what: &str) -> Result<String> {
        self.take(name).ok_or_else(|| Error::InvalidRequest { detail: format!("{what} is missing") })
    }

    /// A field that is an id.
    pub(super) fn id(&mut self, name: &str, kind: IdKind) -> Result<Option<Id>> {
        self.take(name).map(|text| kind.parse(text.trim())).transpose()
    }
}

impl<S: Store> FromRequest<Shared<S>> for Form {
    type Rejection = Failure;

    async fn from_request(request: Request, shared: &Shared<S>) -> RestResult<Self> {
        let media_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = media_type.and_then(|value| value.split(';').next()).unwrap_or_default();
        if !media_type.trim().eq_ignore_ascii_case(MEDIA_TYPE) {
            return Err(Failure(Error::UnsupportedMediaType { expected: MEDIA_TYPE }));
        }
        require_plain(request.headers())?;
        let is_admitted = request.extensions().get::<Call<S>>().is_some();
        // Escaping makes each byte of a body up to three.
        let max = if is_admitted { shared.settings.body_bytes_max * 3 } else { STRANGER_BYTES_MAX };
        let actor = cookies::find(request.headers(), cookies::ACTOR).map(str::to_owned);
        let mut form = Self::parse(&read_body(request.into_body(), max).await?)?;
        form.require_actor(actor.as_deref())?;
        Ok(form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_sent_as_the_user_of_its_page() {
        let form = || Form::parse(b"as=7&body=x").unwrap();
        assert!(form().require_actor(Some("7")).is_ok());
        for other in [Some("8"), None] {
            let refused = form().require_actor(other).unwrap_err().to_string();
            assert!(refused.contains("acts as user 7"), "{refused}");
        }
        assert!(
            Form::parse(b"body=x").unwrap().require_actor(Some("8")).is_ok(),
            "not every form is sent as a user"
        );
    }

    #[test]
    fn fields_are_taken_once_and_blank_ones_are_missing() {
        let mut form = Form::parse(b"user=+7+&next=%2Fconsole%3Fa%3Db&blank=+&body=a%0D%0Ab+c").unwrap();
        assert_eq!(form.id("user", IdKind::Integer).unwrap(), Some(Id::Integer(7)));
        assert_eq!(form.id("user", IdKind::Integer).unwrap(), None);
        assert_eq!(form.take("next").as_deref(), Some("/console?a=b"));
        assert_eq!(form.take("blank"), None);
        assert_eq!(form.take("body").as_deref(), Some("a\r\nb c"));
        assert!(form.require("reason", "a reason").unwrap_err().to_string().contains("a reason is missing"));
        assert!(Form::parse(b"user=x").unwrap().id("user", IdKind::Integer).is_err());
        assert!(Form::parse("a&".repeat(FIELDS_MAX).as_bytes()).is_ok());
        assert!(Form::parse("a&".repeat(FIELDS_MAX + 1).as_bytes()).is_err());
    }
}
