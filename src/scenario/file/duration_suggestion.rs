//! Suggestions for durations in another form: `2 sec`, `1m30`, `500ms-900ms`.

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
pub(crate) fn suggest_duration(text: &str) -> Option<String> {
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
pub(crate) fn suggest_durations(text: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
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
    fn another_form_of_a_duration_is_understood() {
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
    fn another_form_of_two_durations_is_understood() {
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
