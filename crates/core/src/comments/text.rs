//! The validation of text: bodies of comments and moderators' reasons.
//!
//! Line endings are normalized: CRLF and a lone CR become LF. Of the control characters below U+0020 only tab and LF are
//! accepted. Everything else is kept, visible or not; a text without any visible character is blank.

use std::sync::Arc;

use crate::{Error, Result};

/// The rule for one kind of text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextRule {
    /// The name of the text in errors.
    pub what: &'static str,
    /// The maximum length in characters, after normalization.
    pub chars_max: usize,
}

impl TextRule {
    /// The normalized text, or why it is refused.
    pub(crate) fn accept(self, text: Arc<str>) -> Result<Arc<str>> {
        let text = normalize_line_endings(text);
        let refuse = |reason: String| Err(Error::InvalidBody { what: self.what, reason });
        if let Some(control) = text.chars().find(|&letter| is_refused(letter)) {
            let code = u32::from(control);
            return refuse(format!(
                "cannot contain the control character U+{code:04X}; only tabs and line breaks are accepted"
            ));
        }
        if text.chars().all(is_invisible) {
            return refuse("cannot be blank".into());
        }
        // A character has at least one byte: characters are counted only if there are more bytes than allowed characters.
        if text.len() > self.chars_max && text.chars().count() > self.chars_max {
            return refuse(format!("can have at most {} characters", self.chars_max));
        }
        Ok(text)
    }
}

/// The text with LF for every CRLF and every lone CR.
fn normalize_line_endings(text: Arc<str>) -> Arc<str> {
    if !text.contains('\r') {
        return text;
    }
    text.replace("\r\n", "\n").replace('\r', "\n").into()
}

fn is_refused(letter: char) -> bool {
    letter < ' ' && !matches!(letter, '\n' | '\t')
}

/// Whether a character by itself is invisible: white space, control characters, joiners, fillers and format characters.
fn is_invisible(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control() || is_default_ignorable(letter) || is_empty_glyph(letter)
}

/// The property `Default_Ignorable_Code_Point` of Unicode 17, which covers the ranges that are reserved for it.
fn is_default_ignorable(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Characters with an empty glyph or a format function that are not default-ignorable: the braille blank, the null note head,
/// the Khitan filler, interlinear annotations, hieroglyph joiners.
fn is_empty_glyph(letter: char) -> bool {
    matches!(letter,
        '\u{2800}' | '\u{1d159}' | '\u{16fe4}' | '\u{fff9}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: TextRule = TextRule { what: "a text", chars_max: 5 };

    fn accepted(text: &str) -> Option<String> {
        RULE.accept(text.into()).ok().map(|text| text.to_string())
    }

    fn refusal(text: &str) -> String {
        RULE.accept(text.into()).unwrap_err().to_string()
    }

    #[test]
    fn line_ends_become_plain() {
        for (input, kept) in [
            ("a\r\nb", "a\nb"),
            ("a\rb", "a\nb"),
            ("a\r\r\nb", "a\n\nb"),
            ("a\n\rb", "a\n\nb"),
            ("\r\na\r", "\na\n"),
        ] {
            assert_eq!(accepted(input).as_deref(), Some(kept), "{input:?}");
        }
    }

    #[test]
    fn whatever_can_be_seen_is_kept() {
        for text in [
            "a",
            "a\nb\tc",
            " a ",
            "äöüäö",
            "\u{1f468}\u{200d}\u{1f469}",
            "a\u{7f}",
            "\u{85}a",
            "a\u{9b}31",
            "\u{feff}a",
            "a\u{202e}b",
            "❤\u{fe0f}",
            "\u{fffd}",
            "\u{301}",
            "\u{10ffff}",
            "a\u{ad}b",
        ] {
            assert_eq!(accepted(text).as_deref(), Some(text), "{text:?}");
        }
    }

    #[test]
    fn of_controls_below_the_blank_only_tabs_and_line_ends_are_accepted() {
        for control in (0..0x20_u8).map(char::from).filter(|control| !"\t\n\r".contains(*control)) {
            let message = refusal(&format!("a{control}b"));
            assert!(message.contains(&format!("U+{:04X}", u32::from(control))), "{message}");
            assert!(
                refusal(&control.to_string()).contains("control character"),
                "also where there is nothing else"
            );
        }
        assert_eq!(
            refusal("a\u{1b}[31m"),
            "a text cannot contain the control character U+001B; only tabs and line breaks are accepted"
        );
    }

    #[test]
    fn what_nobody_sees_is_blank() {
        for text in [
            "",
            " ",
            "\n",
            "\r\n",
            "\t",
            "\u{a0}",
            "\u{1680}",
            "\u{2028}\u{2029}",
            "\u{3000}\u{205f}",
            "\u{7f}",
            "\u{80}\u{85}",
            "\u{ad}",
            "\u{34f}",
            "\u{61c}",
            "\u{115f}\u{1160}",
            "\u{17b4}",
            "\u{180b}\u{180e}",
            "\u{200b}\u{200c}\u{200d}",
            "\u{200e}\u{200f}",
            "\u{202a}\u{202e}",
            "\u{2060}\u{2064}",
            "\u{2066}\u{2069}",
            "\u{2800}",
            "\u{3164}",
            "\u{fe0f}",
            "\u{feff}",
            "\u{ffa0}",
            "\u{fff0}",
            "\u{fff9}\u{fffb}",
            "\u{1bca0}",
            "\u{1d159}",
            "\u{1d173}",
            "\u{e0001}",
            "\u{e0041}\u{e007f}",
            "\u{e0100}",
            " \u{200b}\n\u{feff}",
        ] {
            assert_eq!(refusal(text), "a text cannot be blank", "{text:?}");
        }
    }

    #[test]
    fn the_length_counts_after_normalisation() {
        assert_eq!(accepted("\r\na\r\nb\r\n").as_deref(), Some("\na\nb\n"));
        assert_eq!(accepted("äöüäö").as_deref(), Some("äöüäö"));
        for text in ["abcdef", "äöüäöü", "a\n\n\n\n\n", "a\r\r\r\r\r"] {
            assert_eq!(refusal(text), "a text can have at most 5 characters", "{text:?}");
        }
    }

    proptest! {
        /// What was accepted is accepted again as it is: a text that is read and sent back is the same comment.
        #[test]
        fn what_is_kept_is_kept_again(text in "(?s)(\r|\n|\t|[\u{7f}-\u{9f}]|[a-c]|.){0,12}") {
            let rule = TextRule { chars_max: 8, ..RULE };
            if let Ok(kept) = rule.accept(text.as_str().into()) {
                prop_assert_eq!(rule.accept(Arc::clone(&kept)).unwrap(), Arc::clone(&kept));
                prop_assert!(!kept.contains('\r') && kept.chars().count() <= 8);
                let without_ends = |text: &str| text.replace(['\r', '\n'], "");
                prop_assert_eq!(without_ends(&kept), without_ends(&text), "nothing but line ends changes");
            }
        }

        /// Whatever a text with something visible in it has besides, it is refused for no other reason than controls and length.
        #[test]
        fn any_unicode_is_accepted(before in "[\t\n\r -\u{10ffff}]{0,20}", after in "[\t\n\r -\u{10ffff}]{0,20}") {
            let rule = TextRule { chars_max: 50, ..RULE };
            let text = format!("{before}x{after}");
            prop_assert!(rule.accept(text.into()).is_ok());
        }
    }
}
