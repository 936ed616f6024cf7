//! Hashes of idempotency keys, which stores keep instead of the keys.

/// The hash of an author's idempotency key.
pub type KeyHash = [u8; 16];

/// The hash of an idempotency key: the first half of its BLAKE3 hash. It is on disk, so it never changes.
pub fn key_hash(key: &str) -> KeyHash {
    let hash = blake3::hash(key.as_bytes());
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
    }
}
