//! Consistency tokens: a signed place in the change log that a read can ask to have seen.

use crate::{Epoch, Error, Keyring, Position, Result};

const CONTEXT: &[u8] = b"kinfolk token 1";

/// A place in the change log of one deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The life of the log that the position belongs to.
    pub epoch: Epoch,
    /// The place in it.
    pub position: Position,
}

impl Token {
    /// The token as text for a client: epoch and position, big-endian, sealed.
    pub fn encode(self, keys: &Keyring) -> String {
        let mut message = [0; 16];
        message[..8].copy_from_slice(&self.epoch.0.to_be_bytes());
        message[8..].copy_from_slice(&self.position.0.to_be_bytes());
        keys.seal(CONTEXT, &message)
    }

    /// Reads a token that this deployment gave out.
    pub fn decode(text: &str, keys: &Keyring) -> Result<Self> {
        let message = keys.open(CONTEXT, text).ok_or(Error::InvalidToken)?;
        let words: [u8; 16] = message.try_into().map_err(|_| Error::InvalidToken)?;
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|offset| words[at + offset]));
        Ok(Self { epoch: Epoch(word(0)), position: Position(word(8)) })
    }

    /// The position, if the token belongs to the current life of the log.
    pub fn position_in(self, current: Epoch) -> Result<Position> {
        if self.epoch == current { Ok(self.position) } else { Err(Error::TokenFromOtherEpoch) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SigningKey;

    #[test]
    fn round_trip_and_refusals() {
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        let token = Token { epoch: Epoch(1), position: Position(99) };
        let text = token.encode(&keys);
        assert_eq!(Token::decode(&text, &keys).unwrap(), token);

        let others = Keyring::new(SigningKey::new([8; 32]), []);
        for (given, keys) in [("", &keys), ("nonsense", &keys), ("é", &keys), (text.as_str(), &others)] {
            assert!(matches!(Token::decode(given, keys), Err(Error::InvalidToken)), "{given:?}");
        }
        assert!(matches!(token.position_in(Epoch(2)), Err(Error::TokenFromOtherEpoch)));
    }
}
