//! The words for runs and files: the list of runs, going to one, comparing, exporting.

use super::PlainLoop;
use super::start::ROW_CHARS;
use super::tell::state_text;
use super::words::Typed;
use crate::base::visible::visible_within;
use crate::log::event::RunId;
use crate::scenario::read::suggest_name;
use crate::screen::Action;
use crate::screen::by_word::ByWord;
use crate::screen::home::history::ListedRun;
use crate::screen::state::ActiveScreen;
use crate::words::badges::{age_text, run_result, run_state};
use crate::words::format;

impl PlainLoop {
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

    /// `search WORDS`: the runs in which they were said.
    pub(super) fn search(&mut self, typed: Typed<'_>) -> Result<(), String> {
        if typed.rest.is_empty() {
            return Err(typed.usage());
        }
        let words = typed.rest.split_whitespace().map(|it| format!("said:{it}"));
        self.filter_runs(&words.collect::<Vec<_>>().join(" "))
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
        self.out.each(&lines);
        let these = runs_text(numbered.len() as u64);
        self.out.line(&format!("numbers now name the {these}{of}: open 1"));
        self.numbered = numbered;
        Ok(())
    }

    pub(super) fn sort(&mut self, typed: Typed<'_>) -> Result<(), String> {
        const WORDS: [&str; 5] = ["newest", "cost", "tokens", "time", "status"];
        let by = typed.rest;
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

    pub(super) fn open(&mut self, typed: Typed<'_>) -> Result<(), String> {
        if typed.rest.is_empty() {
            return Err(typed.usage());
        }
        self.open_run(self.run_named(typed.rest)?);
        Ok(())
    }

    /// Goes to a run, and says where that is.
    pub(super) fn open_run(&mut self, run: RunId) {
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

    pub(super) fn go_home(&mut self, _: Typed<'_>) -> Result<(), String> {
        if self.state.visible_run().is_some() {
            return self.act(Action::Back);
        }
        self.tell_place();
        Ok(())
    }

    pub(super) fn export(&mut self, _: Typed<'_>) -> Result<(), String> {
        self.here()?;
        self.act(Action::Export)
    }

    /// `save WHAT`: what `show WHAT` prints, or the run as Markdown.
    pub(super) fn save_shown(&mut self, typed: Typed<'_>) -> Result<(), String> {
        match typed.rest {
            "" => Err(typed.usage()),
            "markdown" => self.act(Action::CopyMarkdown),
            what => {
                let text = self.shown(what)?;
                self.save(what, text);
                Ok(())
            }
        }
    }

    /// An action on the run that is named, else on the one here.
    pub(super) fn act_on_named(&mut self, name: &str, action: Action) -> Result<(), String> {
        let run = match name {
            "" => self.here()?.id().clone(),
            name => self.run_named(name)?,
        };
        self.act_on(run, action);
        Ok(())
    }

    /// An action that needs the name of a run.
    pub(super) fn act_on_kept(&mut self, typed: Typed<'_>, action: Action) -> Result<(), String> {
        match typed.rest {
            "" => Err(typed.usage()),
            name => self.act_on_named(name, action),
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

    /// `compare [RUN] [RUN] [all]`.
    pub(super) fn compare(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let mut named: Vec<&str> = typed.rest.split_whitespace().collect();
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
                    false => Err(format!("the run here is no fork: {}", typed.usage())),
                };
            }
            [one] => {
                let here = self.here()?.id().clone();
                (here, self.run_named(one)?)
            }
            [one, two] => (self.run_named(one)?, self.run_named(two)?),
            _ => return Err(typed.usage()),
        };
        if left == right {
            return Err(format!("{left} is both of them: name another run"));
        }
        self.show_all_runs();
        self.by(ByWord::Compare(left, right));
        Ok(())
    }
}

fn runs_text(count: u64) -> String {
    format::count_noun(count, "run")
}
