//! Cursors and tokens: what is opened is exactly what was given out. Forging a signature is not tried.

use kinfolk_core::graph::ListKey;
use kinfolk_core::{
    EdgeKind, Epoch, Error, Frontier, Id, Keyring, ListCursor, ListName, Sequence, Shard, SigningKey,
    Timestamp, Token,
};

fn keys() -> Keyring {
    Keyring::new(SigningKey::new([7; 32]), [])
}

/// Reads the input as a cursor of some lists; then makes a cursor out of it and changes that.
pub fn list_cursor(input: &[u8]) {
    let keys = keys();
    let number = word(input, 0);
    for of in [Id::Integer(5), Id::Uuid(5)] {
        let id = match of {
            Id::Integer(_) => Id::Integer(number),
            Id::Uuid(_) => Id::Uuid(u128::from(number) << 64 | u128::from(word(input, 8))),
        };
        let key = ListKey { since: Timestamp::from_millis(word(input, 16)), id };
        for list in [ListName::Following, ListName::Followers, ListName::Friends] {
            let cursor = ListCursor { list, kind: EdgeKind::Follow, of };
            opens_only_what_was_sealed(
                input,
                &cursor.encode(key, &keys),
                |text| {
                    cursor
                        .decode(text, &keys)
                        .inspect_err(|error| assert!(matches!(error, Error::InvalidCursor)))
                        .ok()
                },
                |key| cursor.encode(*key, &keys),
                &key,
            );
        }
    }
}

/// Reads the input as a consistency token; then makes a token out of it and changes that.
pub fn token(input: &[u8]) {
    let keys = keys();
    let token = Token { epoch: Epoch(word(input, 0)), frontier: frontier(input) };
    opens_only_what_was_sealed(
        input,
        &token.encode(&keys),
        |text| {
            Token::decode(text, &keys).inspect_err(|error| assert!(matches!(error, Error::InvalidToken))).ok()
        },
        |token| token.encode(&keys),
        &token,
    );
    let current = Epoch(word(input, 16));
    assert_eq!(token.clone().frontier_in(current).is_ok(), token.epoch == current);
}

/// Some shards, each as far as a word of the input says.
fn frontier(input: &[u8]) -> Frontier {
    let shards = input.chunks_exact(2).take(300).map(|shard| Shard(u16::from_le_bytes([shard[0], shard[1]])));
    shards.zip(8..).map(|(shard, at)| Sequence(word(input, at)).on(shard)).collect()
}

fn opens_only_what_was_sealed<T: PartialEq + std::fmt::Debug>(
    input: &[u8],
    sealed: &str,
    open: impl Fn(&str) -> Option<T>,
    seal: impl Fn(&T) -> String,
    expected: &T,
) {
    // There is one text for each content, so that texts can be compared; but tokens of before there were shards have another length.
    let text = String::from_utf8_lossy(input);
    if let Some(opened) = open(&text) {
        let again = seal(&opened);
        assert!(again == text || again.len() != text.len(), "{again} instead of {text}");
        assert_eq!(open(&again), Some(opened));
    }
    assert_eq!(open(sealed).as_ref(), Some(expected));
    let mut changed = sealed.as_bytes().to_vec();
    let at = usize::from(input.first().copied().unwrap_or_default()) % changed.len();
    changed[at] = input.last().copied().unwrap_or_default();
    if let Ok(changed) = std::str::from_utf8(&changed)
        && changed != sealed
    {
        assert_eq!(open(changed), None, "{changed} instead of {sealed}");
    }
    assert_eq!(open(&sealed[..at]), None);
    assert_eq!(open(&format!("{sealed}{text}")).is_some(), text.is_empty());
}

/// Eight bytes of the input, or as many as there are.
fn word(input: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    for (byte, given) in bytes.iter_mut().zip(input.iter().skip(at)) {
        *byte = *given;
    }
    u64::from_le_bytes(bytes)
}
