//! Lists: scenarios, runs, flags, faults and limits, members, questions.

use super::PlainLoop;
use super::answers::{how_to_answer, number_of};
use super::tell::state_text;
use crate::base::visible::visible_within;
use crate::cli::people::question_lines;
use crate::log::event::RunId;
use crate::scenario::read::suggest_name;
use crate::screen::by_word::ByWord;
use crate::screen::home::history::ListedRun;
use crate::screen::questions::open_questions;
use crate::screen::run::views::tools::summary::faults_text;
use crate::screen::windows::faults::ToolSetting;
use crate::screen::windows::flags::what_would_change;
use crate::screen::windows::members::{MembersRow, is_entry, is_member, member_rows};
use crate::words::badges::{age_text, run_result, run_state};
use crate::words::format;
use crate::words::question::about;
use crate::words::tool_sentence::breaker_state;

/// Most characters of a text in a list.
const ROW_CHARS: usize = 200;

impl PlainLoop {
    pub(super) fn list_scenarios(&mut self, words: &str) -> Result<(), String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let mut lines = Vec::new();
        for (at, entry) in self.state.scenarios.iter().enumerate() {
            let about = match &entry.loaded {
                Ok(scenario) => {
                    format!("{}, {}", scenario.title, scenario.pattern.get().name())
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
        found
            .map(|entry| entry.path.clone())
            .ok_or_else(|| format!("no scenario {name}: {}", suggest_name(name, known)))
    }

    /// A run by its id, the beginning of one, its number in the list, or `last`.
    pub(super) fn run_named(&self, name: &str) -> Result<RunId, String> {
        let listed = self.state.listed();
        let ids: Vec<&RunId> =
            (0..listed.len()).filter_map(|at| listed.get(at)).map(ListedRun::id).collect();
        let kept = self.state.history.rows().iter().map(|row| &row.id);
        let all: Vec<&RunId> = self.state.runs.iter().map(|page| page.id()).chain(kept).collect();
        if let Some(run) = all.iter().find(|run| run.as_str() == name) {
            return Ok((*run).clone());
        }
        if name == "last" {
            let own = self.state.runs.last().map(|page| page.id());
            return own.or(ids.first().copied()).cloned().ok_or("there are no runs".to_owned());
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
        let mut lines = Vec::new();
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
        }
        if lines.is_empty() {
            return Err("no runs".to_owned());
        }
        lines.iter().for_each(|line| self.out.line(line));
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
        let mut lines = Vec::new();
        for row in
            world.tools.rows().iter().filter(|row| tool.is_empty() || row.name().as_str() == tool)
        {
            let injected = faults_text(row).unwrap_or_else(|| "no fault".to_owned());
            let breaker = match row.head.limits.breaker {
                Some(_) => format!(", breaker {}", breaker_state(row.breaker)),
                None => String::new(),
            };
            lines.push(format!("{}: {injected}{breaker}", row.name()));
            for setting in ToolSetting::rows_for(&row.head.limits) {
                if let ToolSetting::Limit(limit) = setting
                    && let Ok(value) = serde_json::to_value(limit)
                {
                    let name = value.get("limit").and_then(|it| it.as_str()).unwrap_or_default();
                    let value = value.get("value").map(ToString::to_string).unwrap_or_default();
                    lines.push(format!("  limit {} {name} {value}", row.name()));
                }
            }
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
                format!("question {} of {} for {}: {what}", asked.id.0, it.page.id(), asked.who)
            })
            .collect();
        lines.extend(self.state.history.waiting(&self.state.runs).map(|row| {
            format!("{} was interrupted and waits for people: open {}, then resume", row.id, row.id)
        }));
        for page in self.state.live_runs() {
            for it in page.world().questions.remembered() {
                let uses = format::count_noun(it.uses, "call");
                lines.push(format!(
                    "{} remembers an approval of {}, used for {uses}: withdraw {}",
                    page.id(),
                    it.tool,
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

    pub(super) fn print_question(&mut self, rest: &str) -> Result<(), String> {
        let (number, _) = number_of(rest).ok_or("type: question N")?;
        let (key, asked) = self.question(number)?;
        self.out.line(&format!("question {number} of {}:", key.run));
        question_lines(&asked).iter().for_each(|line| self.out.line(line));
        self.out.line(&how_to_answer(&asked));
        Ok(())
    }
}
