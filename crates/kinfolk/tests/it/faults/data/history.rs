//! What was submitted, in the order that the change log gave to it. After a fault the log must hold a prefix of it with
//! everything that was acknowledged, and nothing that nobody submitted.

use serde_json::Value;

use super::super::client::Answer;
use super::model::Model;
use super::operation::Operation;
use super::reader::Reader;

/// An operation that is in the log; the first has position 1.
#[derive(Clone, Debug)]
pub struct Entry {
    pub operation: Operation,
    pub at: String,
    /// The post or comment that it is about, if it is about one.
    pub id: String,
    /// What acknowledged it, where it can be repeated.
    pub first: Option<String>,
    /// The token that acknowledged it.
    pub token: Option<String>,
}

/// An operation that is not known to be in the log.
#[derive(Clone, Debug)]
struct Pending {
    operation: Operation,
    is_acknowledged: bool,
    answer: Option<Answer>,
    /// Its place among all that was submitted.
    number: usize,
}

/// An acknowledgement that everything was already as asked, while the outcome of other operations is unknown.
#[derive(Clone, Debug)]
struct Promise {
    operation: Operation,
    number: usize,
}

/// How much of the known entries a log may have.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub at_least: usize,
    pub at_most: usize,
}

#[derive(Clone, Debug, Default)]
pub struct History {
    pub entries: Vec<Entry>,
    /// The effect of the entries.
    pub model: Model,
    pending: Vec<Pending>,
    promises: Vec<Promise>,
    submitted: usize,
    /// How many operations were refused for want of space.
    refused: usize,
    /// The log is read on from here.
    token: Option<String>,
    /// A write was refused because the storage had failed: no later one may be acknowledged.
    is_read_only: bool,
    refused_as_read_only: bool,
}

impl History {
    /// How many operations were submitted, whatever became of them.
    pub fn submitted(&self) -> usize {
        self.submitted
    }

    /// Whether the storage has kept an operation from being acknowledged.
    pub fn has_failures(&self) -> bool {
        self.refused + self.unknown() > 0
    }

    /// How many operations have an unknown outcome.
    fn unknown(&self) -> usize {
        self.pending.iter().filter(|pending| !pending.is_acknowledged).count()
    }

    /// A store that was opened after a fault goes on from what it holds: what did not come into its log never will.
    pub fn begin_again(&mut self) {
        let Self { entries, model, token, submitted, .. } = std::mem::take(self);
        *self = Self { entries, model, token, submitted, ..Self::default() };
    }

    /// Takes note of what answered an operation, if anything did. Complains about an answer that cannot be right.
    pub fn note(&mut self, operation: Operation, answer: Option<Answer>) -> Result<(), String> {
        self.submitted += 1;
        let Some(answer) = answer else {
            self.push(operation, false, None);
            return Ok(());
        };
        let changes = self.model.is_changed_by(&operation);
        if answer.status == operation.status() {
            if answer.changed != Some(changes) {
                return Err(format!("{operation:?} was to change something: {changes}; {answer:?}"));
            }
            if changes && self.is_read_only {
                return Err(format!("{operation:?} is acknowledged after the store went read-only"));
            }
            if changes {
                self.push(operation, true, Some(answer));
            } else if self.unknown() > 0 {
                self.promises.push(Promise { operation, number: self.submitted });
            }
            return Ok(());
        }
        match answer.code().as_str() {
            "read_only" => self.refused_as_read_only = true,
            // The last where rows in memory wait for a flush that fails, and there are too many of them.
            "closed" | "internal" => {}
            // This says that nothing was written.
            "storage_full" => {
                self.refused += 1;
                return Ok(());
            }
            _ => return Err(format!("{operation:?} was answered {answer:?}")),
        }
        self.push(operation, false, None);
        Ok(())
    }

    /// Takes note of an import that has ended in order.
    pub fn note_import(&mut self, operation: Operation) {
        self.submitted += 1;
        self.push(operation, true, None);
    }

    fn push(&mut self, operation: Operation, is_acknowledged: bool, answer: Option<Answer>) {
        let number = self.submitted;
        self.pending.push(Pending { operation, is_acknowledged, answer, number });
    }

    /// Reads what the log of a server that goes on has got since the last time.
    pub fn catch_up(&mut self, reader: &Reader<'_>) -> Result<(), String> {
        let (changes, token) = reader.changes(self.token.as_deref())?.ok_or("the log cannot be read")?;
        self.token = Some(token);
        self.is_read_only |= self.refused_as_read_only;
        let known = self.entries.len();
        for change in &changes {
            require_position(change, self.entries.len() + 1)?;
            self.take(change)?;
        }
        self.require_acknowledged()?;
        self.compare_texts(&changes, known + 1)
    }

    /// What a store holds that was opened after a fault. None if it says that it cannot tell.
    pub fn recovered(&self, reader: &Reader<'_>, bounds: Bounds) -> Result<Option<Self>, String> {
        let Some((changes, newest)) = reader.changes(None)?.zip(reader.newest_position()?) else {
            return Ok(None);
        };
        let (changes, token) = changes;
        let Bounds { at_least, at_most } = bounds;
        if newest < at_least {
            return Err(format!("the log ends at position {newest}, but {at_least} was acknowledged"));
        }
        let mut found = Self { token: Some(token), ..self.clone() };
        found.entries.truncate(newest.min(at_most));
        found.model = Model::default();
        found.entries.iter().for_each(|entry| found.model.apply(entry));
        // The beginning may be gone: the log is trimmed.
        let first = (newest + 1).checked_sub(changes.len()).ok_or("the log is longer than its end")?;
        for (position, change) in (first..).zip(&changes) {
            require_position(change, position)?;
            match found.entries.get(position - 1) {
                Some(entry) => entry.require(change)?,
                None => found.take(change)?,
            }
        }
        if found.entries.len() != newest {
            return Err(format!("the log ends at {newest}, but only {} is known", found.entries.len()));
        }
        found.require_acknowledged()?;
        found.require_promises()?;
        found.compare_texts(&changes, first)?;
        Ok(Some(found))
    }

    /// Finds the operation that a new change of the log is.
    fn take(&mut self, change: &Value) -> Result<(), String> {
        let is = |pending: &Pending| {
            let text = pending.operation.text();
            pending.operation.is(change) && text.is_none_or(|text| change["body"] == text)
        };
        // The same may have been submitted again after its first outcome was not known.
        let acknowledged = self.pending.iter().position(|pending| pending.is_acknowledged && is(pending));
        let found = acknowledged.or_else(|| self.pending.iter().position(is));
        let found = found.ok_or_else(|| format!("nobody has submitted {change}"))?;
        let Pending { operation, answer, number, .. } = self.pending.remove(found);
        let text = |field: &str| change[field].as_str().unwrap_or_default().to_owned();
        let id = if change.get("comment").is_some() { text("comment") } else { text("post") };
        let is_new = matches!(operation, Operation::Post(_) | Operation::Comment(_));
        let first = answer.as_ref().filter(|_| is_new).map(|answer| answer.body.clone());
        if let Some(answer) = answer.as_ref().filter(|_| is_new)
            && answer.json()["id"] != id
        {
            return Err(format!("{answer:?} is logged as {change}"));
        }
        // A promise that was made before does not hold for what came after it.
        self.promises
            .retain(|promise| promise.number > number || !promise.operation.conflicts_with(&operation));
        let token = answer.and_then(|answer| answer.token);
        let entry = Entry { operation, at: text("at"), id, first, token };
        self.model.apply(&entry);
        self.entries.push(entry);
        Ok(())
    }

    fn require_acknowledged(&self) -> Result<(), String> {
        match self.pending.iter().find(|pending| pending.is_acknowledged) {
            Some(lost) => Err(format!("acknowledged, and not in the log: {:?}", lost.operation)),
            None => Ok(()),
        }
    }

    fn require_promises(&self) -> Result<(), String> {
        match self.promises.iter().find(|promise| self.model.is_changed_by(&promise.operation)) {
            Some(Promise { operation, .. }) => {
                Err(format!("lost after it was acknowledged as unchanged: {operation:?}"))
            }
            None => Ok(()),
        }
    }

    /// The log shows a text only while it is what an active comment says, and a payload until its post is deleted.
    fn compare_texts(&self, changes: &[Value], first: usize) -> Result<(), String> {
        for (entry, change) in self.entries[first - 1..].iter().zip(changes) {
            if change["body"].as_str() != self.model.told_text(entry)
                || change["payload"].as_str() != self.model.logged_payload(entry)
            {
                return Err(format!("{entry:?} is logged as {change}"));
            }
        }
        Ok(())
    }
}

impl Entry {
    /// Whether a change of the log is this one.
    fn require(&self, change: &Value) -> Result<(), String> {
        let id = change.get("comment").or(change.get("post")).and_then(Value::as_str).unwrap_or_default();
        let is_same = self.operation.is(change) && change["at"] == self.at.as_str() && id == self.id;
        if is_same { Ok(()) } else { Err(format!("{self:?} is logged as {change}")) }
    }
}

fn require_position(change: &Value, position: usize) -> Result<(), String> {
    if change["position"].as_str() == Some(&format!("0-{position}")) {
        return Ok(());
    }
    Err(format!("position {position} is logged as {change}"))
}
