//! The types of settings: each is parsed from text and formatted in one canonical form.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use kinfolk_core::suggestions::Ranking;
use kinfolk_core::{IdKind, names};
use kinfolk_server::Rate;
use kinfolk_server::rest::Origin;

/// The value of a setting.
pub(crate) trait Value: Sized {
    /// Whether a file has it in quotes.
    const QUOTED: bool = true;
    /// Whether its flag can omit the value.
    const SWITCH: bool = false;

    /// Parses it; the error says what is expected.
    fn parse(text: &str) -> Result<Self, String>;

    /// Formats it so that parsing gives the same value.
    fn text(&self) -> String;

    /// Formats it as a value of a TOML file, without secrets.
    fn literal(&self) -> String {
        if Self::QUOTED { quoted(&self.text()) } else { self.text() }
    }
}

/// A string in a TOML file.
pub(super) fn quoted(text: &str) -> String {
    // A JSON string is a valid TOML string.
    serde_json::Value::from(text).to_string()
}

/// An optional value: the empty text is none.
impl<T: Value> Value for Option<T> {
    const QUOTED: bool = T::QUOTED;
    const SWITCH: bool = T::SWITCH;

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { T::parse(text).map(Some) }
    }

    fn text(&self) -> String {
        self.as_ref().map(T::text).unwrap_or_default()
    }

    fn literal(&self) -> String {
        self.as_ref().map_or_else(|| quoted(""), T::literal)
    }
}

impl Value for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("expected a path".to_owned()) } else { Ok(Self::from(text)) }
    }

    fn text(&self) -> String {
        self.display().to_string()
    }
}

impl Value for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn text(&self) -> String {
        self.clone()
    }
}

impl Value for SocketAddr {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "expected an address and a port, such as 127.0.0.1:7400".to_owned())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    const QUOTED: bool = false;
    const SWITCH: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" | "" => Ok(false),
            _ => Err("expected true or false".to_owned()),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for IdKind {
    fn parse(text: &str) -> Result<Self, String> {
        Self::from_name(text).ok_or_else(|| "expected integer or uuid".to_owned())
    }

    fn text(&self) -> String {
        self.name().to_owned()
    }
}

/// A whole number from 0.
impl Value for u32 {
    const QUOTED: bool = false;

    fn parse(text: &str) -> Result<Self, String> {
        parse_number(text)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// A number of things: at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) usize);

impl Value for Count {
    const QUOTED: bool = false;

    fn parse(text: &str) -> Result<Self, String> {
        match parse_number::<usize>(text)? {
            0 => Err("expected a number from 1".to_owned()),
            count => Ok(Self(count)),
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A whole number within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Within<const MIN: u32, const MAX: u32>(pub(crate) u32);

impl<const MIN: u32, const MAX: u32> Value for Within<MIN, MAX> {
    const QUOTED: bool = false;

    fn parse(text: &str) -> Result<Self, String> {
        let number = parse_number(text).ok().filter(|number| (MIN..=MAX).contains(number));
        number.map(Self).ok_or_else(|| format!("expected a whole number from {MIN} to {MAX}"))
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A fraction from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fraction(pub(crate) f64);

impl Value for Fraction {
    const QUOTED: bool = false;

    fn parse(text: &str) -> Result<Self, String> {
        let number = text.trim().parse().ok().filter(|number| (0.0..=1.0).contains(number));
        number.map(Self).ok_or_else(|| "expected a number from 0 to 1".to_owned())
    }

    fn text(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A duration; a bare number is seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

const TIME_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("ms", 1), ("s", 1_000)];

impl Value for Span {
    fn parse(text: &str) -> Result<Self, String> {
        let expected = || "expected a time such as 30 s, 500 ms, 10 min, 12 h or 7 d".to_owned();
        let text = text.trim();
        let with_unit = TIME_UNITS.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, *ms)));
        let (number, ms) = with_unit.unwrap_or((text, 1_000));
        let number: f64 = number.trim().parse().map_err(|_| expected())?;
        let span = Duration::try_from_secs_f64(number * ms as f64 / 1_000.0).map_err(|_| expected())?;
        Ok(Self(span))
    }

    fn text(&self) -> String {
        let ms = self.0.as_millis() as u64;
        if ms == 0 {
            return "0 s".to_owned();
        }
        let fits = |(_, unit): &&(&str, u64)| ms.is_multiple_of(*unit);
        let best = TIME_UNITS.iter().filter(fits).max_by_key(|(_, unit)| *unit).unwrap_or(&("ms", 1));
        format!("{} {}", ms / best.1, best.0)
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

const BYTE_UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl Value for Bytes {
    fn parse(text: &str) -> Result<Self, String> {
        let expected = || "expected a size such as 64 MiB, 10 GiB or a number of bytes".to_owned();
        let text = text.trim();
        let with_unit = BYTE_UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
        let (number, unit) = with_unit.unwrap_or((text, 1));
        let number: u64 = number.trim().parse().map_err(|_| expected())?;
        number.checked_mul(unit).map(Self).ok_or_else(expected)
    }

    fn text(&self) -> String {
        let fits = BYTE_UNITS.iter().find(|(_, unit)| self.0 > 0 && self.0.is_multiple_of(*unit));
        fits.map_or_else(|| self.0.to_string(), |(name, unit)| format!("{} {name}", self.0 / unit))
    }
}

/// Names, separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl Value for Names {
    fn parse(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Self(names.map(str::to_owned).collect()))
    }

    fn text(&self) -> String {
        self.0.join(",")
    }
}

/// Origins of web pages, separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origins(pub(crate) Vec<Origin>);

impl Value for Origins {
    fn parse(text: &str) -> Result<Self, String> {
        let origins = text.split(',').map(str::trim).filter(|origin| !origin.is_empty());
        origins
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map(Self)
            .map_err(|error: kinfolk_core::Error| error.to_string())
    }

    fn text(&self) -> String {
        self.0.iter().map(Origin::as_str).collect::<Vec<_>>().join(",")
    }
}

/// A rate limit, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<Rate>);

impl Value for Limit {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let rate = text.parse().map_err(|error| format!("{error}; or none"))?;
        Ok(Self(Some(rate)))
    }

    fn text(&self) -> String {
        self.0.map_or("none".to_owned(), |rate| rate.to_string())
    }
}

/// A choice between a few names.
macro_rules! choices {
    ($($name:ident),+) => {
        $(impl Value for $name {
            fn parse(text: &str) -> Result<Self, String> {
                let names = || Self::ALL.map(Self::name).join(", ");
                Self::from_name(text).ok_or_else(|| format!("expected one of {}", names()))
            }

            fn text(&self) -> String {
                self.name().to_owned()
            }
        })+
    };
}

choices! { LogFormat, Ranking, Role, SaslMechanism }

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON document per line.
    Json,
}

names! { LogFormat { Text => "text", Json => "json" } }

/// How a process proves to Kafka who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaslMechanism {
    /// Name and password.
    Plain,
    /// A challenge, with SHA-256.
    ScramSha256,
    /// A challenge, with SHA-512.
    ScramSha512,
}

names! {
    SaslMechanism { Plain => "plain", ScramSha256 => "scram-sha-256", ScramSha512 => "scram-sha-512" }
}

/// The role of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Everything.
    All,
    /// Serves the API.
    Api,
    /// Sends the changes of the logs to Kafka.
    Relay,
    /// Projects the follower side from the changes.
    Project,
    /// Compares the follower side with the truth, and repairs it.
    Reconcile,
    /// Pushes posts to inboxes.
    FanOut,
    /// Computes suggestions for all users.
    Suggest,
}

names! {
    Role {
        All => "all", Api => "api", Relay => "relay", Project => "project", Reconcile => "reconcile",
        FanOut => "fan-out", Suggest => "suggest"
    }
}

impl Role {
    /// Whether a process serves the graph, or only its own health, readiness and metrics.
    pub(crate) fn serves_api(self) -> bool {
        matches!(self, Self::All | Self::Api)
    }
}

fn parse_number<T: FromStr>(text: &str) -> Result<T, String> {
    text.replace('_', "").parse().map_err(|_| "expected a whole number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical<T: Value>(text: &str) -> Result<String, String> {
        T::parse(text).map(|value| value.text())
    }

    #[test]
    fn values_have_a_canonical_text() {
        for (text, expected) in
            [("7 d", "7 d"), ("90", "90 s"), ("120 s", "2 min"), ("0.5", "500 ms"), ("0", "0 s")]
        {
            assert_eq!(canonical::<Span>(text), Ok(expected.to_owned()));
        }
        for (text, expected) in [("64 MiB", "64 MiB"), ("2048", "2 KiB"), ("1000", "1000"), ("0", "0")] {
            assert_eq!(canonical::<Bytes>(text), Ok(expected.to_owned()));
        }
        assert_eq!(canonical::<bool>("1"), Ok("true".to_owned()));
        assert_eq!(canonical::<u32>("10_000"), Ok("10000".to_owned()));
        assert_eq!(canonical::<Option<PathBuf>>(""), Ok(String::new()));
        assert_eq!(canonical::<Ranking>("adamic-adar"), Ok("adamic-adar".to_owned()));
        assert_eq!(canonical::<Role>("fan-out"), Ok("fan-out".to_owned()));
        let origins = "https://A.example:443, http://localhost:3000,";
        assert_eq!(canonical::<Origins>(origins), Ok("https://a.example,http://localhost:3000".to_owned()));
    }

    #[test]
    fn errors_say_what_is_expected() {
        assert!(canonical::<Span>("-1 s").unwrap_err().contains("a time"));
        assert!(canonical::<Bytes>("99999999 TiB").unwrap_err().contains("a size"));
        assert!(canonical::<SocketAddr>("localhost").unwrap_err().contains("an address"));
        assert!(canonical::<LogFormat>("xml").unwrap_err().contains("text, json"));
        assert!(canonical::<Ranking>("fame").unwrap_err().contains("count, jaccard, adamic-adar"));
        assert!(canonical::<Count>("0").unwrap_err().contains("from 1"));
        assert!(canonical::<Within<1, 9>>("10").unwrap_err().contains("from 1 to 9"));
        assert!(canonical::<Within<1, 9>>("0").is_err() && canonical::<Within<1, 9>>("9").is_ok());
        assert!(canonical::<bool>("maybe").is_err());
        assert!(canonical::<Origins>("https://a.example,*").unwrap_err().contains("\"*\" is not an origin"));
    }
}
