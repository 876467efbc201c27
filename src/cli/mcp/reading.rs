//! What clients read: the list of scenarios, lists of runs, parts of runs. Long answers are cut, and say so.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::play::ServerState;
use super::tools::{ListRunsArgs, ReadRunArgs, RunPart, structured, text_block};
use crate::base::refused::{OrRefuse as _, Refused};
use crate::base::time::millis;
use crate::base::visible::{REASON_CHARS, visible, visible_within};
use crate::cli::args::RunFormat;
use crate::cli::kept::row_values;
use crate::cli::output::RunWriter;
use crate::cli::people::{QuestionContext, question_lines};
use crate::cli::streams::StreamStyle;
use crate::host::Dirs;
use crate::host::consent::{inputs_that_reach, needed_permissions, shown_lines};
use crate::host::kept_runs::find_run;
use crate::host::recorded::events_from;
use crate::host::trust::Trust;
use crate::log::event::{Event, RunId, Seq, World, safe_json};
use crate::log::world::run_row::{RunRow, StatusFilter};
use crate::scenario::catalogue::{LiveOffer, ScenarioEntry};
use crate::scenario::spec::{InputKind, ScenarioInput};
use crate::screen::theme::Theme;
use crate::words::format;
use crate::words::question::noun;

/// Longest answer, in bytes.
const MAX_BYTES: usize = 200_000;

/// How many runs are listed by default, and at most.
const RUNS: usize = 50;
const MAX_RUNS: usize = 500;

/// How many events a page has by default, and at most.
const EVENTS: usize = 100;
const MAX_EVENTS: usize = 500;

impl ServerState {
    /// `list_scenarios`. Blocks.
    ///
    /// # Errors
    /// A scenario of the command line cannot be read any more.
    pub fn list_scenarios(&self) -> Result<CallToolResult, Refused> {
        let trust = Trust::saved_in(Dirs::find().map(|dirs| dirs.trusted()));
        let entries = self.entries()?;
        let rows = entries.iter().map(|entry| self.scenario_value(entry, &trust));
        Ok(structured(json!({ "scenarios": rows.collect::<Vec<_>>() })))
    }

    fn scenario_value(&self, entry: &ScenarioEntry, trust: &Trust) -> Value {
        let Some(scenario) = entry.scenario() else {
            let problem = entry.first_error().unwrap_or_default();
            return json!({ "name": entry.name, "problem": problem });
        };
        let flags = scenario
            .flags
            .iter()
            .map(|flag| json!({ "name": flag.name, "about": flag.label, "default": flag.default }));
        let outside = shown_lines(&needed_permissions(scenario, None));
        let reaching = inputs_that_reach(scenario);
        let inputs = scenario.inputs.iter().map(|input| {
            let mut value = input_value(input);
            if reaching.contains(&input.name) {
                value["needs_permission"] = true.into();
            }
            value
        });
        json!({
            "name": entry.name,
            "title": scenario.title,
            "pattern": scenario.pattern.get().name(),
            "about": scenario.about,
            "inputs": inputs.collect::<Vec<_>>(),
            "flags": flags.collect::<Vec<_>>(),
            "outside": outside,
            "needs_permission": trust.needed_consent(scenario, None).is_some(),
            "can_run_live": self.args.allow_live && matches!(entry.live, LiveOffer::Ready { .. }),
        })
    }

    /// `list_runs`. Blocks.
    ///
    /// # Errors
    /// The status is none, or the store cannot be read.
    pub fn list_runs(&self, args: &ListRunsArgs) -> Result<CallToolResult, Refused> {
        let status = args.status.as_deref().map(str::parse::<StatusFilter>).transpose();
        let status = status.map_err(|why| Refused::new(format!("status: {why}")))?;
        let limit = args.limit.unwrap_or(RUNS).clamp(1, MAX_RUNS);
        let mut rows = self.own_runs();
        if let Some(database) = self.database.as_ref().filter(|_| self.args.allow_runs) {
            let kept = database.runs().map_err(Refused::from)?;
            let is_own = |row: &RunRow| rows.iter().any(|own| own.id == row.id);
            let others: Vec<RunRow> =
                kept.rows.iter().filter(|row| !is_own(row)).cloned().collect();
            rows.extend(others);
            rows.sort_by_key(|row| std::cmp::Reverse(row.started_ms));
        }
        rows.retain(|row| status.as_ref().is_none_or(|status| status.has(&row.status)));
        let found = rows.len();
        rows.truncate(limit);
        let values = row_values(&rows.iter().collect::<Vec<_>>());
        Ok(structured(json!({ "runs": values, "found": found })))
    }

    /// `read_run`. Blocks.
    ///
    /// # Errors
    /// There is no such run for this client, or it cannot be read.
    pub fn read_run(&self, args: &ReadRunArgs) -> Result<CallToolResult, Refused> {
        let row = self.readable_run(&args.run)?;
        match args.what {
            RunPart::Outcome => {
                let (world, _) = self.world(&row.id)?;
                let outcome = world.outcome().ok_or_else(|| {
                    Refused::new(format!("{} has not ended: it has no outcome yet", row.id)).help(
                        "what = \"events\" has its events so far, \"questions\" its open questions",
                    )
                })?;
                let (value, left_out) = bounded(serde_json::to_value(&outcome).unwrap_or_default());
                let mut result = structured(value);
                result.content.extend(left_out.map(|note| text_block(&note)));
                Ok(result)
            }
            RunPart::Text => self.text(&row.id, RunFormat::Text, args),
            RunPart::Markdown => self.text(&row.id, RunFormat::Markdown, args),
            RunPart::Events => self.event_page(&row, args),
            RunPart::Questions => {
                let (world, now) = self.world(&row.id)?;
                let questions = world.questions.open().map(|open| {
                    let asked = &open.asked;
                    let context = QuestionContext::of(&world, asked);
                    json!({
                        "id": asked.id,
                        "digest": asked.digest,
                        "who": asked.who,
                        "by": asked.by.as_deref().or(context.by.as_deref()),
                        "kind": noun(&asked.subject),
                        "text": question_lines(asked, &context).join("\n"),
                        "choices": asked.subject.choices(),
                        "expected": asked.subject.expected(),
                        "age_ms": now.map(|now| millis(now.since(open.at))),
                        "due_ms": asked.due_ms,
                    })
                });
                let questions: Vec<Value> = questions.collect();
                Ok(structured(json!({ "run": row.id, "questions": questions })))
            }
        }
    }

    /// A run that this client may read.
    fn readable_run(&self, name: &str) -> Result<RunRow, Refused> {
        if let Some(row) = self.own_run(name) {
            return Ok(row);
        }
        match self.database.as_ref().filter(|_| self.args.allow_runs) {
            Some(database) => Ok(find_run(database, name)?),
            None => {
                let name = visible_within(name, REASON_CHARS);
                let why = Refused::new(format!("{name} is no run of this server"));
                Err(why.help(
                    "list_runs has its runs; others are read if the operator starts it with \
                     `roundtable mcp --allow-runs`",
                ))
            }
        }
    }

    /// A run folded to its last event, and the time on its clock if it is played here.
    fn world(&self, run: &RunId) -> Result<(World, Option<crate::log::event::Elapsed>), Refused> {
        let mut world = World::new();
        self.each_event(
            run,
            |event, world| {
                world.apply(event);
                Ok(())
            },
            &mut world,
        )?;
        Ok((world, self.engine.run(run).map(|run| run.bus().now())))
    }

    fn each_event(
        &self,
        run: &RunId,
        mut take: impl FnMut(&Event, &mut World) -> std::io::Result<()>,
        world: &mut World,
    ) -> Result<(), Refused> {
        let mut from = Seq(0);
        loop {
            let events = self.events(run, from, MAX_EVENTS)?;
            let Some(last) = events.last() else { return Ok(()) };
            from = Seq(last.seq.0 + 1);
            for event in &events {
                take(event, world).or_refuse(format_args!("{run} cannot be read"))?;
            }
            world.forget_old(events.len());
        }
    }

    /// The events of a run from this one on, at most so many: of memory, and where it has them not any
    /// more, of the store.
    fn events(&self, run: &RunId, from: Seq, max: usize) -> Result<Vec<Arc<Event>>, Refused> {
        let mut events = Vec::new();
        let live = self.engine.run(run);
        if let Some(live) = &live {
            live.bus().reader(from).take(&mut events, max);
            let is_there = events.first().is_some_and(|first| first.seq == from);
            if is_there || from.0 >= live.bus().len() {
                return Ok(events);
            }
        }
        let Some(database) = &self.database else { return Ok(Vec::new()) };
        let mut stored =
            events_from(database, run, from).or_refuse(format_args!("{run} cannot be read"))?;
        stored.truncate(max);
        Ok(stored)
    }

    fn event_page(&self, row: &RunRow, args: &ReadRunArgs) -> Result<CallToolResult, Refused> {
        let limit = args.limit.unwrap_or(EVENTS).clamp(1, MAX_EVENTS);
        let total = self.engine.run(&row.id).map_or(row.events, |run| run.bus().len());
        let (mut lines, mut values) = (String::new(), Vec::new());
        let mut next = args.from;
        'page: while values.len() < limit {
            let events = self.events(&row.id, Seq(next), limit - values.len())?;
            if events.is_empty() {
                break;
            }
            for event in events {
                let mut line = Vec::new();
                let written = event.append_line(Some(&row.id), &mut line);
                written.or_refuse(format_args!("{} cannot be read", row.id))?;
                let mut line = String::from_utf8_lossy(&line).into_owned();
                if line.len() > MAX_BYTES / 4 {
                    let (seq, kind) = (event.seq, event.kind.name());
                    let left_out =
                        json!({ "seq": seq, "kind": kind, "left_out_bytes": line.len() });
                    line = left_out.to_string();
                }
                if lines.len() + line.len() > MAX_BYTES {
                    break 'page;
                }
                values.push(serde_json::from_str::<Value>(&line).unwrap_or_default());
                lines.push_str(&line);
                lines.push('\n');
                next = event.seq.0 + 1;
            }
        }
        let more = (next < total).then_some(next);
        let mut result = CallToolResult::success(vec![ContentBlock::text(lines)]);
        if let Some(next) = more {
            result.content.push(text_block(&format!(
                "events {} to {} of {total}; read_run with from = {next} has the next ones",
                args.from,
                next.saturating_sub(1)
            )));
        }
        result.structured_content =
            Some(json!({ "run": row.id, "events": values, "next": more, "total": total }));
        Ok(result)
    }

    /// The text of a run, as `roundtable show` prints it.
    fn text(
        &self,
        run: &RunId,
        format: RunFormat,
        args: &ReadRunArgs,
    ) -> Result<CallToolResult, Refused> {
        let (mut bytes, mut world) = (Vec::new(), World::new());
        let mut writer =
            RunWriter::new(format, StreamStyle::new(false, Theme::default(), false), &mut bytes);
        self.each_event(
            run,
            |event, world| {
                world.apply(event);
                writer.event(event, world)
            },
            &mut world,
        )?;
        let written = match world.outcome() {
            Some(outcome) => writer.outcome(&outcome, &world),
            None => writer.flush(),
        };
        written.or_refuse(format_args!("{run} cannot be read"))?;
        drop(writer);
        let text = String::from_utf8_lossy(&bytes);
        if text.is_empty() {
            let why = Refused::new(format!("{run} has no Markdown: only research writes it"));
            return Err(why.help("what = \"text\" has its text"));
        }
        Ok(page(&text, args))
    }
}

/// The lines of a page, and which one follows.
fn page(text: &str, args: &ReadRunArgs) -> CallToolResult {
    let lines: Vec<&str> = text.lines().collect();
    let from = usize::try_from(args.from).unwrap_or(usize::MAX).min(lines.len());
    let limit = args.limit.unwrap_or(usize::MAX).max(1);
    let mut page = String::new();
    let mut next = from;
    for line in lines.iter().skip(from).take(limit) {
        let shown = visible_within(line, MAX_BYTES / 4);
        if page.len() + shown.len() > MAX_BYTES {
            break;
        }
        page.push_str(&shown);
        page.push('\n');
        next += 1;
    }
    let mut result = CallToolResult::success(vec![ContentBlock::text(page)]);
    if next < lines.len() {
        result.content.push(text_block(&format!(
            "lines {from} to {} of {}; read_run with from = {next} has the next ones",
            next.saturating_sub(1),
            lines.len()
        )));
    }
    result
}

/// An outcome without its largest fields, where it is too long; the note says which.
pub fn bounded(mut outcome: Value) -> (Value, Option<String>) {
    let size = |value: &Value| safe_json::line(value).map_or(0, |json| json.len());
    let mut left_out = Vec::new();
    while size(&outcome) > MAX_BYTES {
        let Some(fields) = outcome.as_object_mut() else { break };
        let sizes = fields.iter().map(|(name, value)| (size(value), name.clone()));
        let Some((bytes, name)) = sizes.max() else { break };
        if bytes < MAX_BYTES / 100 {
            break;
        }
        left_out.push(format!("{} ({})", visible(&name), format::bytes(bytes as u64)));
        fields.insert(name, json!({ "left_out_bytes": bytes }));
    }
    let note = (!left_out.is_empty()).then(|| {
        format!(
            "the outcome is too long: without {}; read_run with what = \"events\" has what they say",
            left_out.join(", ")
        )
    });
    (outcome, note)
}

fn input_value(input: &ScenarioInput) -> Value {
    let kind = match &input.kind {
        InputKind::Text => "text",
        InputKind::Date => "date",
        InputKind::Integer => "integer",
        InputKind::Number => "number",
        InputKind::Bool => "bool",
        InputKind::Choice(_) => "choice",
    };
    let mut value = json!({
        "name": input.name, "type": kind, "about": input.label, "default": input.value,
    });
    if let InputKind::Choice(choices) = &input.kind {
        value["choices"] = json!(choices);
    }
    value
}
