//! Amounts of money and time in a scenario file.
//!
//! Suggestions for durations in another form: `2 sec`, `1m30`, `500ms-900ms`.

use std::time::Duration;

use serde_json::{Value, json};

use super::ReadContext;
use super::shape::{FormatShape, IntegerField};
use super::tree::{TomlNode, TomlValue};
use crate::base::seeded_random::Latency;
use crate::scenario::spec::policy::Rate;

/// An amount of US dollars.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dollars(pub f64);

impl FormatShape for Dollars {
    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 1_000_000 })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        read_number(node, cx, 0.0, 1e6).map(Self)
    }
}

/// A duration above zero in seconds, kept as whole milliseconds: a number, or a string such as
/// `300ms`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds(pub Duration);

impl FormatShape for Seconds {
    fn schema() -> Value {
        seconds_schema(0.001, 86_400.0)
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        read_seconds(node, cx, 0.001, 86_400.0).map(Self)
    }
    fn default_json(&self) -> Value {
        self.0.as_secs_f64().into()
    }
}

impl Seconds {
    /// A whole number of seconds.
    pub fn from_whole_seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

/// How long a question stays open, up to 30 days: like [`Seconds`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenTime(pub Duration);

/// The longest time that a question may stay open, in seconds.
const MAX_OPEN_SECONDS: f64 = 30.0 * 86_400.0;

impl FormatShape for OpenTime {
    fn schema() -> Value {
        let text = json!({ "type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?(ms|s|m|h|d)\s*$" });
        json!({ "oneOf": [{ "type": "number", "minimum": 0.001, "maximum": MAX_OPEN_SECONDS }, text] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        // Only people take hours and days.
        let units = [('h', 3_600.0), ('d', 86_400.0)];
        if let TomlValue::Text(text) = &node.value
            && let Some((amount, unit)) = units.iter().find_map(|(unit, seconds)| {
                let amount = text.trim().strip_suffix(*unit)?.trim_end().parse::<f64>().ok()?;
                Some((amount, seconds))
            })
        {
            let seconds = amount * unit;
            if (0.001..=MAX_OPEN_SECONDS).contains(&seconds) {
                return Some(Self(milliseconds(seconds)));
            }
            cx.error(node.at, format!("{text:?} is out of range"), "at most 30d");
            return None;
        }
        read_seconds(node, cx, 0.001, MAX_OPEN_SECONDS).map(Self)
    }
}

/// A number between two integers, both included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number<const MIN: u32, const MAX: u32>(pub f64);

impl<const MIN: u32, const MAX: u32> FormatShape for Number<MIN, MAX> {
    fn default_json(&self) -> Value {
        self.0.into()
    }
    fn schema() -> Value {
        json!({ "type": "number", "minimum": MIN, "maximum": MAX })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        read_number(node, cx, f64::from(MIN), f64::from(MAX)).map(Self)
    }
}

/// A share, from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fraction(pub f64);

impl FormatShape for Fraction {
    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        read_number(node, cx, 0.0, 1.0).map(Self)
    }
    fn default_json(&self) -> Value {
        self.0.into()
    }
}

impl FormatShape for Rate {
    fn schema() -> Value {
        json!({ "type": "number", "minimum": Rate::MIN_SHARE, "maximum": 1 })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        read_number(node, cx, Self::MIN_SHARE, 1.0).map(Self::from_share)
    }
    fn default_json(&self) -> Value {
        self.share().into()
    }
}

/// Time since a clock was started: `2s`, or a number of seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClockTime(pub Duration);

impl FormatShape for ClockTime {
    fn schema() -> Value {
        seconds_schema(0.0, MAX_SECONDS)
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        read_seconds(node, cx, 0.0, MAX_SECONDS).map(Self)
    }
}

/// A duration in seconds, zero included, kept as whole milliseconds: a number, or a string such as
/// `300ms`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DurationOrZero(pub Duration);

impl FormatShape for DurationOrZero {
    fn schema() -> Value {
        seconds_schema(0.0, 86_400.0)
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        read_seconds(node, cx, 0.0, 86_400.0).map(Self)
    }
}

/// A duration in units of `MS` milliseconds, between two bounds in that unit: an integer, or a
/// string such as `300ms` that is a whole number of units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units<const MS: u32, const MIN: u32, const MAX: u32>(pub u32);

/// Whole milliseconds.
pub(crate) type Millis<const MIN: u32, const MAX: u32> = Units<1, MIN, MAX>;
/// Whole seconds.
pub(crate) type WholeSeconds<const MIN: u32, const MAX: u32> = Units<1_000, MIN, MAX>;

impl<const MS: u32, const MIN: u32, const MAX: u32> FormatShape for Units<MS, MIN, MAX> {
    fn schema() -> Value {
        json!({ "oneOf": [IntegerField::<MIN, MAX>::schema(), time_schema()] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        let TomlValue::Text(text) = &node.value else {
            return IntegerField::<MIN, MAX>::read(node, cx).map(|whole| Self(whole.0));
        };
        let unit = Duration::from_millis(MS.into());
        let found = read_duration(text, node, cx)?;
        let count = found.as_nanos() / unit.as_nanos();
        let name = if MS == 1 { "milliseconds" } else { "seconds" };
        if count * unit.as_nanos() != found.as_nanos() {
            let what = format!("{text:?} is not a whole number of {name}");
            cx.error(node.at, what, format!("{MIN} to {MAX} {name}"));
            return None;
        }
        let fits = u32::try_from(count).ok().filter(|count| (MIN..=MAX).contains(count));
        if fits.is_none() {
            cx.error(
                node.at,
                format!("{text:?} is out of range"),
                format!("{MIN} to {MAX} {name}"),
            );
        }
        fits.map(Self)
    }
    fn default_json(&self) -> Value {
        self.0.into()
    }
}

fn milliseconds(seconds: f64) -> Duration {
    Duration::from_millis((seconds * 1_000.0).round() as u64)
}

fn read_number(node: &TomlNode, cx: &mut ReadContext, min: f64, max: f64) -> Option<f64> {
    let number = match node.value {
        TomlValue::Integer(Some(number)) => number as f64,
        TomlValue::Number(number) => number,
        _ => {
            cx.wrong_type(node, &format!("a number from {min} to {max}"));
            return None;
        }
    };
    if (min..=max).contains(&number) {
        return Some(number);
    }
    cx.error(node.at, format!("{number} is out of range"), format!("{min} to {max}"));
    None
}

/// A number of seconds or a duration string, between two bounds in seconds.
fn read_seconds(node: &TomlNode, cx: &mut ReadContext, min: f64, max: f64) -> Option<Duration> {
    let TomlValue::Text(text) = &node.value else {
        return read_number(node, cx, min, max).map(milliseconds);
    };
    let found = read_duration(text, node, cx)?;
    if (min..=max).contains(&found.as_secs_f64()) {
        return Some(milliseconds(found.as_secs_f64()));
    }
    cx.error(node.at, format!("{text:?} is out of range"), format!("{min} to {max} seconds"));
    None
}

fn seconds_schema(min: f64, max: f64) -> Value {
    json!({ "oneOf": [{ "type": "number", "minimum": min, "maximum": max }, time_schema()] })
}

fn time_schema() -> Value {
    json!({ "type": "string", "pattern": format!(r"^\s*{TIME}\s*$") })
}

/// The pattern of a duration string.
const TIME: &str = r"[0-9]+(\.[0-9]+)?(ms|s|m)";

/// Longest time in a script or a fixture, in seconds.
const MAX_SECONDS: f64 = 3_600.0;

impl FormatShape for Latency {
    fn schema() -> Value {
        let times = format!(r"^\s*{TIME}\s*(\.\.\s*{TIME}\s*)?$");
        json!({ "oneOf": [
            { "type": "number", "minimum": 0, "maximum": MAX_SECONDS },
            { "type": "string", "pattern": times },
        ] })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        let text = match &node.value {
            TomlValue::Text(text) => text,
            TomlValue::Integer(_) | TomlValue::Number(_) => {
                let both = read_number(node, cx, 0.0, MAX_SECONDS).map(milliseconds)?;
                return Some(Self { min: both, max: both });
            }
            _ => {
                cx.wrong_type(node, "a duration such as \"900ms\" or \"900ms..1.8s\"");
                return None;
            }
        };
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        let most = Duration::from_secs_f64(MAX_SECONDS);
        let short = |text: &str| parse_duration(text).filter(|time| *time <= most);
        let (Some(min), Some(max)) = (short(min), short(max)) else {
            let fits = |text: &str| short(text).is_some();
            let help = match suggest_durations(text, fits) {
                Some(meant) => format!("write {meant}"),
                None => "such as 900ms, 1.5s, or 900ms..1.8s, at most 60m".to_owned(),
            };
            cx.error(node.at, format!("{text:?} is not a duration"), help);
            return None;
        };
        if min > max {
            cx.error(
                node.at,
                format!("{text:?} has its longer time first"),
                "write the shorter time first",
            );
            return None;
        }
        Some(Self { min, max })
    }
}

/// Parses a duration string; reports an error if it is not one.
fn read_duration(text: &str, node: &TomlNode, cx: &mut ReadContext) -> Option<Duration> {
    let found = parse_duration(text);
    if found.is_none() {
        let help = match suggest_duration(text).filter(|meant| parse_duration(meant).is_some()) {
            Some(meant) => format!("write {meant}"),
            None => "such as 300ms, 1.5s or 2m".to_owned(),
        };
        cx.error(node.at, format!("{text:?} is not a duration"), help);
    }
    found
}

/// `900ms`, `1.8s`, `2m`.
fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1.0,
        "s" => 1_000.0,
        "m" => 60_000.0,
        _ => return None,
    };
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, "0"));
    if !plain(whole) || !plain(rest) || digits.len() > 12 {
        return None;
    }
    let micros = (digits.parse::<f64>().ok()? * unit * 1_000.0).round();
    Some(Duration::from_micros(micros as u64))
}

/// An integer that is clamped to two bounds, both included (as in the research source document).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clamped<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> FormatShape for Clamped<MIN, MAX> {
    fn schema() -> Value {
        json!({ "type": "integer" })
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        let TomlValue::Integer(Some(number)) = node.value else {
            cx.wrong_type(node, &format!("a whole number from {MIN} to {MAX}"));
            return None;
        };
        let clamped = number.clamp(i64::from(MIN), i64::from(MAX));
        if clamped != number {
            let what = format!("{number} is out of range and is clamped to {clamped}");
            cx.warn(node.at, what, format!("{MIN} to {MAX}"));
        }
        u32::try_from(clamped).ok().map(Self)
    }
    fn default_json(&self) -> Value {
        self.0.into()
    }
}

/// Units in other words, each with the number of milliseconds and the unit of the format.
const UNITS: [(&[&str], f64, &str); 4] = [
    (&["ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"], 1.0, "ms"),
    (&["s", "sec", "secs", "second", "seconds"], 1_000.0, "s"),
    (&["m", "min", "mins", "minute", "minutes"], 60_000.0, "m"),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000.0, "m"),
];

/// What people write between two durations.
const BETWEEN: [&str; 6] = ["...", "..", " to ", "–", "—", "-"];

/// A number with its unit.
struct NumberWithUnit {
    number: f64,
    unit: usize,
}

/// The duration that a text means, in the form of the format; `None` if that is not clear.
fn suggest_duration(text: &str) -> Option<String> {
    let amounts = amounts(text)?;
    if let [only] = &amounts[..] {
        let (_, ms, unit) = UNITS[only.unit];
        // Hours are not units of the format.
        let number = if ms > 60_000.0 { only.number * 60.0 } else { only.number };
        return Some(format!("{number}{unit}"));
    }
    let ms: f64 = amounts.iter().map(|it| it.number * UNITS[it.unit].1).sum();
    Some(if ms % 1_000.0 == 0.0 { format!("{}s", ms / 1_000.0) } else { format!("{ms}ms") })
}

/// The same for a duration or two of them with `..` between; each has to be one that `fits`.
fn suggest_durations(text: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
    let one = |text: &str| match text.trim() {
        text if fits(text) => Some(text.to_owned()),
        text => suggest_duration(text).filter(|meant| fits(meant)),
    };
    let two = BETWEEN.iter().find_map(|between| text.split_once(between));
    let Some((from, to)) = two else { return one(text) };
    let to = one(to)?;
    // The unit of both may be written once.
    let unit = to.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let from = match from.trim() {
        from if from.ends_with(|c: char| c.is_ascii_digit()) => format!("{from}{unit}"),
        from => from.to_owned(),
    };
    Some(format!("{}..{to}", one(&from)?))
}

/// The numbers of a text, each with its unit. A number without one is in the next smaller unit:
/// `1m30`.
fn amounts(text: &str) -> Option<Vec<NumberWithUnit>> {
    let mut amounts: Vec<NumberWithUnit> = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let number = rest[..digits].parse::<f64>().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let word = rest[..letters].to_ascii_lowercase();
        let named = UNITS.iter().position(|(words, ..)| words.contains(&word.as_str()));
        let unit = match amounts.last() {
            Some(before) if word.is_empty() => before.unit.checked_sub(1)?,
            Some(before) => named.filter(|unit| *unit < before.unit)?,
            None => named?,
        };
        amounts.push(NumberWithUnit { number, unit });
        rest = rest[letters..].trim_start();
    }
    Some(amounts).filter(|amounts| !amounts.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{suggest_duration, suggest_durations};

    #[test]
    fn accepts_other_duration_form() {
        for (text, meant) in [
            ("2 sec", Some("2s")),
            ("2 s", Some("2s")),
            ("500 msec", Some("500ms")),
            ("1.5 Minutes", Some("1.5m")),
            ("1m30", Some("90s")),
            ("1m30s", Some("90s")),
            ("2h", Some("120m")),
            ("1s500ms", Some("1500ms")),
            ("300", None),
            ("soon", None),
            ("1s 2m", None),
            ("", None),
            ("1..2s", None),
        ] {
            assert_eq!(suggest_duration(text).as_deref(), meant, "{text}");
        }
    }

    #[test]
    fn accepts_other_form_of_two_durations() {
        let fits = |text: &str| {
            let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            number.parse::<f64>().is_ok() && (text.ends_with("ms") || text.ends_with('s'))
        };
        for (text, meant) in [
            ("500ms-900ms", Some("500ms..900ms")),
            ("500ms - 1.5s", Some("500ms..1.5s")),
            ("500ms to 900ms", Some("500ms..900ms")),
            ("500ms...900ms", Some("500ms..900ms")),
            ("500-900ms", Some("500ms..900ms")),
            ("1..2 sec", Some("1s..2s")),
            ("2 seconds", Some("2s")),
            ("fast", None),
            ("fast..slow", None),
            ("1 to 2", None),
        ] {
            assert_eq!(suggest_durations(text, fits).as_deref(), meant, "{text}");
        }
    }
}
