//! Hashes of idempotency keys, which stores keep instead of the keys.

/// The hash of an author's idempotency key.
pub type KeyHash = [u8; 16];

/// The hash of an idempotency key: the first half of its BLAKE3 hash. It is on disk, so it never changes.
pub fn key_hash(key: &str) -> KeyHash {
    let hash = blake3::hash(key.as_bytes());
    std::array::from_fn(|at| hash.as_bytes()[at])
}

/// How many bytes of a body's hash distinguish the bodies of one key. So few of them fit too many bodies to tell which one was purged.
const FINGERPRINT_BYTES: usize = 3;

/// The hash of an idempotency key together with the body that was sent under it. A store keeps it as another key, so that a request can
/// be compared with one whose body was purged. It is on disk, so it never changes.
pub fn body_key_hash(key: &KeyHash, body: &str) -> KeyHash {
    let of_key = |bytes: &[u8]| {
        let mut hasher = blake3::Hasher::new_derive_key("kinfolk body of an idempotency key");
        hasher.update(key);
        hasher.update(bytes);
        hasher.finalize()
    };
    let fingerprint = of_key(body.as_bytes());
    let hash = of_key(&fingerprint.as_bytes()[..FINGERPRINT_BYTES]);
    std::array::from_fn(|at| hash.as_bytes()[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_stay_as_they_are_on_disk() {
        // The test vector of BLAKE3 for no input.
        assert_eq!(u128::from_be_bytes(key_hash("")), 0xaf13_49b9_f5f9_a1a6_a040_4dea_36dc_c949);
        assert_ne!(key_hash("a"), key_hash("b"));
        let of_body = body_key_hash(&key_hash("a"), "a body");
        assert_eq!(u128::from_be_bytes(of_body), 0x1de3_116c_a9ed_dad3_ab34_51e2_34f6_0005);
        assert_ne!(of_body, body_key_hash(&key_hash("a"), "another"));
        assert_ne!(of_body, body_key_hash(&key_hash("b"), "a body"));
    }
}
