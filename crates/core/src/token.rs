//! Consistency tokens: a signed frontier of the change log. A read with a token shows at least that much.

use crate::{Epoch, Error, Frontier, Keyring, Result, Sequence, Shard, varint};

const CONTEXT: &[u8] = b"kinfolk token 2";

/// Tokens issued before there were shards: epoch and sequence, 8 bytes each. They are still accepted.
const CONTEXT_OF_ONE: &[u8] = b"kinfolk token 1";

/// What a client has seen of the change log of one deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The epoch that the frontier belongs to.
    pub epoch: Epoch,
    /// What the client has seen.
    pub frontier: Frontier,
}

impl Token {
    /// The token as sealed text for a client. Its bytes are the epoch (8, big-endian) and, for each shard in order, two
    /// LEB128 numbers: how many shards lie between it and the previous one, and its sequence.
    pub fn encode(&self, keys: &Keyring) -> String {
        let mut message = self.epoch.0.to_be_bytes().to_vec();
        let mut next = 0;
        for position in self.frontier.iter() {
            let shard = u64::from(position.shard.0);
            varint::push(&mut message, shard - next);
            varint::push(&mut message, position.sequence.0);
            next = shard + 1;
        }
        keys.seal(CONTEXT, &message)
    }

    /// Decodes a token that this deployment issued.
    pub fn decode(text: &str, keys: &Keyring) -> Result<Self> {
        let message = match keys.open(CONTEXT, text) {
            Some(message) => message,
            None => return Self::decode_one(text, keys).ok_or(Error::InvalidToken),
        };
        Self::read(&message).ok_or(Error::InvalidToken)
    }

    fn read(message: &[u8]) -> Option<Self> {
        let (&epoch, mut rest) = message.split_first_chunk()?;
        let (mut frontier, mut next) = (Frontier::default(), 0_u64);
        while !rest.is_empty() {
            let shard = next.checked_add(varint::read(&mut rest)?)?;
            let sequence = Sequence(varint::read(&mut rest)?);
            frontier.advance(sequence.on(Shard(shard.try_into().ok()?)));
            next = shard + 1;
        }
        Some(Self { epoch: Epoch(u64::from_be_bytes(epoch)), frontier })
    }

    fn decode_one(text: &str, keys: &Keyring) -> Option<Self> {
        let message = keys.open(CONTEXT_OF_ONE, text)?;
        let (&epoch, sequence) = message.split_first_chunk()?;
        let sequence = Sequence(u64::from_be_bytes(sequence.try_into().ok()?));
        Some(Self { epoch: Epoch(u64::from_be_bytes(epoch)), frontier: sequence.on(Shard::ONLY).into() })
    }

    /// The frontier, if the token belongs to the current epoch.
    pub fn frontier_in(self, current: Epoch) -> Result<Frontier> {
        if self.epoch == current { Ok(self.frontier) } else { Err(Error::TokenFromOtherEpoch) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SigningKey;

    fn frontier(entries: impl IntoIterator<Item = (u16, u64)>) -> Frontier {
        entries.into_iter().map(|(shard, sequence)| Sequence(sequence).on(Shard(shard))).collect()
    }

    #[test]
    fn round_trip_and_refusals() {
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        let others = Keyring::new(SigningKey::new([8; 32]), []);
        let frontiers = [
            frontier([]),
            frontier([(0, 99)]),
            frontier([(0, 0), (1, u64::MAX), (7, 128), (u16::MAX, 1)]),
            frontier((0..512).map(|shard| (shard, i64::MAX as u64))),
        ];
        for frontier in frontiers {
            let token = Token { epoch: Epoch(1), frontier };
            let text = token.encode(&keys);
            assert_eq!(Token::decode(&text, &keys).unwrap(), token);
            assert!(matches!(Token::decode(&text, &others), Err(Error::InvalidToken)));
            assert!(matches!(token.frontier_in(Epoch(2)), Err(Error::TokenFromOtherEpoch)));
        }
        for text in ["", "nonsense", "é"] {
            assert!(matches!(Token::decode(text, &keys), Err(Error::InvalidToken)), "{text:?}");
        }
    }

    #[test]
    fn a_token_of_before_there_were_shards_is_still_read() {
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        let sealed = keys.seal(CONTEXT_OF_ONE, &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 99]);
        let token = Token { epoch: Epoch(1), frontier: frontier([(0, 99)]) };
        assert_eq!(Token::decode(&sealed, &keys).unwrap(), token);
    }

    #[test]
    fn a_sealed_message_of_another_shape_is_refused() {
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        let epoch = [0; 8];
        let too_long = [&[0xff; 9][..], &[2, 0]].concat();
        for rest in [&[0][..], &[0x80], &too_long, &[0xff, 0xff, 0x7f, 1]] {
            let sealed = keys.seal(CONTEXT, &[&epoch[..], rest].concat());
            assert!(matches!(Token::decode(&sealed, &keys), Err(Error::InvalidToken)), "{rest:?}");
        }
        assert!(Token::decode(&keys.seal(CONTEXT, &[0; 7]), &keys).is_err(), "no whole epoch");
    }
}
