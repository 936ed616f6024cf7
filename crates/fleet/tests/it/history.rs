//! What the writes of a pair allow a read of it to say.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use kinfolk_core::Position;

/// What a check without a token may miss.
const STALENESS_MAX: Duration = Duration::from_secs(2);

/// Writes that are older than this have no part in any check any more.
const KEPT: Duration = Duration::from_secs(90);

/// A write of one pair.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// Whether the pair exists afterwards.
    exists: bool,
    /// When it was first tried.
    began: Instant,
    /// When it was acknowledged, and its position. Until then it may or may not have happened.
    acknowledged: Option<(Instant, Position)>,
}

/// The writes of one pair, which has one writer.
#[derive(Default)]
pub struct History {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What the pair was before the first write that is kept.
    before: bool,
    writes: VecDeque<Write>,
}

/// A read of a pair.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    pub began: Instant,
    pub ended: Instant,
    /// What the caller had seen of the shard.
    pub token: Option<Position>,
}

impl History {
    /// A pair that exists from the beginning, or not.
    pub fn new(exists: bool) -> Self {
        Self { state: Mutex::new(State { before: exists, writes: VecDeque::new() }) }
    }

    /// Notes that a write is tried from now on.
    pub fn begin(&self, exists: bool) {
        let mut state = self.state.lock().unwrap();
        state.writes.push_back(Write { exists, began: Instant::now(), acknowledged: None });
        while state.writes.len() > 2
            && state.writes[1].acknowledged.is_some_and(|(at, _)| at.elapsed() > KEPT)
        {
            let gone = state.writes.pop_front().unwrap();
            state.before = gone.exists;
        }
    }

    /// Notes that the last write was acknowledged.
    pub fn acknowledge(&self, position: Position) {
        let mut state = self.state.lock().unwrap();
        state.writes.back_mut().unwrap().acknowledged = Some((Instant::now(), position));
    }

    /// Notes that the last write was refused: it has not happened.
    pub fn refuse(&self) {
        self.state.lock().unwrap().writes.pop_back();
    }

    /// The position of the newest acknowledged write, and when it was acknowledged.
    pub fn newest(&self) -> Option<(Instant, Position)> {
        self.state.lock().unwrap().writes.iter().rev().find_map(|write| write.acknowledged)
    }

    /// What the pair is when nobody writes any more.
    pub fn last(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.writes.back().map_or(state.before, |write| write.exists)
    }

    /// Whether some order of the writes allows a read to say this.
    pub fn allows(&self, read: Read, exists: bool) -> bool {
        let state = self.state.lock().unwrap();
        // The last write that the read must have seen.
        let is_seen = |write: &Write| {
            write.acknowledged.is_some_and(|(at, position)| match read.token {
                Some(token) => position.shard == token.shard && position.sequence <= token.sequence,
                None => at + STALENESS_MAX <= read.began,
            })
        };
        let seen = state.writes.iter().rposition(is_seen);
        let oldest = seen.map_or(state.before, |index| state.writes[index].exists);
        let later = state.writes.iter().skip(seen.map_or(0, |index| index + 1));
        let mut possible = later.take_while(|write| write.began <= read.ended).map(|write| write.exists);
        oldest == exists || possible.any(|possible| possible == exists)
    }

    /// Everything that is known, for a failure.
    pub fn describe(&self, read: Read, since: Instant) -> String {
        let state = self.state.lock().unwrap();
        let moment = |at: Instant| at.saturating_duration_since(since).as_secs_f64();
        let line = |write: &Write| {
            let acknowledged = write.acknowledged.map(|(at, position)| (moment(at), position.to_string()));
            format!("{} from {:.3} on, acknowledged {acknowledged:?}", write.exists, moment(write.began))
        };
        let writes: Vec<String> = state.writes.iter().rev().take(8).map(line).collect();
        let (at, took) = (moment(read.began), read.ended.duration_since(read.began));
        let token = read.token.map(|token| token.to_string());
        format!(
            "at {at:.3} s for {took:?} with {token:?}: before {}; newest first: {}",
            state.before,
            writes.join("; ")
        )
    }
}

#[test]
fn a_history_allows_what_can_have_happened_and_nothing_else() {
    use kinfolk_core::{Sequence, Shard};
    let history = History::new(false);
    let start = Instant::now();
    let at = |millis| start + Duration::from_millis(millis);
    let position = |number| Sequence(number).on(Shard(0));
    history.state.lock().unwrap().writes.extend([
        Write { exists: true, began: at(100), acknowledged: Some((at(200), position(5))) },
        Write { exists: false, began: at(5_000), acknowledged: Some((at(5_100), position(9))) },
        Write { exists: true, began: at(9_000), acknowledged: None },
    ]);
    let allows = |began, ended, token: Option<u64>, exists| {
        let read = Read { began: at(began), ended: at(ended), token: token.map(position) };
        history.allows(read, exists)
    };
    // Before the first write begins, it can't have happened.
    assert!(allows(0, 50, None, false) && !allows(0, 50, None, true));
    assert!(allows(0, 150, None, true));
    // Two seconds after it was acknowledged, it must be seen.
    assert!(allows(2_100, 2_100, None, false) && !allows(2_300, 2_300, None, false));
    // With a token, at once.
    assert!(!allows(300, 300, Some(5), false) && allows(300, 300, Some(4), false));
    assert!(!allows(5_200, 5_200, Some(9), true) && allows(5_200, 5_200, Some(8), true));
    // One that nobody has heard of may have happened, or not.
    assert!(allows(20_000, 20_000, None, true) && allows(20_000, 20_000, None, false));
}
