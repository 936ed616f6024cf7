//! Slots: every key belongs to one of 16,384, by the part of it in braces, and every slot to a node.

use super::Reply;

pub(super) const SLOTS: u16 = 16_384;

/// The slot of all keys with a tag.
pub(crate) fn slot_of(tag: &str) -> u16 {
    crc16(tag.as_bytes()) % SLOTS
}

/// The checksum that Redis Cluster uses: CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// Slots that a node serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotRange {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) address: String,
}

/// What a node says to `CLUSTER SLOTS`: the masters of the slots, in order. A node that does not know its own name leaves it out: it is
/// the host that was asked.
pub(super) fn ranges(reply: &Reply, asked: &str) -> Option<Vec<SlotRange>> {
    let asked_host = asked.rsplit_once(':')?.0;
    let range = |entry: &Reply| -> Option<SlotRange> {
        let [first, last, master, ..] = entry.list()? else { return None };
        let [host, port, ..] = master.list()? else { return None };
        let host = host.text().filter(|host| !host.is_empty() && *host != "?").unwrap_or(asked_host);
        let slot = |reply: &Reply| u16::try_from(reply.integer()?).ok();
        let address = format!("{host}:{}", port.integer()?);
        Some(SlotRange { first: slot(first)?, last: slot(last)?, address })
    };
    let mut found: Vec<SlotRange> = reply.list()?.iter().map(range).collect::<Option<_>>()?;
    found.sort_by_key(|range| range.first);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `CLUSTER KEYSLOT` has them.
    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!((slot_of("foo"), slot_of("bar"), slot_of("")), (12_182, 5_061, 0));
    }

    #[test]
    fn the_masters_of_slots_are_read() {
        let node = |host: &str, port| {
            Reply::List(vec![
                Reply::Text(host.as_bytes().to_vec()),
                Reply::Integer(port),
                Reply::Text(b"id".to_vec()),
            ])
        };
        let range = |first, last, node, replica| {
            Reply::List(vec![Reply::Integer(first), Reply::Integer(last), node, replica])
        };
        let reply = Reply::List(vec![
            range(100, 16_383, node("10.0.0.2", 7), node("10.0.0.3", 8)),
            range(0, 99, node("", 6), node("10.0.0.3", 9)),
        ]);
        let expected = [(0, 99, "10.0.0.1:6"), (100, 16_383, "10.0.0.2:7")];
        let expected =
            expected.map(|(first, last, address)| SlotRange { first, last, address: address.to_owned() });
        assert_eq!(ranges(&reply, "10.0.0.1:6").unwrap(), expected);
        assert_eq!(ranges(&Reply::Integer(1), "10.0.0.1:6"), None);
    }
}
