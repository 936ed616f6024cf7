//! What must hold for any input, on the committed corpus of the fuzz targets and on some thousand mutations of it:
//! seconds, on any toolchain. `scripts/fuzz` looks further.

use std::fs;
use std::path::Path;

use crate::faults::random::Random;

#[path = "../../../../fuzz/src/lib.rs"]
mod properties;

/// The longest input that mutations grow.
const LENGTH_MAX: usize = 4_096;

/// What parsers know by name, to be put in where it hurts.
const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"*",
    b"$",
    b"$-1\r\n",
    b"*-1\r\n",
    b"\"",
    b"'",
    b"\\",
    b"\0",
    b"\xff",
    b"#",
    b",",
    b"\t",
    b" ",
    b"[",
    b"]",
    b"{",
    b"}",
    b":",
    b"-1",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551616",
    b"SADD",
    b"SSCAN",
    b"MULTI\r\n",
    b"EXEC\r\n",
    b"HELLO 3\r\n",
    b"following:1",
    b"\xef\xbb\xbf",
    b"1970-01-01T00:00:00Z",
    b"00000000-0000-0000-0000-000000000001",
];

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 20, "{target}: {} files", files.len());
    files.into_iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Changes an input a little: what is there is flipped, removed, repeated, or joined by a word or a part of another.
fn mutate(input: &mut Vec<u8>, random: &mut Random, corpus: &[Vec<u8>]) {
    let at = random.below(input.len() + 1);
    let length = random.below(16).min(input.len() - at);
    let part = at..at + length;
    match random.below(6) {
        0 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        1 => drop(input.drain(part)),
        2 => drop(input.splice(at..at, input[part].to_vec())),
        3 => drop(input.splice(part, WORDS[random.below(WORDS.len())].iter().copied())),
        4 => input.insert(at, random.next() as u8),
        _ => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len() + 1);
            input.splice(at.., other[from..].iter().copied());
        }
    }
    input.truncate(LENGTH_MAX);
}

#[test]
fn properties_hold_for_the_corpus_and_its_mutations() {
    for (number, (target, property)) in properties::ALL.into_iter().enumerate() {
        let corpus = corpus(target);
        corpus.iter().for_each(|input| property(input));
        let mut random = Random::new(20_261_115).fork(number as u64);
        for _ in 0..2_000 {
            let mut input = corpus[random.below(corpus.len())].clone();
            for _ in 0..=random.below(4) {
                mutate(&mut input, &mut random, &corpus);
            }
            let shown = input.clone();
            let held = std::panic::catch_unwind(move || property(&input));
            assert!(held.is_ok(), "{target} does not hold for b\"{}\"", shown.escape_ascii());
        }
    }
}
