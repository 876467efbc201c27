//! Lists: scenarios, runs, flags, faults and limits, members, questions.

use serde_json::Value;

use super::PlainLoop;
use super::answers::{how_to_answer, question_name, question_text};
use super::tell::state_text;
use crate::base::visible::visible_within;
use crate::log::event::RunId;
use crate::log::event::kind::{QuestionAsked, Subject};
use crate::scenario::read::suggest_name;
use crate::screen::by_word::ByWord;
use crate::screen::home::history::ListedRun;
use crate::screen::questions::open_questions;
use crate::screen::run::RunPage;
use crate::screen::run::views::tools::summary::faults_text;
use crate::screen::windows::faults::ToolSetting;
use crate::screen::windows::flags::what_would_change;
use crate::screen::windows::members::{MembersRow, is_entry, is_member, member_rows};
use crate::words::badges::{age_text, run_result, run_state};
use crate::words::format;
use crate::words::patterns::words_of;
use crate::words::question::{about, named_asker};
use crate::words::readable::top_text;

/// Most characters of a text in a list.
const ROW_CHARS: usize = 200;

impl PlainLoop {
    pub(super) fn list_scenarios(&mut self, words: &str) -> Result<(), String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let mut lines = Vec::new();
        for (at, entry) in self.state.scenarios.iter().enumerate() {
            let about = match &entry.loaded {
                Ok(scenario) => {
                    let people =
                        if scenario.people.named.is_empty() { "" } else { ", asks people" };
                    format!("{}, {}{people}", scenario.title, scenario.pattern.get().name())
                }
                Err(_) => format!("broken: {}", entry.first_error().unwrap_or_default()),
            };
            let line = format!("{} {}: {about}", at + 1, entry.name);
            let lower = line.to_lowercase();
            if words.iter().all(|word| lower.contains(word.as_str())) {
                lines.push(visible_within(&line, ROW_CHARS));
            }
        }
        if lines.is_empty() {
            return Err("no scenario has these words".to_owned());
        }
        lines.iter().for_each(|line| self.out.line(line));
        Ok(())
    }

    /// The path of a scenario: its name, or its number in the list.
    pub(super) fn scenario(&self, name: &str) -> Result<String, String> {
        let scenarios = &self.state.scenarios;
        let number = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let found = scenarios
            .iter()
            .find(|entry| entry.name.as_str() == name || entry.path == name)
            .or_else(|| scenarios.get(number?));
        let known = scenarios.iter().map(|entry| entry.name.as_str());
        found.map(|entry| entry.path.clone()).ok_or_else(|| {
            match name.contains(['/', '\\']) || name.ends_with(".toml") {
                true => format!("no file {name} among the scenarios: scenarios lists them"),
                false => {
                    let guess = suggest_name(name, known);
                    let guess = if guess.starts_with("did") { guess } else { String::new() };
                    format!("no scenario {name}: {guess} scenarios lists them").replace("  ", " ")
                }
            }
        })
    }

    /// A run by its id, the beginning of one, its number in the list, or `last`.
    pub(super) fn run_named(&self, name: &str) -> Result<RunId, String> {
        let listed = self.state.listed();
        let ids: Vec<&RunId> = match &self.numbered[..] {
            [] => (0..listed.len()).filter_map(|at| listed.get(at)).map(ListedRun::id).collect(),
            numbered => numbered.iter().collect(),
        };
        let kept = self.state.history.rows().iter().map(|row| &row.id);
        let all: Vec<&RunId> = self.state.runs.iter().map(|page| page.id()).chain(kept).collect();
        if let Some(run) = all.iter().find(|run| run.as_str() == name) {
            return Ok((*run).clone());
        }
        if name == "last" {
            let own = self.state.runs.last().map(|page| page.id());
            let kept = self.state.history.rows().iter().max_by_key(|row| row.started_ms);
            let last = own.or(kept.map(|row| &row.id)).cloned();
            return last.ok_or("there are no runs".to_owned());
        }
        let number = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let Some(run) = number.and_then(|at| ids.get(at)) {
            return Ok((*run).clone());
        }
        let mut fits: Vec<&RunId> =
            all.into_iter().filter(|run| run.as_str().starts_with(name)).collect();
        fits.sort_unstable();
        fits.dedup();
        match fits[..] {
            [run] => Ok(run.clone()),
            [] => Err(format!("no run {name}: runs lists them")),
            _ => Err(format!("{name} is not one run: {} begin so", fits.len())),
        }
    }

    /// Lists the runs that pass a filter, once the store has answered.
    pub(super) fn filter_runs(&mut self, filter: &str) -> Result<(), String> {
        if self.state.history.filter.text() != filter {
            self.by(ByWord::FilterRuns(filter.to_owned()));
            if self.is_held() {
                self.then = Some(format!("runs {filter}"));
                return Ok(());
            }
        }
        self.list_runs()
    }

    fn list_runs(&mut self) -> Result<(), String> {
        let (state, now) = (&self.state, self.now());
        let listed = state.listed();
        let (mut lines, mut numbered) = (Vec::new(), Vec::new());
        for at in 0..listed.len() {
            let Some(run) = listed.get(at) else { continue };
            let text = match run {
                ListedRun::Session(page) => {
                    let head = page.world().head.as_ref();
                    let scenario = head.map_or("", |head| head.scenario.as_str());
                    format!("{}: {scenario}, {}, this session", page.id(), state_text(page.world()))
                }
                ListedRun::Kept(row) => {
                    let result = run_result(&row.status, row.result.as_deref());
                    let age = age_text(state.history.age_ms(row, now));
                    let pinned = if row.pinned { ", pinned" } else { "" };
                    let cost = row.cost_usd.map(|cost| format!(", about {}", format::usd(cost)));
                    format!(
                        "{}: {}, {}, {age}, {} tokens{}{pinned}",
                        row.id,
                        row.scenario,
                        format!("{} {result}", run_state(&row.status).word).trim(),
                        format::count(row.tokens),
                        cost.unwrap_or_default(),
                    )
                }
            };
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.push(format!("{} {}", at + 1, visible_within(&text, ROW_CHARS)));
            numbered.push(run.id().clone());
        }
        let filter = state.history.filter.text().to_owned();
        let of = if filter.is_empty() { String::new() } else { format!(" of `{filter}`") };
        if numbered.is_empty() {
            let still = match self.numbered.len() as u64 {
                0 => String::new(),
                count => {
                    format!("; numbers still name the {} of the list before", runs_text(count))
                }
            };
            return Err(format!("no runs{of}{still}"));
        }
        lines.iter().for_each(|line| self.out.line(line));
        let these = runs_text(numbered.len() as u64);
        self.out.line(&format!("numbers now name the {these}{of}: open 1"));
        self.numbered = numbered;
        Ok(())
    }

    pub(super) fn sort(&mut self, by: &str) -> Result<(), String> {
        const WORDS: [&str; 5] = ["newest", "cost", "tokens", "time", "status"];
        if !WORDS.contains(&by) {
            return Err(format!("no order {by}: {}", suggest_name(by, WORDS)));
        }
        // The orders follow each other, as their key shows them.
        for _ in WORDS {
            if self.state.history.sort().word() == by {
                break;
            }
            self.by(ByWord::SortRuns);
        }
        self.list_runs()
    }

    pub(super) fn list_flags(&mut self) -> Result<(), String> {
        let page = self.here()?;
        let world = page.world();
        let mut lines = Vec::new();
        for flag in &world.settings.flags {
            let now = if flag.on { "on" } else { "off" };
            let pending = self.state.pending_flags.pending_position(page.id(), &flag.name);
            let pending = pending
                .map(|on| format!(", {} at the next boundary", if on { "on" } else { "off" }));
            let label =
                if flag.label.is_empty() { String::new() } else { format!(" ({})", flag.label) };
            lines.push(format!("{} {now}{}{label}", flag.name, pending.unwrap_or_default()));
            let on = self.state.pending_flags.next_position(page.id(), &flag.name, world);
            let to = if on { "on" } else { "off" };
            for effect in what_would_change(world, &flag.name, on) {
                lines.push(format!("  flag {} {to}: {effect}", flag.name));
            }
        }
        if lines.is_empty() {
            return Err("the run has no flags".to_owned());
        }
        lines.iter().for_each(|line| self.out.line(line));
        Ok(())
    }

    pub(super) fn list_faults(&mut self, tool: &str) -> Result<(), String> {
        let world = self.here()?.world();
        let names = world.tools.rows().iter().map(|row| row.name().as_str());
        if !tool.is_empty() && world.tools.get(tool).is_none() {
            return Err(format!("no tool {tool}: {}", suggest_name(tool, names)));
        }
        let rows = world.tools.rows().iter();
        let rows = rows.filter(|row| tool.is_empty() || row.name().as_str() == tool);
        let (mut injected, mut quiet, mut limits) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            match faults_text(row) {
                Some(faults) => injected.push(format!("{}: {faults}", row.name())),
                None => quiet.push(row.name().to_string()),
            }
            for setting in ToolSetting::rows_for(&row.head.limits) {
                if let ToolSetting::Limit(limit) = setting
                    && let Ok(value) = serde_json::to_value(limit)
                {
                    let name = value.get("limit").and_then(|it| it.as_str()).unwrap_or_default();
                    let value = value.get("value").map(ToString::to_string).unwrap_or_default();
                    limits.push(format!("limit {} {name} {value}", row.name()));
                }
            }
        }
        let mut lines = injected;
        if !quiet.is_empty() {
            lines.push(format!("no fault in {}", quiet.join(", ")));
            lines.push(
                "fault TOOL KIND injects one: latency, errors, hang, malformed, reset".to_owned(),
            );
        }
        match tool.is_empty() {
            true if !limits.is_empty() => lines.push("faults TOOL lists its limits".to_owned()),
            true => {}
            false => lines.extend(limits),
        }
        if lines.is_empty() {
            return Err("the run has no tools".to_owned());
        }
        lines.iter().for_each(|line| self.out.line(line));
        Ok(())
    }

    pub(super) fn list_members(&mut self) -> Result<(), String> {
        let page = self.here()?;
        let world = page.world();
        let mut lines = Vec::new();
        for row in member_rows(world) {
            match row {
                MembersRow::Swarm(name) => lines.push(format!("swarm {name}")),
                MembersRow::Agent(entry) => {
                    let is = match (is_member(world, &entry), is_entry(world, &entry)) {
                        (true, true) => "member, the entry: must stay",
                        (true, false) => "member",
                        (false, _) => "could join",
                    };
                    let pending = entry.pending(page).map(|joins| match joins {
                        true => ", joins at the next boundary",
                        false => ", leaves at the next boundary",
                    });
                    lines.push(format!("  {}: {is}{}", entry.agent, pending.unwrap_or_default()));
                }
            }
        }
        if lines.is_empty() {
            return Err("no swarm in this run: only members of a swarm join or leave".to_owned());
        }
        lines.iter().for_each(|line| self.out.line(line));
        Ok(())
    }

    pub(super) fn list_questions(&mut self) -> Result<(), String> {
        let mut lines: Vec<String> = open_questions(&self.state.runs)
            .map(|it| {
                let asked = &it.question.asked;
                let what = visible_within(&about(&asked.subject), ROW_CHARS);
                let by = named_asker(it.page.world(), asked);
                let by = by.map_or_else(String::new, |by| format!(", asked by {by}"));
                format!("{} for {}{by}: {what}", question_name(&it.key()), asked.who)
            })
            .collect();
        lines.extend(self.state.history.waiting(&self.state.runs).map(|row| {
            format!("{} was interrupted and waits for people: open {}, then resume", row.id, row.id)
        }));
        for page in self.state.live_runs() {
            for it in page.world().questions.remembered() {
                let uses = format::count_noun(it.uses, "call");
                lines.push(format!(
                    "{} remembers that every call of {} by {} is approved, used for {uses}: withdraw {} {}",
                    page.id(),
                    it.tool,
                    it.agent.as_deref().unwrap_or("the run"),
                    page.id(),
                    it.id.0
                ));
            }
        }
        if lines.is_empty() {
            return Err("no question is open".to_owned());
        }
        lines.iter().for_each(|line| self.out.line(line));
        Ok(())
    }

    /// `question [RUN] N`: what somebody reads who answers it.
    pub(super) fn print_question(&mut self, rest: &str) -> Result<(), String> {
        let (run, number, _) = self.question_number(rest).map_err(|_| "type: question N")?;
        let (key, asked) = self.question(run.as_ref(), number)?;
        let page = self.state.run(&key.run).ok_or("the run is gone")?;
        let mut lines = vec![format!("{} for {}:", question_name(&key), asked.who)];
        lines.extend(question_lines_of(page, &asked));
        let how = how_to_answer(&key, &asked, self.is_here(&key));
        lines.iter().for_each(|line| self.out.line(line));
        self.out.line(&how);
        Ok(())
    }
}

fn runs_text(count: u64) -> String {
    format::count_noun(count, "run")
}

/// What somebody reads who answers a question, as the card of the dashboard has it.
fn question_lines_of(page: &RunPage, asked: &QuestionAsked) -> Vec<String> {
    let world = page.world();
    let mut lines = match &asked.subject {
        Subject::Seat { round, role } => {
            let mut lines = vec![format!("say what {role} says in round {round}")];
            let goal = world.head.as_ref().map(|head| head.goal.to_string()).unwrap_or_default();
            lines.extend(goal.lines().map(|line| format!("goal: {line}")));
            lines.extend(facts_of(page));
            lines.extend(words_of(world).map(|words| words.said_before()).unwrap_or_default());
            lines
        }
        // Its line says what is asked.
        Subject::Decision { .. } => {
            let goal = world.head.as_ref().map(|head| head.goal.to_string()).unwrap_or_default();
            let mut lines: Vec<String> = goal.lines().map(|line| format!("goal: {line}")).collect();
            lines.extend(facts_of(page));
            lines.extend(words_of(world).map(|words| words.said_before()).unwrap_or_default());
            lines
        }
        _ => Vec::new(),
    };
    // The first line names the question, which was printed.
    lines.extend(question_text(asked).into_iter().skip(1).filter(|line| {
        !(matches!(asked.subject, Subject::Decision { .. }) && line.starts_with("stances"))
    }));
    if let Some(tool) = asked.subject.approves() {
        let by = named_asker(world, asked);
        lines.insert(0, format!("{} asks to call {tool}", by.as_deref().unwrap_or("the run")));
    }
    if let Subject::Turn { .. } | Subject::Agent { .. } = &asked.subject
        && let Some(head) = &world.head
    {
        lines.insert(0, format!("goal: {}", head.goal.lines().next().unwrap_or_default()));
    }
    lines
}

/// The facts of the scenario, where the run was started here.
fn facts_of(page: &RunPage) -> Vec<String> {
    let facts = page.launch().and_then(|launch| launch.scenario.facts.as_object());
    let facts = facts.into_iter().flatten();
    facts.map(|(name, value)| format!("fact {name}: {}", value_line(value))).collect()
}

/// A value in one line: a text without quotes.
fn value_line(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(_) => top_text(value),
        other => other.to_string(),
    }
}
