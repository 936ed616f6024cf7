//! Shared budgets: simulated processes over a simulated store, which does what [`Spending`] says.

use kinfolk_core::comments::{Parent, ParentKind};
use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;
const ROUND: u64 = SECOND / 10;

/// When tests begin: a process has been there for a while.
const START: u64 = 100 * SECOND;

/// What the store knows of one budget: when it is full again, in microseconds of a clock of its own.
#[derive(Default)]
struct Bucket {
    full_at: Option<i64>,
}

impl Bucket {
    fn exchange(&mut self, spending: &Spending, now: u64) -> Duration {
        let now = (now / 1_000) as i64 + 77_000_000;
        let known = self.full_at.filter(|full_at| *full_at + 1_000_000 > now);
        let full_at = match known {
            Some(full_at) => (full_at + spending.spent_micros).max(now + spending.at_least_micros),
            None => now + spending.missing_micros,
        };
        self.full_at = Some(full_at);
        Duration::from_micros(u64::try_from(full_at - now).unwrap_or(0))
    }
}

/// A process, with the budget of one user.
struct Process {
    shared: Arc<SharedBudgets>,
    budget: Arc<Budget>,
}

impl Process {
    fn new(rate: Rate) -> Self {
        let shared = Arc::new(SharedBudgets::default());
        shared.drain_at(START);
        let budget = shared.budget(Some(rate), BudgetName::User(Id::Integer(1)));
        Self { shared, budget }
    }

    fn pair(rate: Rate) -> [Self; 2] {
        [Self::new(rate), Self::new(rate)]
    }

    /// How many of so many requests are admitted.
    fn admitted(&self, count: u32, now: u64) -> u32 {
        (0..count).filter(|_| self.budget.take_at(1, now).is_ok()).count() as u32
    }

    fn exchange(&self, bucket: &mut Bucket, now: u64) {
        let round = self.shared.drain_at(now);
        let replies: Vec<_> =
            round.spendings().iter().map(|spending| Some(bucket.exchange(spending, now))).collect();
        self.shared.apply_at(round, replies, now);
    }

    fn fail(&self, now: u64) {
        let round = self.shared.drain_at(now);
        self.shared.apply_at(round, [], now);
    }
}

fn hourly(burst: u32) -> Rate {
    Rate::per_hour(20).with_burst(burst)
}

#[test]
fn what_one_process_admits_is_missing_from_the_other() {
    let [one, other] = Process::pair(hourly(20));
    let mut bucket = Bucket::default();
    assert_eq!(other.admitted(1, START), 1);
    assert_eq!(one.admitted(100, START), 20);
    for process in [&one, &other] {
        process.exchange(&mut bucket, START + ROUND);
    }
    assert_eq!([one.admitted(9, START + ROUND), other.admitted(9, START + ROUND)], [0, 0]);
    // The request too many is a debt of both.
    one.exchange(&mut bucket, START + 2 * ROUND);
    let next = START + 181 * SECOND;
    assert_eq!([one.admitted(9, next), other.admitted(9, next)], [0, 0]);
    assert_eq!(one.admitted(9, START + 361 * SECOND), 1);
    assert_eq!(one.shared.counts(), ExchangeCounts { exchanged: 2, failed: 0, latest: 1 });
}

#[test]
fn a_low_budget_is_refreshed_for_a_while_though_nobody_spends_here() {
    let [one, other] = Process::pair(hourly(10));
    let mut bucket = Bucket::default();
    assert_eq!(one.admitted(6, START), 6);
    one.exchange(&mut bucket, START + ROUND);
    assert_eq!(other.admitted(3, START + ROUND), 3);
    other.exchange(&mut bucket, START + ROUND);
    one.exchange(&mut bucket, START + 2 * ROUND);
    assert_eq!(one.budget.state_at(START + 2 * ROUND).unwrap().remaining, 1);
    let drained = |at: u64| one.shared.drain_at(at);
    let round = drained(START + 5 * SECOND);
    assert_eq!(round.spendings().len(), 1);
    one.shared.apply_at(round, [Some(Duration::ZERO)], START + 5 * SECOND);
    assert_eq!(drained(START + 6 * SECOND).spendings(), []);
    assert_eq!(one.admitted(1, START + 6 * SECOND), 1);
    assert_eq!(drained(START + 6 * SECOND).spendings().len(), 1, "it is noted again");
}

#[test]
fn without_replies_each_process_keeps_to_the_limit_by_itself() {
    let [one, other] = Process::pair(hourly(20));
    let mut bucket = Bucket::default();
    for process in [&one, &other] {
        assert_eq!(process.admitted(100, START), 20);
        process.fail(START + ROUND);
        process.fail(START + 2 * ROUND);
        assert_eq!(process.admitted(100, START + 181 * SECOND), 1);
        process.fail(START + 182 * SECOND);
    }
    assert_eq!(one.shared.counts(), ExchangeCounts { exchanged: 0, failed: 3, latest: 1 });
    // Afterwards a third process learns what is missing, and nobody pays for what the others did meanwhile.
    let third = Process::new(hourly(20));
    let back = START + 183 * SECOND;
    for process in [&one, &other] {
        process.exchange(&mut bucket, back);
    }
    assert_eq!(third.admitted(1, back), 1);
    third.exchange(&mut bucket, back);
    assert_eq!(third.admitted(9, back), 0);
    assert_eq!(third.admitted(9, START + 3 * 181 * SECOND), 1);
}

#[test]
fn an_exchange_whose_reply_was_lost_is_not_counted_twice() {
    let one = Process::new(hourly(20));
    let mut bucket = Bucket::default();
    one.admitted(4, START);
    let round = one.shared.drain_at(START + ROUND);
    bucket.exchange(&round.spendings()[0], START + ROUND);
    one.shared.apply_at(round, [None], START + ROUND);
    one.exchange(&mut bucket, START + 2 * ROUND);
    assert_eq!(one.budget.state_at(START + 2 * ROUND).unwrap().remaining, 16);
}

#[test]
fn a_shared_budget_that_was_lost_comes_back() {
    let [one, other] = Process::pair(hourly(20));
    let mut bucket = Bucket::default();
    one.admitted(19, START);
    one.exchange(&mut bucket, START + ROUND);
    bucket = Bucket::default();
    one.exchange(&mut bucket, START + 2 * ROUND);
    assert_eq!(other.admitted(1, START + 2 * ROUND), 1);
    other.exchange(&mut bucket, START + 2 * ROUND);
    assert_eq!(other.admitted(9, START + 2 * ROUND), 0);
}

#[test]
fn what_is_taken_while_an_exchange_is_on_its_way_is_not_forgotten() {
    let one = Process::new(hourly(20));
    let mut bucket = Bucket::default();
    one.admitted(5, START);
    let round = one.shared.drain_at(START + ROUND);
    one.admitted(3, START + ROUND);
    let reply = bucket.exchange(&round.spendings()[0], START + ROUND);
    one.shared.apply_at(round, [Some(reply)], START + 2 * ROUND);
    assert_eq!(one.budget.state_at(START + 2 * ROUND).unwrap().remaining, 12);
    one.exchange(&mut bucket, START + 2 * ROUND);
    assert_eq!(one.budget.state_at(START + 2 * ROUND).unwrap().remaining, 12);
}

#[test]
fn what_is_given_back_can_be_taken_by_another_process() {
    let [one, other] = Process::pair(hourly(2));
    let mut bucket = Bucket::default();
    one.admitted(2, START);
    one.exchange(&mut bucket, START + ROUND);
    one.budget.give_back(1);
    one.exchange(&mut bucket, START + 2 * ROUND);
    assert_eq!(one.budget.state_at(START + 2 * ROUND).unwrap().remaining, 1);
    assert_eq!(other.admitted(1, START + 2 * ROUND), 1);
    other.exchange(&mut bucket, START + 2 * ROUND);
    assert_eq!(other.admitted(1, START + 2 * ROUND), 0);
}

#[test]
fn a_rate_may_change_during_an_exchange() {
    let one = Process::new(hourly(20));
    let mut bucket = Bucket::default();
    one.admitted(20, START);
    let round = one.shared.drain_at(START + ROUND);
    one.budget.set_rate(Some(Rate::per_hour(3_600).with_burst(20)));
    let reply = bucket.exchange(&round.spendings()[0], START + ROUND);
    one.shared.apply_at(round, [Some(reply)], START + ROUND);
    // What was taken stays taken, at its price.
    assert!(one.budget.state_at(START + 60 * SECOND).unwrap().reset > Duration::from_secs(3_000));
    one.budget.set_rate(None);
    one.budget.take(1_000).unwrap();
    one.exchange(&mut bucket, START + 2 * ROUND);
    one.budget.take(1_000).unwrap();
    assert_eq!(one.budget.state(), None);
}

#[test]
fn budgets_without_a_limit_are_not_exchanged() {
    let shared = Arc::new(SharedBudgets::default());
    let budget = shared.budget(None, BudgetName::Key("3f9a".into()));
    budget.take(5).unwrap();
    budget.give_back(5);
    assert_eq!(shared.drain().spendings(), []);
}

#[test]
fn a_round_is_bounded_and_the_rest_comes_next() {
    let shared = Arc::new(SharedBudgets::default());
    let rate = Some(Rate::per_hour(10));
    let budgets: Vec<_> = (0..ROUND_MAX as u64 + 5)
        .map(|user| shared.budget(rate, BudgetName::User(Id::Integer(user))))
        .collect();
    budgets.iter().for_each(|budget| budget.take(1).unwrap());
    let round = shared.drain();
    assert_eq!(round.spendings().len(), ROUND_MAX);
    let replies: Vec<_> = round.spendings().iter().map(|_| Some(Duration::ZERO)).collect();
    shared.apply(round, replies);
    assert_eq!(shared.drain().spendings().len(), 5);
}

#[test]
fn names_are_distinct_and_plain() {
    let id = Id::Integer(42);
    let parent = Parent { kind: ParentKind::Item, id: Id::Uuid(7) };
    let names = [
        BudgetName::Key("3f9a1c22d07b".into()),
        BudgetName::User(id),
        BudgetName::Changes(id),
        BudgetName::Author(id),
        BudgetName::Parent(parent),
    ];
    assert_eq!(
        names.map(|name| name.to_string()),
        [
            "key.3f9a1c22d07b",
            "user.42",
            "changes.42",
            "author.42",
            "parent.item.00000000-0000-0000-0000-000000000007"
        ]
    );
}

#[test]
fn a_caller_that_keeps_to_its_rate_is_not_refused_wherever_it_asks() {
    // A burst that is far shorter than a round.
    let processes = Process::pair(Rate::per_second(100).with_burst(3));
    let mut bucket = Bucket::default();
    for step in 0..1_000 {
        let now = START + step * SECOND / 100;
        let process = &processes[(step % 2) as usize];
        assert_eq!(process.admitted(1, now), 1, "request {step}");
        if step % 10 == 9 {
            // They exchange one after the other.
            processes[0].exchange(&mut bucket, now);
            processes[1].exchange(&mut bucket, now + 3_000_000);
        }
    }
}

proptest! {
    /// However many processes a caller hammers, they admit the burst, the rate, and what they admit between exchanges.
    #[test]
    fn processes_together_keep_to_the_limit(
        count in 1u32..200,
        burst in 1u32..100,
        processes in 2usize..5,
        demand in prop::collection::vec(0u32..20, 100..300),
    ) {
        let rate = Rate::per_second(count).with_burst(burst);
        let processes: Vec<_> = (0..processes).map(|_| Process::new(rate)).collect();
        let mut bucket = Bucket::default();
        let mut rounds: Vec<u32> = vec![0];
        for (step, wanted) in demand.into_iter().enumerate() {
            let now = START + step as u64 * ROUND / 4;
            let admitted: u32 = processes.iter().map(|process| process.admitted(wanted, now)).sum();
            *rounds.last_mut().unwrap() += admitted;
            if step % 4 == 3 {
                processes.iter().for_each(|process| process.exchange(&mut bucket, now));
                rounds.push(0);
            }
            // A process does not see what others spend during a round, nor what they exchange after it.
            let unseen = rounds.windows(2).map(|pair| pair[0] + pair[1]).max().unwrap_or(rounds[0]);
            let elapsed = (now - START + 2 * ROUND) as f64 / SECOND as f64;
            let allowed = f64::from(burst) + f64::from(count) * elapsed + f64::from(unseen) + 1.0;
            prop_assert!(f64::from(rounds.iter().sum::<u32>()) <= allowed, "{rounds:?}");
        }
    }
}
