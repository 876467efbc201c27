//! The words that steer a run: pauses, flags, faults and limits, members, messages, the end.

use super::PlainLoop;
use super::answers::TextOf;
use super::words::Typed;
use crate::base::name::{FlagName, ToolName};
use crate::cli::args::boundary;
use crate::cli::command_words::{breaker, check, fault, limit};
use crate::log::event::{Command, Initiator, RunId, World};
use crate::log::facts::agents::{RosterChange, RosterCommand};
use crate::log::world::RunState;
use crate::log::world::tool_row::ToolRow;
use crate::scenario::read::suggest_name;
use crate::scenario::spec::tool::FaultKind;
use crate::screen::by_word::ByWord;
use crate::screen::run::NextMessage;
use crate::screen::run::views::tools::summary::faults_text;
use crate::screen::state::ActiveScreen;
use crate::screen::windows::faults::ToolSetting;
use crate::screen::windows::flags::what_would_change;
use crate::screen::windows::members::{MembersRow, is_entry, is_member, member_rows};
use crate::screen::windows::message::MessageBox;
use crate::screen::{Action, Effect};

impl PlainLoop {
    /// Sends a command to the run here, if the run has what it names.
    pub(super) fn send(&mut self, command: Command) -> Result<(), String> {
        let page = self.here()?;
        let run = page.id().clone();
        if page.kept.is_some() {
            return Err(format!("{run} is a kept run: nothing of it can be changed"));
        }
        if !page.world().progress.is_live() {
            return Err(format!("{run} has ended: nothing of it can be changed"));
        }
        check(&command, page.world()).map_err(|why| format!("{run}: {why}"))?;
        if let Some(why) = needless(&command, page.world()) {
            return Err(format!("{run} {why}"));
        }
        self.command(run, command);
        Ok(())
    }

    pub(super) fn pause(&mut self, typed: Typed<'_>) -> Result<(), String> {
        self.hold(typed.rest, &Command::Pause { by: Initiator::You })
    }

    /// A kept run that was interrupted continues.
    pub(super) fn resume(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let is_kept = self.here().is_ok_and(|page| page.kept.is_some());
        match typed.rest.is_empty() && is_kept {
            true => self.act(Action::PauseResume),
            false => self.hold(typed.rest, &Command::Resume { by: Initiator::You }),
        }
    }

    /// Pauses or resumes the run here, or all that are live.
    fn hold(&mut self, which: &str, command: &Command) -> Result<(), String> {
        match which {
            "" => return self.send(command.clone()),
            "all" => {}
            run => {
                return Err(format!(
                    "open {run}, then pause or resume; pause all and resume all are for every live run"
                ));
            }
        }
        let runs: Vec<RunId> = self.state.live_runs().map(|page| page.id().clone()).collect();
        if runs.is_empty() {
            return Err("no run is live".to_owned());
        }
        for run in runs {
            let world = self.state.run(&run).map(|page| page.world());
            match world.and_then(|world| needless(command, world)) {
                Some(why) => self.out.line(&format!("{run} {why}")),
                None => self.command(run, command.clone()),
            }
        }
        Ok(())
    }

    /// `break [BOUNDARY] [off]`.
    pub(super) fn set_breakpoint(&mut self, typed: Typed<'_>) -> Result<(), String> {
        if typed.rest.is_empty() {
            return self.break_next();
        }
        let (at, more) = typed.first_and_more();
        let at = boundary(at)?;
        match more {
            "" => self.send(Command::Break { at, set: true }),
            "off" => self.send(Command::Break { at, set: false }),
            _ => Err(typed.usage()),
        }
    }

    /// `break`: as its key, at the next boundary that has one.
    fn break_next(&mut self) -> Result<(), String> {
        let world = self.here()?.world();
        let next = world.projection().map(|pattern| pattern.next_breakpoint(world));
        match next {
            Some(Ok(at)) => {
                let set = !world.settings.breakpoints.contains(&at);
                self.send(Command::Break { at, set })
            }
            _ if !world.progress.is_live() => self.send(Command::Step),
            Some(Err(why)) => Err(format!("{why} step runs to the next boundary")),
            None => Err("the run has not begun".to_owned()),
        }
    }

    pub(super) fn list_flags(&mut self, _: Typed<'_>) -> Result<(), String> {
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
        self.print_list(&lines, "the run has no flags")
    }

    pub(super) fn switch_flag(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let page = self.here()?;
        let (name, to) = typed.first_and_more();
        let on = match to {
            "on" => true,
            "off" => false,
            _ => return Err(typed.usage()),
        };
        let (run, world) = (page.id().clone(), page.world());
        let known = world.settings.flags.iter().map(|flag| flag.name.as_str());
        if !world.settings.flags.iter().any(|flag| flag.name.as_str() == name) {
            return Err(format!("no flag {name}: {}", suggest_name(name, known)));
        }
        self.by(ByWord::Flag(run, FlagName::from(name), on));
        Ok(())
    }

    /// Undoes the last flag change, else the last removal of a run.
    pub(super) fn undo(&mut self, _: Typed<'_>) -> Result<(), String> {
        let flags = &self.state.pending_flags;
        let run = self.state.visible_run().filter(|page| flags.can_undo(page.id(), page.world()));
        if let Some(run) = run.map(|page| page.id().clone()) {
            self.by(ByWord::UndoFlag(run));
            return Ok(());
        }
        let removed = self.state.history.last_removed().cloned();
        let run = removed.ok_or("no flag change and no removed run to undo")?;
        self.by(ByWord::Do(Effect::RestoreKept(run)));
        Ok(())
    }

    pub(super) fn list_faults(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let rows = tools_named(self.here()?.world(), typed.rest)?;
        let (mut injected, mut quiet, mut limits) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            match faults_text(row) {
                Some(faults) => injected.push(format!("{}: {faults}", row.name())),
                None => quiet.push(row.name().to_string()),
            }
            for setting in ToolSetting::rows_for(&row.head) {
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
        match typed.rest.is_empty() {
            true if !limits.is_empty() => lines.push("faults TOOL lists its limits".to_owned()),
            true => {}
            false => lines.extend(limits),
        }
        self.print_list(&lines, "the run has no tools")
    }

    /// `fault llm latency 800`, `fault llm errors off`.
    pub(super) fn inject(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let (tool, rest) = typed.first_and_more();
        let (kind, value) = match rest.split_once([' ', '=']) {
            Some((kind, value)) => (kind, value.trim()),
            None => (rest, ""),
        };
        if kind.is_empty() {
            return Err(typed.usage());
        }
        let (tool, by) = (ToolName::from(tool), Initiator::You);
        if value == "off" {
            let found = FaultKind::ALL.into_iter().find(|it| it.word() == kind);
            let known = FaultKind::ALL.map(|it| it.word());
            let kind =
                found.ok_or_else(|| format!("no fault {kind}: {}", suggest_name(kind, known)))?;
            return self.send(Command::RemoveFault { tool, kind, by });
        }
        let text = if value.is_empty() { kind.to_owned() } else { format!("{kind}={value}") };
        let fault = fault(&text)?;
        self.send(Command::Inject { tool, fault, by })
    }

    /// `limit TOOL LIMIT VALUE`.
    pub(super) fn set_limit(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let (tool, rest) = typed.first_and_more();
        let (name, value) = rest.split_once([' ', '=']).ok_or_else(|| typed.usage())?;
        let change = limit(&format!("{name}={}", value.trim()))?;
        self.send(Command::SetLimit { tool: tool.into(), change, by: Initiator::You })
    }

    pub(super) fn set_parallel(&mut self, typed: Typed<'_>) -> Result<(), String> {
        match typed.rest.parse() {
            Ok(max_parallel) if max_parallel > 0 => {
                self.send(Command::SetParallel { max_parallel, by: Initiator::You })
            }
            _ => Err(typed.usage()),
        }
    }

    /// `breaker [TOOL] [ACTION]`: without an action, the state.
    pub(super) fn change_breaker(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let (tool, action) = typed.first_and_more();
        if action.is_empty() {
            return self.list_breakers(tool);
        }
        let action = breaker(action)?;
        self.send(Command::Breaker { tool: tool.into(), action, by: Initiator::You })
    }

    pub(super) fn list_members(&mut self, _: Typed<'_>) -> Result<(), String> {
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
        self.print_list(&lines, "no swarm in this run: only members of a swarm join or leave")
    }

    /// `member AGENT join|leave [SWARM]`.
    pub(super) fn change_member(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let words: Vec<&str> = typed.rest.split_whitespace().collect();
        let (agent, to, swarm) = match words[..] {
            [agent, to] => (agent, to, None),
            [agent, to, swarm] => (agent, to, Some(swarm)),
            _ => return Err(typed.usage()),
        };
        let world = self.here()?.world();
        let rows = member_rows(world).into_iter();
        let entries: Vec<_> = rows
            .filter_map(|row| match row {
                MembersRow::Agent(it) => Some(it),
                MembersRow::Swarm(_) => None,
            })
            .filter(|it| swarm.is_none_or(|swarm| it.swarm.as_str() == swarm))
            .collect();
        let names = entries.iter().map(|it| it.agent.as_str());
        let mut fits = entries.iter().filter(|it| it.agent.as_str() == agent);
        let entry = fits
            .next()
            .ok_or_else(|| format!("no agent {agent} here: {}", suggest_name(agent, names)))?;
        if fits.next().is_some() {
            return Err(format!("{agent} could be in several swarms: name one of them, too"));
        }
        let (swarm, agent) = (entry.swarm.clone(), entry.agent.clone());
        let change = match (to, is_member(world, entry)) {
            ("join", true) => return Err(format!("{agent} is a member of {swarm}")),
            ("leave", false) => return Err(format!("{agent} is no member of {swarm}")),
            ("leave", true) if is_entry(world, entry) => {
                return Err(format!("{swarm} starts with {agent}: it cannot leave"));
            }
            ("join", false) => RosterChange::Add { agent },
            ("leave", true) => RosterChange::Remove { agent },
            _ => return Err(typed.usage()),
        };
        self.send(Command::Roster(RosterCommand { swarm, change, by: Initiator::You }))
    }

    /// `say [TEXT]`: without a text its lines follow, if a message can be sent here.
    pub(super) fn say(&mut self, typed: Typed<'_>) -> Result<(), String> {
        if !typed.rest.is_empty() {
            self.by(ByWord::Message(typed.rest.to_owned()));
            return Ok(());
        }
        if MessageBox::for_page(self.here()?).is_none() {
            return Err("only teams, swarms and watched programs take messages".to_owned());
        }
        self.begin_text(TextOf::Message);
        Ok(())
    }

    pub(super) fn unsay(&mut self, _: Typed<'_>) -> Result<(), String> {
        if !matches!(self.here()?.next_message(), NextMessage::Waiting(_)) {
            return Err("no message is queued".to_owned());
        }
        self.by(ByWord::Message(String::new()));
        Ok(())
    }

    /// `kill [all]`.
    pub(super) fn kill(&mut self, typed: Typed<'_>) -> Result<(), String> {
        if typed.rest == "all" {
            // At home, the key asks about every run.
            let screen = std::mem::replace(&mut self.state.screen, ActiveScreen::Home);
            self.screen = self.state.screen.clone();
            self.by(ByWord::Act(Action::Kill));
            self.state.screen = screen.clone();
            self.screen = screen;
            return Ok(());
        }
        match self.here()?.world().progress.is_live() {
            true => self.act(Action::Kill),
            false => Err("the run has ended".to_owned()),
        }
    }
}

/// The tools of a run, or the one with this name.
pub(super) fn tools_named<'w>(world: &'w World, name: &str) -> Result<Vec<&'w ToolRow>, String> {
    let rows = world.tools.rows().iter();
    if name.is_empty() {
        return Ok(rows.collect());
    }
    let found = world.tools.get(name).map(|row| vec![row]);
    found.ok_or_else(|| {
        let names = rows.map(|row| row.name().as_str());
        format!("no tool {name}: {}", suggest_name(name, names))
    })
}

/// Why a command would change nothing.
fn needless(command: &Command, world: &World) -> Option<String> {
    let stage = &world.progress.stage;
    match command {
        Command::Pause { .. } => match stage {
            RunState::Paused { .. } => Some("is paused already".to_owned()),
            RunState::Pausing { .. } => Some("pauses at its next boundary already".to_owned()),
            _ => None,
        },
        Command::Resume { .. } if *stage == RunState::Running => {
            Some(match world.questions.oldest() {
                Some(_) => {
                    "is not paused: it waits for an answer, and questions lists what is asked"
                        .to_owned()
                }
                None => "is not paused: it runs".to_owned(),
            })
        }
        Command::Break { at, set } if world.settings.breakpoints.contains(at) == *set => {
            Some(match set {
                true => format!("pauses at {at} already"),
                false => format!("has no breakpoint at {at}"),
            })
        }
        _ => None,
    }
}
