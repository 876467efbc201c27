//! The one format of durations, clocks, counts, confidences and amounts. All arithmetic is on whole
//! numbers: values are cut off, never rounded up to something that has not happened.
//!
//! An error in few words, for a row that has no room for its whole text.

use std::time::Duration;

use super::glyph::{Glyph, Glyphs};
use crate::base::time::duration_text;
use crate::log::event::Usage;
use crate::log::world::{RunFold, Tally};

/// A running clock: `00:07`, `12:34`, from an hour on `1:02:03`.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes:02}:{seconds:02}")
    }
}

/// A moment of a run on its own clock (`RunProgress::run_time`): `00:02.1`, from an hour on
/// `1:02:03.4`.
pub fn time_in_run(time: Duration) -> String {
    format!("{}.{}", clock(time), time.subsec_millis() / 100)
}

/// A moment on an axis, precise enough that two marks at this distance differ.
pub fn axis_time(time: Duration, apart: Duration) -> String {
    match apart.as_millis() {
        1..100 => duration_text(time),
        0 | 100..1_000 => time_in_run(time),
        _ => clock(time),
    }
}

/// A count in at most five columns: `812`, `5.1k`, `51.9k`, `812k`, `1.2M`.
pub fn count(number: u64) -> String {
    let part = |unit: u64, name: &str| {
        let whole = number / unit;
        if whole < 100 {
            format!("{whole}.{}{name}", number % unit * 10 / unit)
        } else {
            format!("{whole}{name}")
        }
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => part(1_000, "k"),
        1_000_000..1_000_000_000 => part(1_000_000, "M"),
        1_000_000_000..1_000_000_000_000 => part(1_000_000_000, "G"),
        _ => part(1_000_000_000_000, "T"),
    }
}

/// A count in full, with thousands separated: `1 204 511`.
pub fn exact(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A number with its noun: `1 action`, `3 actions`, `2 retries`.
pub fn count_noun(number: u64, noun: &str) -> String {
    match noun.strip_suffix("ry").filter(|_| number != 1) {
        Some(stem) => format!("{number} {stem}ries"),
        None => format!("{number} {noun}{}", if number == 1 { "" } else { "s" }),
    }
}

/// The calls of a run by what they called: `9 model, 1 tool, 5 agent, 1 person calls`.
pub fn calls(tally: &Tally) -> String {
    let kinds = [
        (tally.model_calls(), "model"),
        (tally.tool_calls, "tool"),
        (tally.agent_calls, "agent"),
        (tally.person_calls, "person"),
    ];
    let parts: Vec<String> = kinds
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, of)| format!("{count} {of}"))
        .collect();
    match parts.is_empty() {
        true => "0 calls".to_owned(),
        false => format!("{} call{}", parts.join(", "), if tally.calls == 1 { "" } else { "s" }),
    }
}

/// A confidence in three columns: `.90`, `.05`, `1.0`. Never more than was stated: `.999` is `.99`.
pub fn confidence(stated: f64) -> String {
    // 0.29 * 100 is 28.999…: confidences have three decimals (collaboration source document), so
    // adding half a thousandth is safe.
    let hundredths = (stated * 100.0 + 0.05).floor();
    if hundredths >= 100.0 {
        "1.0".to_owned()
    } else if hundredths >= 0.0 {
        format!(".{:02}", hundredths as u32)
    } else {
        " ? ".to_owned()
    }
}

/// Tokens per second: `41 tok/s`; `None` if no time has passed.
pub fn rate(tokens: u64, time: Duration) -> Option<String> {
    let micros = time.as_micros();
    if micros == 0 {
        return None;
    }
    let tenths = u128::from(tokens) * 10_000_000 / micros;
    Some(if tenths < 100 {
        format!("{}.{} tok/s", tenths / 10, tenths % 10)
    } else {
        format!("{} tok/s", count(u64::try_from(tenths / 10).unwrap_or(u64::MAX)))
    })
}

/// Prompt and reply tokens: `1 363 in, 213 out`.
pub fn tokens(usage: Usage) -> String {
    format!("{} in, {} out", exact(usage.prompt_tokens), exact(usage.completion_tokens))
}

/// US dollars: `$0.0052`, `$0.12`, `$3.40`.
pub fn usd(amount: f64) -> String {
    if amount > 0.0 && amount < 0.000_05 {
        "<$0.0001".to_owned()
    } else if amount != 0.0 && amount.abs() < 0.1 {
        format!("${amount:.4}")
    } else {
        format!("${amount:.2}")
    }
}

/// Bytes: `812 B`, `5.1 kB`, `1.2 MB`.
pub fn bytes(number: u64) -> String {
    if number < 1_000 { format!("{number} B") } else { format!("{}B", spaced(&count(number))) }
}

fn spaced(count: &str) -> String {
    let unit = count.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(count.len());
    let (number, unit) = count.split_at(unit);
    format!("{number} {unit}")
}

/// A share from 0 to 1 in percent, rounded down to a tenth.
pub fn percent(share: f64) -> String {
    // The added thousandth makes up for binary fractions: 0.29 must not become 28.9 %.
    let tenths = (share * 1_000.0 + 0.001).floor().clamp(0.0, 1_000.0) as u32;
    match tenths {
        1_000 => "100 %".to_owned(),
        tenths => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

/// Requests made for each call, rounded down: `1.42`.
pub fn requests_each(factor: f64) -> String {
    let hundredths = (factor * 100.0 + 0.001).floor().max(0.0) as u64;
    match hundredths {
        0..10_000 => format!("{}.{:02}", hundredths / 100, hundredths % 100),
        _ => format!("{}", hundredths / 100),
    }
}

/// Requests made for each call: `1.42 requests a call`.
pub fn requests_a_call(factor: f64) -> String {
    format!("{} requests a call", requests_each(factor))
}

/// The estimated cost of a run: `≈ $0.0052`.
pub fn estimate(cost: f64, glyphs: Glyphs) -> String {
    format!("{} {}", glyphs.symbol(Glyph::Estimate), usd(cost))
}

/// What a run has cost so far: `≈ $0.0052`, or `at least $0.0052` if only a part is known. `None`: nothing.
pub fn cost(run: &RunFold, glyphs: Glyphs) -> Option<String> {
    match run.cost_usd() {
        Some(cost) => (cost > 0.0).then(|| estimate(cost, glyphs)),
        None => cost_at_least(run),
    }
}

/// The known part of a cost that is not known whole; `None`: it is, or nothing is known.
pub fn cost_at_least(run: &RunFold) -> Option<String> {
    let known = run.known_cost_usd();
    (run.cost_usd().is_none() && known > 0.0).then(|| format!("at least {}", usd(known)))
}

/// The first sentence of an error, without its period.
pub fn first_sentence(text: &str) -> &str {
    let end = [". ", "? ", "\n"].into_iter().filter_map(|end| text.find(end)).min();
    text[..end.unwrap_or(text.len())].trim_end_matches('.')
}

/// The first sentence of an error. Of a connection that failed, the cause comes before the host:
/// `connection refused, 127.0.0.1:7878`.
pub fn short_error(text: &str) -> String {
    let text = first_sentence(text);
    let connection = text.strip_prefix("no connection to ").and_then(|it| it.split_once(": "));
    let Some((host, why)) = connection else { return text.to_owned() };
    let mut letters = why.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    let why: String = first.into_iter().chain(letters).collect();
    format!("{why}, {host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let of = Duration::from_micros;
        for (micros, text) in [
            (0, "0s"),
            (99, "0s"),
            (100, "0.1ms"),
            (430, "0.4ms"),
            (85_900, "85ms"),
            (100_000, "0.10s"),
            (999_999, "0.99s"),
            (2_199_999, "2.1s"),
            (59_999_999, "59.9s"),
            (185_000_000, "3m05s"),
            (7_620_000_000, "2h07m"),
        ] {
            assert_eq!(duration_text(of(micros)), text);
        }
        assert_eq!(clock(of(7_900_000)), "00:07");
        assert_eq!(clock(of(3_723_000_000)), "1:02:03");
        assert_eq!(time_in_run(of(2_190_000)), "00:02.1");
    }

    #[test]
    fn counts() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (51_999, "51.9k"),
            (812_000, "812k"),
            (999_999, "999k"),
            (1_250_000, "1.2M"),
            (u64::MAX, "18446744T"),
        ] {
            assert_eq!(count(number), text);
        }
        assert_eq!(exact(1_204_511), "1 204 511");
        assert_eq!(exact(12), "12");
        assert_eq!(count_noun(1, "action"), "1 action");
        assert_eq!(count_noun(0, "action"), "0 actions");
        assert_eq!(bytes(812), "812 B");
        assert_eq!(bytes(5_120), "5.1 kB");
    }

    #[test]
    fn confidence_has_three_columns_rounded_down() {
        for hundredths in 0..=100u32 {
            let text = confidence(f64::from(hundredths) / 100.0);
            assert_eq!(text.len(), 3);
            if hundredths < 100 {
                assert_eq!(text, format!(".{hundredths:02}"));
            }
        }
        assert_eq!(confidence(1.0), "1.0");
        assert_eq!(confidence(0.999), ".99");
        assert_eq!(confidence(0.845), ".84");
        assert_eq!(confidence(f64::NAN), " ? ");
    }

    #[test]
    fn rates_and_prices() {
        assert_eq!(rate(96, Duration::from_millis(2_300)).as_deref(), Some("41 tok/s"));
        assert_eq!(rate(1, Duration::from_secs(2)).as_deref(), Some("0.5 tok/s"));
        assert_eq!(rate(1, Duration::ZERO), None);
        let usage = Usage::new(1_363, 213);
        assert_eq!(tokens(usage), "1 363 in, 213 out");
        assert_eq!(usd(0.0052), "$0.0052");
        assert_eq!(usd(0.0), "$0.00");
        assert_eq!(usd(3.4), "$3.40");
    }

    #[test]
    fn shares_and_factors_are_cut_off() {
        assert_eq!(percent(0.29), "29.0 %");
        assert_eq!(percent(0.9999), "99.9 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.0), "0.0 %");
        assert_eq!(requests_each(1.0), "1.00");
        assert_eq!(requests_each(1.999), "1.99");
        assert_eq!(requests_each(27.0), "27.00");
        assert_eq!(requests_each(412.5), "412");
    }

    #[test]
    fn connection_cause_comes_first() {
        for (text, short) in [
            (
                "no connection to 127.0.0.1:7878: Connection refused. Is the server running? Check it.",
                "connection refused, 127.0.0.1:7878",
            ),
            (
                "no reply from a.example within 3.0 s, the timeout of one attempt (timeout_s).",
                "no reply from a.example within 3.0 s, the timeout of one attempt (timeout_s)",
            ),
            ("HTTP 503", "HTTP 503"),
            ("", ""),
        ] {
            assert_eq!(short_error(text), short);
        }
    }
}
