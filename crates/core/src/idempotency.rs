//! What stores keep instead of idempotency keys.

/// Stands for an idempotency key of an author.
pub type KeyHash = [u8; 16];

/// What stands for an idempotency key: the first half of its BLAKE3 hash. Stores keep it on disk; it never changes.
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
