//! Where in a recording it is worth losing power.

use super::super::random::Random;
use super::disk::Disk;
use super::record::{Activity, Recording, token_sent};
use super::replay::Replay;
use super::trace::{Call, Event, Trace};

/// Numbers of events, counted over all processes of a recording.
pub struct Places {
    /// After these the disk, or what is known of the answers, may differ from before.
    pub all: Vec<usize>,
    /// After these something is not durable yet, by what the process is doing: starting, and then working.
    pub pending: Vec<Vec<usize>>,
}

impl Places {
    pub fn of(recording: &Recording) -> Self {
        let mut replay = Replay::new(Disk::empty(), &recording.root);
        let mut places = Self { all: Vec::new(), pending: Vec::new() };
        let mut place = 0;
        for (activity, trace) in &recording.processes {
            replay.new_process();
            places.pending.push(Vec::new());
            let mut starting = *activity == Activity::Serve;
            for &event in &trace.events {
                replay
                    .step(trace, event)
                    .unwrap_or_else(|problem| panic!("the recording cannot be replayed: {problem}"));
                let answers = token_of(trace, event).is_some();
                if answers && starting {
                    starting = false;
                    places.pending.push(Vec::new());
                }
                let changes = match event {
                    Event::Begin(_) => answers,
                    Event::End(index) => {
                        changes_files(&trace.calls[index]) && !replay.is_elsewhere(&trace.calls[index])
                    }
                    Event::Exit(_) => true,
                };
                if changes {
                    places.all.push(place);
                }
                if changes && replay.disk.has_pending() {
                    places.pending.last_mut().expect("there is a phase").push(place);
                }
                place += 1;
            }
        }
        places.pending.retain(|phase| !phase.is_empty());
        places
    }

    /// Some places in order, perhaps with repetitions. Where everything is durable there is little to get wrong, so that
    /// most are elsewhere; and making a store takes fewer calls than using it, so that each phase gets its share.
    pub fn choose(&self, count: usize, random: &mut Random) -> Vec<usize> {
        let choose = |_| {
            let from =
                if random.once_in(4) { &self.all } else { &self.pending[random.below(self.pending.len())] };
            from[random.below(from.len())]
        };
        let mut chosen: Vec<usize> = (0..count).map(choose).collect();
        chosen.sort_unstable();
        chosen
    }
}

/// Whether a call may change what is on the disk or what a power loss leaves of it.
pub fn changes_files(call: &Call) -> bool {
    match call.name.as_str() {
        "read" | "readv" | "lseek" | "close" | "mmap" | "fcntl" | "dup" | "dup2" | "dup3" => false,
        "open" | "openat" => {
            (1..3).any(|index| call.word(index).contains("O_CREAT") || call.word(index).contains("O_TRUNC"))
        }
        "write" => call.integer(0).is_some_and(|descriptor| descriptor > 2),
        "sendto" | "sendmsg" => false,
        _ => true,
    }
}

/// The token that is begun to be sent.
pub fn token_of(trace: &Trace, event: Event) -> Option<&str> {
    match event {
        Event::Begin(index) => token_sent(&trace.calls[index]),
        _ => None,
    }
}
