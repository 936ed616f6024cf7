//! Reads from a server after a fault. An answer that reports a failure of the server is noted; every other answer must be
//! right.

use std::cell::RefCell;

use serde_json::Value;

use super::super::client::{Answer, Ask, Client};

/// How many items a page has: so few that lists take several.
const PAGE: usize = 37;
/// The log is read faster.
const LOG_PAGE: usize = 1_000;

pub struct Reader<'a> {
    client: &'a Client,
    told: RefCell<Vec<String>>,
}

/// Something that was read, unless the server said that it cannot be.
pub type Read<T> = Result<Option<T>, String>;

impl<'a> Reader<'a> {
    pub fn new(client: &'a Client) -> Self {
        Self { client, told: RefCell::default() }
    }

    /// What the server said that it cannot answer, and why.
    pub fn told(&self) -> Vec<String> {
        self.told.borrow().clone()
    }

    /// A whole answer that is not a failure of the server's.
    pub fn ask(&self, ask: &Ask<'_>) -> Read<Answer> {
        let answer = self.client.send(ask).ok_or_else(|| format!("{} was not answered", ask.path))?;
        if answer.status < 500 {
            return Ok(Some(answer));
        }
        if answer.code().is_empty() {
            return Err(format!("{} failed without a reason: {answer:?}", ask.path));
        }
        self.told.borrow_mut().push(format!("{}: {}", ask.path, answer.body));
        Ok(None)
    }

    /// Something that is there.
    pub fn get(&self, path: &str) -> Read<Value> {
        match self.ask(&Ask::get(path))? {
            Some(answer) if answer.status != 200 => Err(format!("{path} was answered {answer:?}")),
            answer => Ok(answer.map(|answer| answer.json())),
        }
    }

    /// A whole list, in pages.
    pub fn list(&self, path: &str) -> Read<Vec<Value>> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let Some(page) = self.get(&format!("{path}{separator}limit={PAGE}{cursor}"))? else {
                return Ok(None);
            };
            all.extend(page["items"].as_array().into_iter().flatten().cloned());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(Some(all)),
            }
        }
    }

    /// All changes after a token, or all that the log has, and the token of the newest.
    pub fn changes(&self, after: Option<&str>) -> Read<(Vec<Value>, String)> {
        let (mut all, mut token) = (Vec::new(), after.map(str::to_owned));
        loop {
            let after = token.as_ref().map_or(String::new(), |token| format!("&after={token}"));
            let Some(page) = self.get(&format!("/v1/changes?limit={LOG_PAGE}{after}"))? else {
                return Ok(None);
            };
            let next = page["next"].as_str().ok_or("a page of the log ends without a token")?.to_owned();
            let items = page["items"].as_array().ok_or("a page of the log has no items")?;
            all.extend(items.iter().cloned());
            if items.len() < LOG_PAGE {
                return Ok(Some((all, next)));
            }
            token = Some(next);
        }
    }

    /// The newest position that can be read.
    pub fn newest_position(&self) -> Read<usize> {
        let Some(answer) = self.ask(&Ask::get("/metrics"))? else { return Ok(None) };
        let lines = &mut answer.body.lines();
        let found =
            lines.find_map(|line| line.strip_prefix("kinfolk_log_position_newest ")?.parse::<f64>().ok());
        found
            .map(|position| Some(position as usize))
            .ok_or_else(|| "there is no metric of the newest position".into())
    }
}
