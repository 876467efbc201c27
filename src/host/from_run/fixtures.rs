//! What tools and failed attempts gave, as rows of a fixture and faults.

use serde_json::Value;
use toml_edit::{InlineTable, Table, value};

use super::calls::{RecordedAttempt, RecordedCall};
use super::values;
use crate::log::event::{AttemptFailed, FailureClass, Purpose};
use crate::scenario::spec::tool::{ScriptFault, ScriptFaultKind};

/// How an attempt failed.
pub fn fault(attempt: &RecordedAttempt, left: &mut Vec<String>) -> InlineTable {
    let mut table = InlineTable::new();
    let failed = match &attempt.ended {
        Some(Err(failed)) if !attempt.hung() => Some(failed),
        _ => None,
    };
    let kind = match failed {
        None => ScriptFaultKind::Hang,
        Some(failed) => kind_of(failed, left),
    };
    match &kind {
        ScriptFaultKind::Status { status, retry_after } => {
            table.insert("status", i64::from(*status).into());
            if let Some(wait) = retry_after {
                table.insert("retry_after_s", wait.as_secs_f64().into());
            }
        }
        other => {
            table.insert("kind", word_of(other).into());
        }
    }
    if let Some(failed) = failed {
        let plain = AttemptFailed::from_scripted_fault(&ScriptFault::new(kind, 1), "");
        if plain.is_none_or(|plain| plain.text != failed.text) {
            table.insert("text", failed.text.as_str().into());
        }
        if let Some(retry) = failed.should_retry {
            table.insert("retry", retry.into());
        }
    }
    if attempt.number > 1 {
        table.insert("times", i64::from(attempt.number).into());
    }
    table
}

fn kind_of(failed: &AttemptFailed, left: &mut Vec<String>) -> ScriptFaultKind {
    match failed.class {
        FailureClass::Timeout | FailureClass::Cancelled => ScriptFaultKind::Hang,
        FailureClass::Resolve => ScriptFaultKind::Resolve,
        FailureClass::Connect => ScriptFaultKind::Refused,
        FailureClass::Tls => ScriptFaultKind::Tls,
        FailureClass::Reset => ScriptFaultKind::Reset,
        FailureClass::BadResponse => ScriptFaultKind::BadResponse,
        FailureClass::TooLarge => ScriptFaultKind::TooLarge,
        FailureClass::Denied => ScriptFaultKind::Denied,
        FailureClass::Rejected => ScriptFaultKind::Rejected,
        FailureClass::RateLimited | FailureClass::Auth | FailureClass::Status => {
            match failed.status.filter(|status| (400..600).contains(status)) {
                Some(status) => ScriptFaultKind::Status {
                    status,
                    retry_after: failed.retry_after_ms.map(std::time::Duration::from_millis),
                },
                None => ScriptFaultKind::BadResponse,
            }
        }
        FailureClass::Tool => ScriptFaultKind::Tool,
        class @ (FailureClass::Limit | FailureClass::ScriptMissing | FailureClass::Panic) => {
            left.push(format!("a failure of another kind: {}", class.word()));
            ScriptFaultKind::Tool
        }
    }
}

fn word_of(kind: &ScriptFaultKind) -> &'static str {
    match kind {
        ScriptFaultKind::Hang => "hang",
        ScriptFaultKind::Refused => "refused",
        ScriptFaultKind::Reset => "reset",
        ScriptFaultKind::BadResponse | ScriptFaultKind::Status { .. } => "bad_response",
        ScriptFaultKind::Resolve => "resolve",
        ScriptFaultKind::Tls => "tls",
        ScriptFaultKind::Tool => "tool",
        ScriptFaultKind::TooLarge => "too_large",
        ScriptFaultKind::Denied => "denied",
        ScriptFaultKind::Rejected => "rejected",
    }
}

/// The rows of a fixture that gives what a tool gave.
pub fn fixture_rows(calls: &[RecordedCall], tool: &str, left: &mut Vec<String>) -> Vec<Table> {
    let mut groups: Vec<(String, Vec<&RecordedCall>)> = Vec::new();
    for call in calls.iter().filter(|call| call.tool.as_str() == tool) {
        let key = crate::base::json_text::to_canonical_json(&call.args);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(call),
            None => groups.push((key, vec![call])),
        }
    }
    // A row also fits calls with more arguments than it names.
    groups.sort_by_key(|(_, group)| {
        let args = group.first().and_then(|call| call.args.as_object());
        std::cmp::Reverse(args.map_or(0, |args| args.len()))
    });
    let mut rows = Vec::new();
    for (_, group) in groups {
        let several = group.iter().filter(|call| !call.attempts.is_empty()).count() > 1;
        for call in group {
            for attempt in &call.attempts {
                rows.push(fixture_row(call, attempt, several, left));
            }
        }
    }
    if rows.is_empty() {
        left.push(format!("{tool} was not called: write what it gives"));
        let mut row = Table::new();
        let mut fault = InlineTable::new();
        fault.insert("kind", "tool".into());
        fault.insert("times", 20.into());
        fault.insert("text", "the recorded run did not call this tool".into());
        row.insert("fault", value(fault));
        row.insert("raw", value("null"));
        rows.push(row);
    }
    rows
}

fn fixture_row(
    call: &RecordedCall,
    attempt: &RecordedAttempt,
    several: bool,
    left: &mut Vec<String>,
) -> Table {
    let mut row = Table::new();
    let mut args = InlineTable::new();
    for (key, given) in call.args.as_object().into_iter().flatten() {
        // The program adds it to the address.
        if matches!(call.purpose, Purpose::Read { .. }) && key == "allowed_domains" {
            continue;
        }
        match values::templated(given) {
            Some(given) => {
                args.insert(key, given);
            }
            None => left.push(format!("{}: a row cannot name its argument {key}", call.tool)),
        }
    }
    if !args.is_empty() {
        row.insert("args", value(args));
    }
    if several {
        row.insert("nth", value(i64::from(call.nth)));
    }
    if call.attempts.len() > 1 {
        row.insert("attempt", value(i64::from(attempt.number)));
    }
    if !attempt.hung()
        && let Some(took) = values::latency(attempt.took)
    {
        row.insert("latency", value(took));
    }
    match &attempt.ended {
        Some(Ok(reply)) => put_result(&mut row, reply.result.as_deref().unwrap_or(&Value::Null)),
        _ => {
            row.insert("fault", value(fault(attempt, left)));
            row.insert("raw", value("null"));
        }
    }
    row
}

/// A result, as a table where TOML has one.
pub fn put_result(row: &mut Table, result: &Value) {
    match values::templated(result).filter(|_| result.is_object()) {
        Some(table) => row.insert("result", value(table)),
        None => row.insert("raw", value(values::escaped(&result.to_string()))),
    };
}
