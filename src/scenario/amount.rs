//! Amounts in a file: money and time.

use std::time::Duration;

use serde_json::{Value, json};

use super::model::Latency;
use super::reader::Reader;
use super::shape::Shape;
use super::tree::{Node, Tree};

/// An amount of US dollars.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dollars(pub f64);

impl Shape for Dollars {
    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 1_000_000 })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        number(node, cx, 0.0, 1e6).map(Self)
    }
}

/// Some seconds, more than none, kept as whole milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seconds(pub Duration);

impl Shape for Seconds {
    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0.001, "maximum": 86_400 })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        number(node, cx, 0.001, 86_400.0).map(|seconds| Self(milliseconds(seconds)))
    }
    fn plain(&self) -> Value {
        self.0.as_secs_f64().into()
    }
}

impl Seconds {
    /// That many.
    pub fn whole(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

/// A share, from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fraction(pub f64);

impl Shape for Fraction {
    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        number(node, cx, 0.0, 1.0).map(Self)
    }
    fn plain(&self) -> Value {
        self.0.into()
    }
}

/// A point on a clock that starts at zero: `2s`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moment(pub Duration);

impl Shape for Moment {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": format!(r"^\s*{TIME}\s*$") })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        let Tree::Text(text) = &node.value else {
            cx.wrong_type(node, "a time such as \"2s\"");
            return None;
        };
        let found = time(text).map(Self);
        if found.is_none() {
            let help = "such as 900ms, 1.5s or 2m, at most 60m";
            cx.error(node.at, format!("{text:?} is no time"), help);
        }
        found
    }
}

/// Some seconds or none at all, kept as whole milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait(pub Duration);

impl Shape for Wait {
    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 86_400 })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        number(node, cx, 0.0, 86_400.0).map(|seconds| Self(milliseconds(seconds)))
    }
}

fn milliseconds(seconds: f64) -> Duration {
    Duration::from_millis((seconds * 1_000.0).round() as u64)
}

fn number(node: &Node, cx: &mut Reader, min: f64, max: f64) -> Option<f64> {
    let number = match node.value {
        Tree::Whole(Some(number)) => number as f64,
        Tree::Number(number) => number,
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

/// How a time is written.
const TIME: &str = r"[0-9]+(\.[0-9]+)?(ms|s|m)";

impl Shape for Latency {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": format!(r"^\s*{TIME}\s*(\.\.\s*{TIME}\s*)?$") })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        let Tree::Text(text) = &node.value else {
            cx.wrong_type(node, "a time such as \"900ms\" or \"900ms..1.8s\"");
            return None;
        };
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        let (Some(min), Some(max)) = (time(min), time(max)) else {
            let help = "such as 900ms, 1.5s, or 900ms..1.8s, at most 60m";
            cx.error(node.at, format!("{text:?} is no time"), help);
            return None;
        };
        if min > max {
            cx.error(node.at, format!("{text:?} ends before it begins"), "the shorter time first");
            return None;
        }
        Some(Self { min, max })
    }
}

/// `900ms`, `1.8s`, `2m`: at most an hour.
fn time(text: &str) -> Option<Duration> {
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
    let time = Duration::from_micros((digits.parse::<f64>().ok()? * unit * 1_000.0).round() as u64);
    (time <= Duration::from_secs(3_600)).then_some(time)
}
