//! The file of secrets that are shared with an issuer. A public key must never be taken for one: everybody has it, and
//! could sign with it. So a secret is what is clearly one, and whatever looks like a key is refused.
//!
//! One secret a line, so that a new one can be accepted before the old one goes. A line is printable ASCII, and its
//! bytes are the secret; one that is not text is written as `base64:` and its encoding.

use data_encoding::{Encoding, HEXLOWER_PERMISSIVE, Specification};

/// As long as the shortest hash that it is used with (RFC 7518, 3.2).
const BYTES_MIN: usize = 32;
/// Each is tried on a token that fits none.
const SECRETS_MAX: usize = 4;
const ENCODED: &str = "base64:";

/// The secrets in a file. The problem does not quote it.
pub(super) fn parse(content: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let text = std::str::from_utf8(content).ok();
    let lines =
        text.map(|text| text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>());
    let is_plain =
        |lines: &Vec<&str>| lines.iter().all(|line| line.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    let lines = lines.filter(is_plain).ok_or(
        "not a shared secret, which is a line of printable ASCII characters: make one with openssl rand -hex 32; \
         a public key belongs in auth.token_keys",
    )?;
    // What the file is, if it is a key, says more than what is wrong with its first line.
    if let Some(form) = lines.iter().find_map(|line| form_of_key(line.as_bytes())) {
        return Err(not_a_secret(form));
    }
    let secrets: Vec<_> = lines.into_iter().map(parse_line).collect::<Result<_, _>>()?;
    match secrets.len() {
        0 => Err("no shared secret is in the file: make one with openssl rand -hex 32".to_owned()),
        1..=SECRETS_MAX => Ok(secrets),
        _ => Err(format!("there are more than {SECRETS_MAX} shared secrets: take out the old ones")),
    }
}

fn parse_line(line: &str) -> Result<Vec<u8>, String> {
    let secret = match line.strip_prefix(ENCODED) {
        Some(encoded) => decode_base64(encoded).ok_or("what follows base64: is not valid base64")?,
        None => line.as_bytes().to_vec(),
    };
    if let Some(form) = form_of_key(&secret) {
        return Err(not_a_secret(form));
    }
    if secret.len() < BYTES_MIN {
        return Err(format!(
            "a shared secret must have at least {BYTES_MIN} bytes: make one with openssl rand -hex 32"
        ));
    }
    Ok(secret)
}

fn not_a_secret(form: &str) -> String {
    format!(
        "a shared secret looks like {form}: a public key belongs in auth.token_keys; make a secret with openssl \
         rand -hex 32"
    )
}

/// What a key file that was put here by mistake would be, as it is or encoded once more.
fn form_of_key(secret: &[u8]) -> Option<&'static str> {
    // Encoded keys are often broken into lines, of any length: whole groups of four characters can be decoded.
    let groups = std::str::from_utf8(secret).ok().and_then(|text| text.get(..text.len() / 4 * 4));
    let decoded = [groups.and_then(decode_base64), HEXLOWER_PERMISSIVE.decode(secret).ok()];
    form(secret).or_else(|| decoded.iter().flatten().find_map(|decoded| form(decoded)))
}

fn form(bytes: &[u8]) -> Option<&'static str> {
    let is_control = |character: char| character.is_control() && !character.is_ascii_whitespace();
    match std::str::from_utf8(bytes).ok().filter(|text| !text.contains(is_control)) {
        Some(text) if text.contains("-----BEGIN") || text.contains("---- BEGIN") => Some("PEM"),
        Some(text) if text.starts_with(['{', '[']) => Some("JSON"),
        Some(text) if text.starts_with('<') => Some("XML"),
        // The beginning of the length that every SSH key begins with, in base64.
        Some(text) if text.split_ascii_whitespace().any(|word| word.starts_with("AAAA")) => {
            Some("an SSH key")
        }
        None if bytes.starts_with(&[0; 3]) => Some("an SSH key"),
        None if is_der(bytes) => Some("a key in DER"),
        _ => None,
    }
}

/// Whether bytes begin as all keys and certificates do: a sequence whose first part is an integer or a sequence that
/// fits into it. Where they end does not matter, as encoded ones are often broken into lines.
fn is_der(bytes: &[u8]) -> bool {
    const INTEGER: u8 = 0x02;
    const SEQUENCE: u8 = 0x30;
    let Some((SEQUENCE, length, content)) = der_header(bytes) else { return false };
    matches!(der_header(content), Some((INTEGER | SEQUENCE, inner, _)) if inner < length)
}

/// The tag of a value, how many bytes it has, and what follows.
fn der_header(bytes: &[u8]) -> Option<(u8, usize, &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk()?;
    // A long length says in how many bytes it follows.
    let length_bytes = if first < 0x80 { 0 } else { usize::from(first & 0x7f) };
    let (length, content) = rest.split_at_checked(length_bytes).filter(|(length, _)| length.len() <= 4)?;
    let long = length.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
    Some((tag, if length_bytes == 0 { usize::from(first) } else { long }, content))
}

/// Base64 of either alphabet, with or without padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    base64().decode(text.trim_end_matches('=').as_bytes()).ok()
}

fn base64() -> Encoding {
    let mut specification = Specification::new();
    specification.symbols.push_str("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    specification.translate.from.push_str("-_");
    specification.translate.to.push_str("+/");
    specification.check_trailing_bits = false;
    specification.encoding().expect("the alphabet has 64 symbols")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "a shared secret that is long enough for HS256";

    #[test]
    fn secrets_are_lines() {
        assert_eq!(parse(PLAIN.as_bytes()).unwrap(), [PLAIN.as_bytes()]);
        let two = format!("\n  {PLAIN}\r\n\n{}\n", "7".repeat(32));
        assert_eq!(parse(two.as_bytes()).unwrap(), [PLAIN.as_bytes(), "7".repeat(32).as_bytes()]);
        let bytes: Vec<u8> = (200..=240).collect();
        for encoded in [base64().encode(&bytes), data_encoding::BASE64URL.encode(&bytes)] {
            assert_eq!(parse(format!("base64:{encoded}\n").as_bytes()).unwrap(), [bytes.as_slice()]);
        }
    }

    #[test]
    fn what_is_usual_is_not_taken_for_a_key() {
        for secret in [
            "0f0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd",
            "Mxx-._~!#$%&/()=?[]{}<>Mxx-._~!#$%&/()",
        ] {
            parse(secret.as_bytes()).unwrap();
        }
        // Random secrets, as text and as bytes. One in 200,000 begins like DER and is refused, none of these.
        let mut random = blake3::Hasher::new().update(b"secrets").finalize_xof();
        for _ in 0..1_000 {
            let mut bytes = [0; 48];
            random.fill(&mut bytes);
            parse(base64().encode(&bytes).as_bytes()).unwrap();
            parse(HEXLOWER_PERMISSIVE.encode(&bytes).as_bytes()).unwrap();
            parse(format!("base64:{}", base64().encode(&bytes)).as_bytes()).unwrap();
        }
    }

    #[test]
    fn what_protects_nothing_is_refused() {
        for (content, expected) in [
            ("", "no shared secret"),
            (" \n", "no shared secret"),
            ("too short", "32 bytes"),
            ("base64:c2hvcnQ=", "32 bytes"),
            ("base64:no!", "valid base64"),
            (&format!("{PLAIN}\ntoo short"), "32 bytes"),
            (&format!("{PLAIN}\n").repeat(5), "more than 4"),
            ("ein gemeinsames Geheimnis, das lang genug wäre", "printable"),
            (&format!("{PLAIN}\0"), "printable"),
            (&format!("{PLAIN}\r{PLAIN}"), "printable"),
        ] {
            let problem = parse(content.as_bytes()).unwrap_err();
            assert!(problem.contains(expected), "{problem}: {expected}");
            assert!(content.is_empty() || !problem.contains(content));
        }
    }
}
