//! The words that start a run: scenarios and the launch form.

use super::PlainLoop;
use super::answers::TextOf;
use super::tell::LINE_CHARS;
use super::words::Typed;
use crate::base::visible::visible_within;
use crate::scenario::read::suggest_name;
use crate::scenario::templates;
use crate::screen::by_word::ByWord;
use crate::screen::form::fields::choice_of;
use crate::screen::form::{Field, FieldId, FieldValue, FormProblem, FormSection, LaunchForm};
use crate::screen::windows::Overlay;
use crate::screen::{Action, Effect};

/// Most characters of a text in a list.
pub(super) const ROW_CHARS: usize = 200;

impl PlainLoop {
    pub(super) fn list_scenarios(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let words: Vec<String> = typed.rest.split_whitespace().map(str::to_lowercase).collect();
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
        self.print_list(&lines, "no scenario has these words")
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

    /// `start [SCENARIO]`: alone, what the form describes.
    pub(super) fn start(&mut self, typed: Typed<'_>) -> Result<(), String> {
        match (typed.rest, self.form().is_ok()) {
            ("", true) => {
                self.by(ByWord::Act(Action::Start));
                self.tell_form_problems();
                Ok(())
            }
            ("", false) => Err("say what: start NAME".to_owned()),
            (name, _) => self.on_scenario(name, Action::Open),
        }
    }

    /// `new [SCENARIO]`: alone, with that of the run here.
    pub(super) fn new_run(&mut self, typed: Typed<'_>) -> Result<(), String> {
        match typed.rest {
            "" if self.state.visible_run().is_none() => {
                Err("new needs the name of a scenario: new NAME".to_owned())
            }
            "" => self.act(Action::NewRun),
            name => self.on_scenario(name, Action::NewRun),
        }
    }

    pub(super) fn edit(&mut self, typed: Typed<'_>) -> Result<(), String> {
        match typed.rest {
            "" => Err("say what: edit NAME".to_owned()),
            name => self.on_scenario(name, Action::Edit),
        }
    }

    /// `template [PATTERN]`: alone, the patterns.
    pub(super) fn write_template(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let wanted = typed.rest;
        if wanted.is_empty() {
            let patterns = templates().iter().map(|it| format!("{}: {}", it.pattern, it.about));
            self.out.each(&patterns.collect::<Vec<_>>());
            return Ok(());
        }
        let found = templates().iter().find(|it| it.pattern == wanted);
        let template = found.ok_or_else(|| {
            let known = templates().iter().map(|it| it.pattern.as_str());
            format!("no pattern {wanted}: {}", suggest_name(wanted, known))
        })?;
        self.by(ByWord::Do(Effect::NewScenario { pattern: template.pattern.clone() }));
        Ok(())
    }

    /// An action on a scenario, by its name or its number in the list.
    fn on_scenario(&mut self, name: &str, action: Action) -> Result<(), String> {
        let path = self.scenario(name)?;
        self.by(ByWord::ActOnScenario(path, action));
        Ok(())
    }

    /// The open form.
    pub(super) fn form(&self) -> Result<&LaunchForm, String> {
        match self.state.overlays.last() {
            Some(Overlay::Form(form)) => Ok(form),
            _ => Err("no form is open: new NAME opens one".to_owned()),
        }
    }

    pub(super) fn print_form(&mut self, _: Typed<'_>) -> Result<(), String> {
        let lines = form_lines(self.form()?);
        self.out.each(&lines);
        Ok(())
    }

    pub(super) fn list_models(&mut self, _: Typed<'_>) -> Result<(), String> {
        let models = &self.form()?.models;
        let lists = models.lists_in_order();
        let names = lists
            .iter()
            .flat_map(|(list, ..)| (0..).map_while(|at| models.name(*list, at)).map(str::to_owned));
        let names: Vec<String> = names.collect();
        self.print_list(&names, "no list of models: set Replies live asks for one")
    }

    pub(super) fn print_command_line(&mut self, _: Typed<'_>) -> Result<(), String> {
        let form = self.form()?;
        if !form.is_startable() {
            return Err("fix the fields with errors first".to_owned());
        }
        let line = form.command_line();
        self.out.line(&line);
        Ok(())
    }

    /// Closes the form.
    pub(super) fn cancel(&mut self, _: Typed<'_>) -> Result<(), String> {
        if self.state.overlays.is_empty() {
            return Err("no form is open, and no answer is begun".to_owned());
        }
        self.by(ByWord::Act(Action::Cancel));
        if self.state.overlays.is_empty() {
            self.out.line("the form is closed; nothing was started");
        }
        Ok(())
    }

    /// `set FIELD [VALUE]`.
    pub(super) fn set_field(&mut self, typed: Typed<'_>) -> Result<(), String> {
        let (form, rest) = (self.form()?, typed.rest);
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
            self.begin_text(TextOf::Field(id));
            return Ok(());
        }
        self.fill_in(id, value);
        Ok(())
    }

    /// Gives a field of the open form a value, and prints it.
    pub(super) fn fill_in(&mut self, id: FieldId, value: String) {
        self.by(ByWord::Field(id.clone(), value));
        if let Some(field) = self.form().ok().and_then(|form| form.fields.get(&id)) {
            let now = field.text().split_whitespace().collect::<Vec<_>>().join(" ");
            let now = if now.is_empty() { "empty".to_owned() } else { now };
            self.out.line(&format!("{}: {now}", field.label));
        }
        self.tell_form_problems();
    }

    /// Prints the problems of the open form.
    fn tell_form_problems(&mut self) {
        let lines = self.form().map(problem_lines).unwrap_or_default();
        self.out.each(&lines);
    }
}

/// The launch form: a line for each field, and its problems.
pub(super) fn form_lines(form: &LaunchForm) -> Vec<String> {
    let what = match &form.fork {
        Some(fork) => format!("a fork of {}", fork.run),
        None => format!("a run of {}", form.entry.name),
    };
    let mut lines = vec![format!("form of {what}: set FIELD VALUE, then start or cancel")];
    for (at, field) in form_fields(form) {
        let section = FormSection::of_field(&field.id).title(form.fork.is_some());
        // The hint of a boundary names keys.
        let has_hint = !field.hint.is_empty() && field.id != FieldId::Boundary;
        let hint = if has_hint { format!(" ({})", field.hint) } else { String::new() };
        let value = match &field.value {
            FieldValue::Switch { on: true, .. } => "on, takes on or off".to_owned(),
            FieldValue::Switch { on: false, .. } => "off, takes on or off".to_owned(),
            _ => field.text().split_whitespace().collect::<Vec<_>>().join(" "),
        };
        let value = visible_within(&value, LINE_CHARS);
        lines.push(format!("field {} {section}: {}{hint}: {value}", at + 1, field.label));
        if let FieldValue::Choice { choices, .. } = &field.value {
            let numbered = choices.iter().enumerate();
            lines.extend(numbered.map(|(at, choice)| format!("  {} {choice}", at + 1)));
        }
    }
    lines.extend(problem_lines(form));
    lines
}

/// The problems of a form.
fn problem_lines(form: &LaunchForm) -> Vec<String> {
    let label = |id: &Option<FieldId>| {
        let field = id.as_ref().and_then(|id| form.fields.get(id));
        field.map(|field| format!("{}: ", field.label)).unwrap_or_default()
    };
    let line = |fault: &FormProblem| {
        let kind = if fault.error { "error" } else { "warning" };
        format!("{kind}: {}{}", label(&fault.field), fault.text)
    };
    form.problems.iter().map(line).collect()
}

/// The fields of a form that take a value, with their places.
fn form_fields(form: &LaunchForm) -> impl Iterator<Item = (usize, &Field)> {
    let has_value = |field: &&Field| {
        !matches!(field.value, FieldValue::Button) && form.fields.is_shown(&field.id)
    };
    form.fields.list.iter().filter(has_value).enumerate()
}
