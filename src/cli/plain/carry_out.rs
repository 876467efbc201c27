//! From a typed line to what it does.

use super::PlainLoop;
use super::Waiting;
use super::answers::Dialog;
use super::tell::{LineLevel, form_fields, form_lines, problem_lines};
use super::words::{Does, WORDS, Word, WordGroup, only_reads, parse};
use crate::base::name::{FlagName, ToolName};
use crate::cli::args::boundary;
use crate::cli::command_words::{breaker, check, fault, limit};
use crate::log::event::kind::Initiator;
use crate::log::event::{Command, RunId, World};
use crate::log::facts::agents::{RosterChange, RosterCommand};
use crate::log::world::RunState;
use crate::scenario::read::suggest_name;
use crate::scenario::spec::tool::FaultKind;
use crate::scenario::templates;
use crate::screen::by_word::ByWord;
use crate::screen::form::fields::choice_of;
use crate::screen::form::{FieldId, FieldValue};
use crate::screen::run::NextMessage;
use crate::screen::run::RunPage;
use crate::screen::state::ActiveScreen;
use crate::screen::windows::Overlay;
use crate::screen::windows::members::{MembersRow, is_entry, is_member, member_rows};
use crate::screen::windows::message::MessageBox;
use crate::screen::{Action, Effect};

/// Words that a question of the program or an open form does not keep waiting.
const BESIDE_FORMS: [WordGroup; 3] = [WordGroup::Answer, WordGroup::Look, WordGroup::Program];

impl PlainLoop {
    /// Takes a typed line.
    pub(super) fn on_line(&mut self, line: &str) {
        let before = self.out.lines;
        self.typed = line.to_owned();
        self.take_line(line);
        // What is awaited prints when it has come.
        let is_open = self.dialog.is_some() || self.quit.is_some() || self.is_held();
        if self.out.lines == before && !is_open {
            self.out.line(&format!("taken: {}", line.trim()));
        }
    }

    fn take_line(&mut self, line: &str) {
        if self.take_dialog_line(line) {
            return;
        }
        if line.trim().is_empty() {
            return self.tell_place();
        }
        let parsed = parse(line);
        if let Some(what) = self.pending() {
            match &parsed {
                Ok((word, _)) if matches!(word.does, Does::Yes | Does::No | Does::Cancel) => {
                    return self.say_yes_or_no(word.does == Does::Yes);
                }
                Ok((word, _)) if word.does == Does::Later && self.has_later() => {
                    return self.by(ByWord::Act(Action::Later));
                }
                Ok((word, _)) if only_reads(word.does) => {}
                Ok((word, _)) => {
                    return self
                        .out
                        .line(&format!("{} has to wait, type yes or no: {what}", word.word));
                }
                Err(_) => return self.out.line(&format!("type yes or no: {what}")),
            }
        }
        match parsed {
            Ok((word, rest)) => self.carry_out(word, rest, line),
            Err(why) => match self.named(line.trim()) {
                Some(ByWord::Show(run)) => self.open(run),
                Some(word) => self.by(word),
                None => self.out.line(&why),
            },
        }
    }

    /// What a line without a word names: at home a scenario or a run.
    fn named(&self, line: &str) -> Option<ByWord> {
        if self.state.visible_run().is_some() || !self.state.overlays.is_empty() {
            return None;
        }
        if let Ok(path) = self.scenario(line) {
            return Some(ByWord::ActOnScenario(path, Action::Open));
        }
        self.run_named(line).ok().map(ByWord::Show)
    }

    fn carry_out(&mut self, word: &'static Word, rest: &str, line: &str) {
        let is_form = matches!(self.state.overlays.last(), Some(Overlay::Form(_)));
        let beside = BESIDE_FORMS.contains(&word.group) && word.does != Does::Suspend;
        let of_form = matches!(
            word.does,
            Does::Form | Does::Set | Does::Start | Does::Cancel | Does::Models | Does::CommandLine
        );
        if is_form && !beside && !of_form {
            return self.out.line("a form is open: start or cancel it first");
        }
        let (first, more) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let more = more.trim();
        let done = match word.does {
            Does::Scenarios => self.list_scenarios(rest),
            Does::Start if is_form && rest.is_empty() => {
                self.by(ByWord::Act(Action::Start));
                self.tell_form_problems();
                Ok(())
            }
            Does::Start if rest.is_empty() => Err("say what: start NAME".to_owned()),
            Does::Start => self.on_scenario(rest, Action::Open),
            Does::New if rest.is_empty() && self.state.visible_run().is_none() => {
                Err("new needs the name of a scenario: new NAME".to_owned())
            }
            Does::New if rest.is_empty() => self.act(Action::NewRun),
            Does::New => self.on_scenario(rest, Action::NewRun),
            Does::Form => self.with_form(|form| Ok(form_lines(form))),
            Does::Models => self.with_form(|form| {
                let lists = form.models.lists_in_order();
                let names = lists.iter().flat_map(|(list, ..)| {
                    (0..).map_while(|at| form.models.name(*list, at)).map(str::to_owned)
                });
                let names: Vec<String> = names.collect();
                match names.is_empty() {
                    true => Err("no list of models: set Replies live asks for one".to_owned()),
                    false => Ok(names),
                }
            }),
            Does::CommandLine => self.with_form(|form| match form.is_startable() {
                true => Ok(vec![form.command_line()]),
                false => Err("fix the fields with errors first".to_owned()),
            }),
            Does::Set => self.set_field(rest),
            Does::Cancel if self.state.overlays.is_empty() => {
                Err("no form is open, and no answer is begun".to_owned())
            }
            Does::Cancel => {
                self.by(ByWord::Act(Action::Cancel));
                if self.state.overlays.is_empty() {
                    self.out.line("the form is closed; nothing was started");
                }
                Ok(())
            }
            Does::Template if rest.is_empty() => {
                for it in templates() {
                    self.out.line(&format!("{}: {}", it.pattern, it.about));
                }
                Ok(())
            }
            Does::Template => match templates().iter().find(|it| it.pattern == rest) {
                Some(it) => {
                    let pattern = it.pattern.clone();
                    self.by(ByWord::Do(Effect::NewScenario { pattern }));
                    Ok(())
                }
                None => {
                    let known = templates().iter().map(|it| it.pattern.as_str());
                    Err(format!("no pattern {rest}: {}", suggest_name(rest, known)))
                }
            },
            Does::Edit if rest.is_empty() => Err("say what: edit NAME".to_owned()),
            Does::Edit => self.on_scenario(rest, Action::Edit),
            Does::Reload => self.act(Action::Rescan),
            Does::Pause | Does::Resume => self.pause_or_resume(word.does, rest),
            Does::Step => self.send(Command::Step),
            Does::StepRound => self.send(Command::StepRound),
            Does::Break if rest.is_empty() => self.break_next(),
            Does::Break => boundary(first).and_then(|at| match more {
                "" => self.send(Command::Break { at, set: true }),
                "off" => self.send(Command::Break { at, set: false }),
                _ => Err(usage(word)),
            }),
            Does::Flags => self.list_flags(),
            Does::Flag => self.switch_flag(word, first, more),
            Does::Undo => {
                let run = self.state.visible_run();
                let flag =
                    run.filter(|page| self.state.pending_flags.can_undo(page.id(), page.world()));
                match flag.map(|page| page.id().clone()) {
                    Some(run) => {
                        self.by(ByWord::UndoFlag(run));
                        Ok(())
                    }
                    None => match self.state.history.last_removed().cloned() {
                        Some(run) => {
                            self.by(ByWord::Do(Effect::RestoreKept(run)));
                            Ok(())
                        }
                        None => Err("no flag change and no removed run to undo".to_owned()),
                    },
                }
            }
            Does::Faults => self.list_faults(rest),
            Does::Fault => self.inject(word, first, more),
            Does::Limit => self.limit(word, first, more),
            Does::Parallel => match rest.parse() {
                Ok(max_parallel) if max_parallel > 0 => {
                    self.send(Command::SetParallel { max_parallel, by: Initiator::You })
                }
                _ => Err(usage(word)),
            },
            Does::Breaker if more.is_empty() => self.tell_breakers(first),
            Does::Breaker => breaker(more).and_then(|action| {
                self.send(Command::Breaker { tool: first.into(), action, by: Initiator::You })
            }),
            Does::Members => self.list_members(),
            Does::Member => self.change_member(word, rest),
            Does::Say if rest.is_empty() => self.begin_message(),
            Does::Say => {
                self.by(ByWord::Message(rest.to_owned()));
                Ok(())
            }
            Does::Unsay => {
                self.here().map(|page| page.next_message().clone()).and_then(|next| match next {
                    NextMessage::Waiting(_) => {
                        self.by(ByWord::Message(String::new()));
                        Ok(())
                    }
                    _ => Err("no message is queued".to_owned()),
                })
            }
            Does::Kill if rest == "all" => {
                let screen = std::mem::replace(&mut self.state.screen, ActiveScreen::Home);
                self.screen = self.state.screen.clone();
                self.by(ByWord::Act(Action::Kill));
                self.state.screen = screen.clone();
                self.screen = screen;
                Ok(())
            }
            Does::Kill => {
                self.here().map(|page| page.world().progress.is_live()).and_then(|live| {
                    if live { self.act(Action::Kill) } else { Err("the run has ended".to_owned()) }
                })
            }
            Does::Fork | Does::Rerun => {
                let action = if word.does == Does::Fork { Action::Fork } else { Action::Rerun };
                let run = match rest {
                    "" => self.here().map(|page| page.id().clone()),
                    name => self.run_named(name),
                };
                run.map(|run| self.act_on(run, action))
            }
            Does::Questions => self.list_questions(),
            Does::Question => self.print_question(rest),
            Does::AnswerQuestion => {
                self.answer(rest);
                Ok(())
            }
            Does::Suggest => self.question_number(rest).and_then(|(run, number, _)| {
                let (key, _) = self.question(run.as_ref(), number)?;
                self.by(ByWord::Do(Effect::Suggest { run: key.run, id: key.id }));
                Ok(())
            }),
            Does::Withdraw => self.question_number(rest).and_then(|(run, number, _)| {
                let id = crate::log::event::kind::QuestionId(number);
                let command = Command::WithdrawApproval { id, by: Initiator::You };
                let Some(run) = run else { return self.send(command) };
                self.command(run, command);
                Ok(())
            }),
            Does::Later => Err("later answers the question before quitting".to_owned()),
            Does::Yes | Does::No => {
                self.say_yes_or_no(word.does == Does::Yes);
                Ok(())
            }
            Does::Status => {
                self.tell_place();
                Ok(())
            }
            Does::Show if rest.is_empty() => self.list_panes(),
            Does::Show => self.shown(rest).map(|text| self.out.block(&text)),
            Does::Tools => self.tell_breakers(""),
            Does::Save if rest.is_empty() => Err(usage(word)),
            Does::Save if rest == "markdown" => self.act(Action::CopyMarkdown),
            Does::Save => self.shown(rest).map(|text| self.save(rest, text)),
            Does::Events => self.list_events(rest),
            Does::Lines => {
                self.level = match rest {
                    "off" => LineLevel::Off,
                    "notable" => LineLevel::Notable,
                    "all" => LineLevel::All,
                    "" => {
                        let now = match self.level {
                            LineLevel::Off => "off",
                            LineLevel::Notable => "notable",
                            LineLevel::All => "all",
                        };
                        let why = "off prints no event while you type";
                        return self.out.line(&format!("lines: {now}. {}; {why}", usage(word)));
                    }
                    _ => return self.out.line(&usage(word)),
                };
                self.out.line(&format!("lines: {rest}"));
                Ok(())
            }
            Does::Inspect | Does::Prompt | Does::Raw => self.inspect(word, rest, line),
            Does::Cause => self.cause(rest),
            Does::At => self.at(rest),
            Does::Compare => self.compare(word, rest),
            Does::Runs => self.filter_runs(rest),
            Does::Search if rest.is_empty() => Err(usage(word)),
            Does::Search => {
                let words: Vec<_> =
                    rest.split_whitespace().map(|it| format!("said:{it}")).collect();
                self.filter_runs(&words.join(" "))
            }
            Does::Sort => self.sort(rest),
            Does::Open if rest.is_empty() => Err(usage(word)),
            Does::Open => self.run_named(rest).map(|run| self.open(run)),
            Does::Next => self.act(Action::NextRun),
            Does::Previous => self.act(Action::PrevRun),
            Does::Home if self.state.visible_run().is_none() => {
                self.tell_place();
                Ok(())
            }
            Does::Home => self.act(Action::Back),
            Does::Export => self.here().map(|_| ()).and_then(|()| self.act(Action::Export)),
            Does::Picture => self.act(Action::Picture),
            Does::Pin | Does::Remove if rest.is_empty() => Err(usage(word)),
            Does::Pin => self.run_named(rest).map(|run| self.act_on(run, Action::Pin)),
            Does::Remove => self.run_named(rest).map(|run| self.act_on(run, Action::Remove)),
            Does::Wait => self.wait_for(word, rest),
            Does::Help => self.help(rest),
            Does::Suspend => self.act(Action::Suspend),
            Does::Quit => {
                if is_form {
                    self.state.overlays.clear();
                }
                self.act(Action::Quit)
            }
        };
        if let Err(why) = done {
            self.out.line(&why);
        }
    }

    /// Goes to a run, and says where that is.
    fn open(&mut self, run: RunId) {
        self.show_all_runs();
        let is_here = matches!(&self.state.screen, ActiveScreen::Run(shown) if *shown == run);
        self.by(ByWord::Show(run.clone()));
        let is_shown = matches!(&self.state.screen, ActiveScreen::Run(shown) if *shown == run);
        match (is_here, is_shown) {
            (true, _) => self.tell_place(),
            (false, true) => {}
            (false, false) => self.out.line(&format!("{run} could not be opened")),
        }
    }

    fn act_on(&mut self, run: RunId, action: Action) {
        self.show_all_runs();
        self.by(ByWord::ActOn(run, action));
    }

    /// Lists every run again: what a filter hides cannot be opened.
    fn show_all_runs(&mut self) {
        if !self.state.history.filter.text().is_empty() {
            self.by(ByWord::FilterRuns(String::new()));
        }
    }

    /// `say` without a text: its lines follow, if a message can be sent here.
    fn begin_message(&mut self) -> Result<(), String> {
        let page = self.here()?;
        if MessageBox::for_page(page).is_none() {
            return Err("only teams, swarms and watched programs take messages".to_owned());
        }
        self.dialog = Some(Dialog::Message(Vec::new()));
        self.out.line(TYPE_LINES);
        Ok(())
    }

    fn act(&mut self, action: Action) -> Result<(), String> {
        self.by(ByWord::Act(action));
        Ok(())
    }

    /// The run that is looked at.
    pub(super) fn here(&self) -> Result<&RunPage, String> {
        self.state
            .visible_run()
            .ok_or_else(|| "no run is open: start NAME starts one, open RUN goes to one".to_owned())
    }

    /// Sends a command to the run here, if the run has what it names.
    fn send(&mut self, command: Command) -> Result<(), String> {
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

    fn pause_or_resume(&mut self, does: Does, rest: &str) -> Result<(), String> {
        let pauses = does == Does::Pause;
        let by = Initiator::You;
        if rest == "all" {
            let live = self.state.live_runs().map(|page| page.id().clone());
            let runs: Vec<RunId> = live.collect();
            if runs.is_empty() {
                return Err("no run is live".to_owned());
            }
            for run in runs {
                let command = if pauses { Command::Pause { by } } else { Command::Resume { by } };
                let world = self.state.run(&run).map(|page| page.world());
                match world.and_then(|world| needless(&command, world)) {
                    Some(why) => self.out.line(&format!("{run} {why}")),
                    None => self.command(run, command),
                }
            }
            return Ok(());
        }
        if !rest.is_empty() {
            return Err(format!(
                "open {rest}, then pause or resume; pause all and resume all are for every live run"
            ));
        }
        let page = self.here()?;
        if !pauses && page.kept.is_some() {
            return self.act(Action::PauseResume);
        }
        self.send(if pauses { Command::Pause { by } } else { Command::Resume { by } })
    }

    fn switch_flag(&mut self, word: &Word, name: &str, to: &str) -> Result<(), String> {
        let page = self.here()?;
        let on = match to {
            "on" => true,
            "off" => false,
            _ => return Err(usage(word)),
        };
        let (run, world) = (page.id().clone(), page.world());
        let known = world.settings.flags.iter().map(|flag| flag.name.as_str());
        if !world.settings.flags.iter().any(|flag| flag.name.as_str() == name) {
            return Err(format!("no flag {name}: {}", suggest_name(name, known)));
        }
        self.by(ByWord::Flag(run, FlagName::from(name), on));
        Ok(())
    }

    /// `fault llm latency 800`, `fault llm errors off`.
    fn inject(&mut self, word: &Word, tool: &str, rest: &str) -> Result<(), String> {
        let (kind, value) = match rest.split_once([' ', '=']) {
            Some((kind, value)) => (kind, value.trim()),
            None => (rest, ""),
        };
        if kind.is_empty() {
            return Err(usage(word));
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

    fn limit(&mut self, word: &Word, tool: &str, rest: &str) -> Result<(), String> {
        let Some((name, value)) = rest.split_once([' ', '=']) else { return Err(usage(word)) };
        let change = limit(&format!("{name}={}", value.trim()))?;
        self.send(Command::SetLimit { tool: tool.into(), change, by: Initiator::You })
    }

    /// `member AGENT join|leave [SWARM]`.
    fn change_member(&mut self, word: &Word, rest: &str) -> Result<(), String> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (agent, to, swarm) = match words[..] {
            [agent, to] => (agent, to, None),
            [agent, to, swarm] => (agent, to, Some(swarm)),
            _ => return Err(usage(word)),
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
            _ => return Err(usage(word)),
        };
        self.send(Command::Roster(RosterCommand { swarm, change, by: Initiator::You }))
    }

    /// `set FIELD [VALUE]`.
    fn set_field(&mut self, rest: &str) -> Result<(), String> {
        let Some(Overlay::Form(form)) = self.state.overlays.last() else {
            return Err("no form is open: new NAME opens one".to_owned());
        };
        let fields: Vec<_> = form_fields(form).map(|(_, field)| field).collect();
        let labels: Vec<String> = fields.iter().map(|field| field.label.clone()).collect();
        // A label may have blanks in it: the longest one that begins the line.
        let lower = rest.to_lowercase();
        let begins = |label: &&String| {
            let label = label.to_lowercase();
            lower
                .strip_prefix(label.as_str())
                .is_some_and(|it| it.is_empty() || it.starts_with(' '))
        };
        let longest = labels.iter().filter(begins).max_by_key(|label| label.len());
        let (name, value) = match longest {
            Some(label) => (label.as_str(), rest.get(label.len()..).unwrap_or_default()),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        let at = choice_of(&labels, name).map_err(|why| format!("no field {name}: {why}"))?;
        let Some(field) = fields.get(at) else { return Ok(()) };
        let (id, mut value) = (field.id.clone(), value.trim().to_owned());
        // A boundary by its id, such as round:2.
        let places =
            form.fork.as_ref().filter(|_| id == FieldId::Boundary).map(|fork| &fork.places);
        let place = places.and_then(|places| places.iter().position(|it| it.id.as_str() == value));
        if let Some(at) = place {
            value = (at + 1).to_string();
        }
        let is_text = matches!(&field.value, FieldValue::Text(text) if text.lines);
        if value.is_empty() && is_text {
            self.dialog = Some(Dialog::Field(id, Vec::new()));
            self.out.line(TYPE_LINES);
            return Ok(());
        }
        self.fill_in(id, value);
        Ok(())
    }

    /// Gives a field of the open form a value, and prints it.
    pub(super) fn fill_in(&mut self, id: FieldId, value: String) {
        self.by(ByWord::Field(id.clone(), value));
        if let Some(Overlay::Form(form)) = self.state.overlays.last()
            && let Some(field) = form.fields.get(&id)
        {
            let now = field.text().split_whitespace().collect::<Vec<_>>().join(" ");
            let now = if now.is_empty() { "empty".to_owned() } else { now };
            self.out.line(&format!("{}: {now}", field.label));
        }
        self.tell_form_problems();
    }

    /// Prints the problems of the open form.
    pub(super) fn tell_form_problems(&mut self) {
        let Some(Overlay::Form(form)) = self.state.overlays.last() else { return };
        let lines = problem_lines(form);
        lines.iter().for_each(|line| self.out.line(line));
    }

    fn with_form(
        &mut self,
        lines: impl FnOnce(&crate::screen::form::LaunchForm) -> Result<Vec<String>, String>,
    ) -> Result<(), String> {
        let Some(Overlay::Form(form)) = self.state.overlays.last() else {
            return Err("no form is open: new NAME opens one".to_owned());
        };
        let lines = lines(form)?;
        lines.iter().for_each(|line| self.out.line(line));
        Ok(())
    }

    /// An action on a scenario, by its name or its number in the list.
    fn on_scenario(&mut self, name: &str, action: Action) -> Result<(), String> {
        let path = self.scenario(name)?;
        self.by(ByWord::ActOnScenario(path, action));
        Ok(())
    }

    /// `compare [RUN] [RUN] [all]`.
    fn compare(&mut self, word: &Word, rest: &str) -> Result<(), String> {
        let mut named: Vec<&str> = rest.split_whitespace().collect();
        self.compares_all = named.last() == Some(&"all");
        if self.compares_all {
            named.pop();
        }
        let (left, right) = match named[..] {
            [] => {
                let head = self.here()?.world().head.as_ref();
                let is_fork = head.is_some_and(|head| {
                    head.launch.as_ref().is_some_and(|launch| launch.forked.is_some())
                });
                return match is_fork {
                    true => self.act(Action::Compare),
                    false => Err(format!("the run here is no fork: {}", usage(word))),
                };
            }
            [one] => {
                let here = self.here()?.id().clone();
                (here, self.run_named(one)?)
            }
            [one, two] => (self.run_named(one)?, self.run_named(two)?),
            _ => return Err(usage(word)),
        };
        if left == right {
            return Err(format!("{left} is both of them: name another run"));
        }
        self.show_all_runs();
        self.by(ByWord::Compare(left, right));
        Ok(())
    }

    fn wait_for(&mut self, word: &Word, rest: &str) -> Result<(), String> {
        let run = self.here()?.id().clone();
        let events = match rest {
            "" => None,
            number => Some(number.trim_start_matches('#').parse().map_err(|_| usage(word))?),
        };
        self.wait = Some(Waiting { run, events });
        Ok(())
    }

    /// `help [WORD|SECTION]`.
    fn help(&mut self, rest: &str) -> Result<(), String> {
        let lower = rest.to_lowercase();
        let section = WordGroup::ALL.into_iter().find(|group| group.section() == lower);
        // A section and a word may have one name, such as start.
        if !rest.is_empty() {
            if let Ok((word, _)) = parse(rest) {
                self.out.line(&format!("{}: {}", word.usage(), word.help));
                self.out.line(&format!("for example: {}", word.example()));
            } else if section.is_none() {
                parse(rest)?;
            }
            let group = section
                .into_iter()
                .flat_map(|group| WORDS.iter().filter(move |word| word.group == group));
            group.for_each(|word| self.out.line(&format!("  {}: {}", word.usage(), word.help)));
            return Ok(());
        }
        for group in WordGroup::ALL {
            let words = WORDS.iter().filter(|word| word.group == group).map(|word| word.word);
            let words: Vec<&str> = words.collect();
            self.out.line(&format!("{}: {}", group.word(), words.join(", ")));
        }
        let sections = WordGroup::ALL.map(WordGroup::section).join(", ");
        self.out.line("help WORD explains a word");
        self.out.line(&format!("help SECTION explains the words of a section: {sections}"));
        self.out.line(
            "Ctrl-C asks to end the run, and twice it quits. Ctrl-D is quit, and again is yes.",
        );
        self.out.line("Lines that begin with a number are events: number, time, what happened.");
        Ok(())
    }
}

/// The announcement of a text of several lines.
pub(super) const TYPE_LINES: &str =
    "type its lines, and a single point as the last one; cancel leaves";

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

/// How a word is used.
pub(super) fn usage(word: &Word) -> String {
    format!("type: {}", word.usage())
}
