//! Small pieces that pages are made of: numbers, times, ids, payloads, links to the next page.

use kinfolk_core::comments::CommentId;
use kinfolk_core::{Error, Id, Timestamp};
use maud::{Markup, html};

use super::form::ACTING_AS;
use crate::internal_error::Shown;

/// The field of a form that is sent as a user.
pub(super) fn acting_as(actor: Option<Id>) -> Markup {
    html! { @if let Some(actor) = actor { input type="hidden" name=(ACTING_AS) value=(actor); } }
}

/// A number with its digits in groups of three.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count of things, such as "1 follower".
pub(super) fn count(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { many })
}

/// A size in bytes.
pub(super) fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes, 0);
    while value >= 1_024.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1_024.0, unit + 1);
    }
    let digits = usize::from(unit > 0 && value < 100.0);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A length of time.
pub(super) fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A time, which a script replaces by how long ago that is.
pub(super) fn time(at: Timestamp) -> Markup {
    html! { time datetime=(at) { (at) } }
}

/// A user, with a link to its page.
pub(super) fn user(id: Id) -> Markup {
    html! { a.id href={ "/console/users/" (id) } { (id) } }
}

/// The address of a comment.
pub(super) fn comment_address(id: CommentId) -> String {
    format!("/console/comments/{id}")
}

/// A message where there is nothing to show, and what to do about it.
pub(super) fn empty(message: &str, advice: &str) -> Markup {
    html! { div.empty { strong { (message) } (advice) } }
}

/// A part of a page that could not be read.
pub(super) fn unreadable(error: &Error) -> Markup {
    let detail = super::error_page::sentence(&Shown(error).to_string());
    html! { div.empty { strong { "This could not be read" } (detail) } }
}

/// A button that copies a text. A script shows it where that is possible.
pub(super) fn copy(text: &str) -> Markup {
    html! { button.copy type="button" data-copy=(text) hidden { "Copy" } }
}

/// Links to the first page of a list, and to the next one.
pub(super) fn pager(path: &str, parameters: &str, cursor: Option<&str>, next: Option<&str>) -> Markup {
    let separator = if parameters.is_empty() { "" } else { "&" };
    html! {
        @if cursor.is_some() || next.is_some() {
            nav.pager aria-label="Pages" {
                @if cursor.is_some() {
                    a.button rel="prev" href={ (path) @if !parameters.is_empty() { "?" (parameters) } } { "First page" }
                }
                @if let Some(next) = next {
                    a.button rel="next" href={ (path) "?" (parameters) (separator) "cursor=" (next) } { "Next page" }
                }
            }
        }
    }
}

/// Parts of a payload that are deeper than this are not indented any further: a small payload would become a large page.
const INDENTED_DEPTH_MAX: usize = 8;

/// A payload with its parts on lines of their own. Numbers and strings stay as they are written.
pub(super) fn pretty(json: &str) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let (mut in_string, mut escaped, mut depth) = (false, false, 0_usize);
    let mut characters = json.chars().peekable();
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth.min(INDENTED_DEPTH_MAX)));
    };
    while let Some(character) = characters.next() {
        if in_string {
            text.push(character);
            (in_string, escaped) = (character != '"' || escaped, character == '\\' && !escaped);
            continue;
        }
        match character {
            '{' | '[' => {
                text.push(character);
                if let Some(&end @ ('}' | ']')) = characters.peek() {
                    text.push(end);
                    characters.next();
                } else {
                    depth += 1;
                    line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut text, depth);
                text.push(character);
            }
            ',' => {
                text.push(',');
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            '"' => {
                text.push('"');
                in_string = true;
            }
            _ => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_readable() {
        assert_eq!(
            [0, 999, 1_000, 12_345, 1_234_567].map(number),
            ["0", "999", "1,000", "12,345", "1,234,567"]
        );
        assert_eq!([0.0, 1_023.0, 1_536.0, 2e9].map(bytes), ["0 bytes", "1023 bytes", "1.5 KiB", "1.9 GiB"]);
        assert_eq!([59, 61, 7_260, 90_000].map(duration), ["59 s", "1 min 1 s", "2 h 1 min", "1 d 1 h"]);
        assert_eq!(
            [count(1, "reply", "replies"), count(1_000, "reply", "replies")],
            ["1 reply", "1,000 replies"]
        );
    }

    #[test]
    fn payloads_keep_their_text() {
        let json = r#"{"a":[1,2.50,{}],"b":"x, {\"y\": \\","c":[],"d":12345678901234567890123}"#;
        let pretty = pretty(json);
        assert_eq!(crate::payload::compact(pretty.as_bytes(), 1_000).unwrap().as_deref(), Some(json));
        insta::assert_snapshot!(pretty, @r#"
        {
          "a": [
            1,
            2.50,
            {}
          ],
          "b": "x, {\"y\": \\",
          "c": [],
          "d": 12345678901234567890123
        }
        "#);
    }

    #[test]
    fn pages_are_linked() {
        assert_eq!(pager("/p", "", None, None).into_string(), "");
        let links = pager("/p", "with=1", Some("a"), Some("b")).into_string();
        assert!(
            links.contains("href=\"/p?with=1\"") && links.contains("href=\"/p?with=1&amp;cursor=b\""),
            "{links}"
        );
    }
}
