//! Signatures of tokens and cursors: a client can only send back what this deployment has issued.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;

const MAC_LEN: usize = 16;
const KEY_ID_LEN: usize = 4;

/// A secret key for tokens and cursors.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey([u8; 32]);

impl SigningKey {
    /// A key from 32 bytes of randomness.
    pub fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// The secret itself, for storing it.
    pub fn secret(&self) -> &[u8; 32] {
        &self.0
    }

    /// A public identifier of the key, so that a verifier knows which key to use.
    fn id(&self) -> [u8; KEY_ID_LEN] {
        let hash = blake3::derive_key("kinfolk 2026-11 signing key id", &self.0);
        [hash[0], hash[1], hash[2], hash[3]]
    }

    /// The context separates purposes: a signature for one is invalid for another. It is signed together with its length.
    fn mac(&self, context: &[u8], message: &[u8]) -> [u8; MAC_LEN] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&(context.len() as u64).to_le_bytes()).update(context).update(message);
        let mut mac = [0; MAC_LEN];
        hasher.finalize_xof().fill(&mut mac);
        mac
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SigningKey(secret)")
    }
}

/// The keys of a deployment: the first signs, all verify. Rotation adds a new key in front, and drops the last one when
/// nothing signed with it is in use.
#[derive(Clone, Debug)]
pub struct Keyring {
    keys: Vec<([u8; KEY_ID_LEN], SigningKey)>,
}

impl Keyring {
    /// A ring that signs with `current` and also accepts what `previous` keys have signed.
    pub fn new(current: SigningKey, previous: impl IntoIterator<Item = SigningKey>) -> Self {
        let keys = std::iter::once(current).chain(previous).map(|key| (key.id(), key)).collect();
        Self { keys }
    }

    /// All keys, the signing one first.
    pub fn keys(&self) -> impl Iterator<Item = &SigningKey> {
        self.keys.iter().map(|(_, key)| key)
    }

    /// Text that carries the message and its signature.
    ///
    /// Bytes before encoding: key id (4), message, truncated keyed BLAKE3 of context and message (16).
    pub(crate) fn seal(&self, context: &[u8], message: &[u8]) -> String {
        let (id, key) = &self.keys[0];
        let mut bytes = Vec::with_capacity(KEY_ID_LEN + message.len() + MAC_LEN);
        bytes.extend_from_slice(id);
        bytes.extend_from_slice(message);
        bytes.extend_from_slice(&key.mac(context, message));
        BASE64URL_NOPAD.encode(&bytes)
    }

    /// The message in sealed text, if one of the keys signed it for this context.
    pub(crate) fn open(&self, context: &[u8], text: &str) -> Option<Vec<u8>> {
        /// A token that names 512 shards has at most about 7,600 bytes.
        const TEXT_LEN_MAX: usize = 8_192;
        if text.len() > TEXT_LEN_MAX {
            return None;
        }
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        let (id, rest) = bytes.split_at_checked(KEY_ID_LEN)?;
        let (message, mac) = rest.split_at_checked(rest.len().checked_sub(MAC_LEN)?)?;
        let (_, key) = self.keys.iter().find(|(known, _)| known == id)?;
        // Comparing all bytes takes constant time, so timing does not reveal how many were right.
        let differing = key.mac(context, message).iter().zip(mac).fold(0, |sum, (a, b)| sum | (a ^ b));
        (differing == 0).then(|| message.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> SigningKey {
        SigningKey::new([byte; 32])
    }

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let ring = Keyring::new(key(1), []);
        let text = ring.seal(b"list", b"message");
        assert_eq!(ring.open(b"list", &text).as_deref(), Some(&b"message"[..]));
        assert_eq!(ring.open(b"other", &text), None);
        for at in 0..text.len() {
            let mut forged = text.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert_eq!(ring.open(b"list", &forged), None, "changed character {at}");
        }
        for at in 0..text.len() {
            assert_eq!(ring.open(b"list", &text[..at]), None, "cut at {at}");
        }
        assert_eq!(ring.open(b"list", &"A".repeat(100_000)), None);
    }

    #[test]
    fn context_and_message_have_a_border() {
        let ring = Keyring::new(key(1), []);
        let text = ring.seal(b"ab", b"c");
        assert_eq!(ring.open(b"a", &text), None);
    }

    #[test]
    fn rotation_keeps_old_signatures_until_the_key_is_dropped() {
        let old = Keyring::new(key(1), []).seal(b"x", b"m");
        let rotated = Keyring::new(key(2), [key(1)]);
        assert!(rotated.open(b"x", &old).is_some());
        assert!(Keyring::new(key(2), []).open(b"x", &old).is_none());
        assert!(Keyring::new(key(1), []).open(b"x", &rotated.seal(b"x", b"m")).is_none());
    }
}
