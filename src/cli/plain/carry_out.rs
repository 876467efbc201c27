//! From a typed line to what it does, and the words of the program itself.

use super::tell::LineLevel;
use super::words::{CANCEL, LATER, NO, Typed, WORDS, WordGroup, YES, parse};
use super::{PlainLoop, Waiting};
use crate::screen::Action;
use crate::screen::by_word::ByWord;
use crate::screen::run::RunPage;

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
            match parsed {
                Ok(Typed { word, .. }) if matches!(word.word, YES | NO | CANCEL) => {
                    return self.say_yes_or_no(word.word == YES);
                }
                Ok(Typed { word, .. }) if word.word == LATER && self.has_later() => {
                    return self.by(ByWord::Act(Action::Later));
                }
                Ok(Typed { word, .. }) if word.reads => {}
                Ok(Typed { word, .. }) => {
                    let word = word.word;
                    return self.out.line(&format!("{word} has to wait, type yes or no: {what}"));
                }
                Err(_) => return self.out.line(&format!("type yes or no: {what}")),
            }
        }
        match parsed {
            Ok(typed) => self.carry_out(typed),
            Err(why) => match self.named(line.trim()) {
                Some(ByWord::Show(run)) => self.open_run(run),
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

    fn carry_out(&mut self, typed: Typed<'_>) {
        let done = match self.form().is_ok() && !typed.word.in_form {
            true => Err(FORM_OPEN.to_owned()),
            false => (typed.word.run)(self, typed),
        };
        if let Err(why) = done {
            self.out.line(&why);
        }
    }

    pub(super) fn act(&mut self, action: Action) -> Result<(), String> {
        self.by(ByWord::Act(action));
        Ok(())
    }

    /// The run that is looked at.
    pub(super) fn here(&self) -> Result<&RunPage, String> {
        self.state
            .visible_run()
            .ok_or_else(|| "no run is open: start NAME starts one, open RUN goes to one".to_owned())
    }

    /// Prints a list; `empty`: what is wrong if it has no line.
    pub(super) fn print_list(&mut self, lines: &[String], empty: &str) -> Result<(), String> {
        if lines.is_empty() {
            return Err(empty.to_owned());
        }
        self.out.each(lines);
        Ok(())
    }

    pub(super) fn status(&mut self, _: Typed<'_>) -> Result<(), String> {
        self.tell_place();
        Ok(())
    }

    /// `lines notable|all|off`.
    pub(super) fn set_lines(&mut self, typed: Typed<'_>) -> Result<(), String> {
        if typed.rest.is_empty() {
            let (now, why) = (self.level.word(), "off prints no event while you type");
            return Err(format!("lines: {now}. {}; {why}", typed.usage()));
        }
        let level = LineLevel::ALL.into_iter().find(|it| it.word() == typed.rest);
        self.level = level.ok_or_else(|| typed.usage())?;
        self.out.line(&format!("lines: {}", typed.rest));
        Ok(())
    }

    pub(super) fn wait_for(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let run = self.here()?.id().clone();
        let events = match typed.rest {
            "" => None,
            number => Some(number.trim_start_matches('#').parse().map_err(|_| typed.usage())?),
        };
        self.wait = Some(Waiting { run, events });
        Ok(())
    }

    /// `help [WORD|SECTION]`.
    pub(super) fn help(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let rest = typed.rest;
        let lower = rest.to_lowercase();
        let section = WordGroup::ALL.into_iter().find(|group| group.section() == lower);
        // A section and a word may have one name, such as start.
        if !rest.is_empty() {
            if let Ok(Typed { word, .. }) = parse(rest) {
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

    pub(super) fn suspend(&mut self, _: Typed<'_>) -> Result<(), String> {
        match self.form() {
            Ok(_) => Err(FORM_OPEN.to_owned()),
            Err(_) => self.act(Action::Suspend),
        }
    }

    /// An open form is left.
    pub(super) fn quit(&mut self, _: Typed<'_>) -> Result<(), String> {
        if self.form().is_ok() {
            self.state.overlays.clear();
        }
        self.act(Action::Quit)
    }
}

const FORM_OPEN: &str = "a form is open: start or cancel it first";
