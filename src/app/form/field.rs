//! One field of the launch form.

use crate::scenario::model::PatternSpec;
use tui_textarea::{CursorMove, Input, TextArea, WrapMode};

use crate::app::key::{Key, KeyCode};
use crate::event::visible::{is_hostile, judged, stand_in};
use crate::scenario::name::{FlagName, InputName};

/// The most bytes that a text of the form may have.
pub const MOST_BYTES: usize = 256 * 1024;

/// Which field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FieldId {
    /// What the run is asked.
    Goal,
    /// An input of the scenario.
    Input(InputName),
    /// A flag at the start.
    Flag(FlagName),
    /// A limit.
    Limit(Limit),
    /// Who answers.
    Model,
    /// The model that live answers come from.
    ModelName,
    /// Start of every random number.
    Seed,
    /// The button that starts the run.
    Start,
    /// The button that closes the form.
    Cancel,
}

/// A limit of a run; each pattern has some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Rounds at most.
    Rounds,
    /// Contributions at most.
    Messages,
    /// Seconds of the whole run.
    Seconds,
    /// Votes for `go` that decide.
    GoVotes,
    /// Tasks of a plan.
    Tasks,
    /// Tasks at once.
    Parallel,
    /// Attempts of a task beyond the first.
    Retries,
    /// Attempts of all tasks.
    Dispatches,
    /// Agents at once.
    Agents,
    /// Turns of each agent.
    Turns,
    /// Call slots that the agents share.
    Pool,
}

impl Limit {
    /// Every limit in the order of the form.
    pub const ALL: [Limit; 11] = [
        Self::Rounds,
        Self::Messages,
        Self::Tasks,
        Self::Parallel,
        Self::Retries,
        Self::Dispatches,
        Self::Agents,
        Self::Turns,
        Self::Pool,
        Self::Seconds,
        Self::GoVotes,
    ];

    /// Its value in a scenario; `None` where the pattern has no such limit.
    pub fn of(self, pattern: &PatternSpec) -> Option<u64> {
        let number = match (self, pattern) {
            (Self::Seconds, pattern) => return Some(pattern.max_seconds().as_secs()),
            (Self::Rounds, PatternSpec::Collaboration(spec)) => spec.budget.max_rounds,
            (Self::Messages, PatternSpec::Collaboration(spec)) => spec.budget.max_messages,
            (Self::GoVotes, PatternSpec::Collaboration(spec)) => spec.budget.min_go_votes,
            (Self::Tasks, PatternSpec::Orchestrator(spec)) => spec.budget.max_tasks,
            (Self::Parallel, PatternSpec::Orchestrator(spec)) => spec.budget.max_parallel,
            (Self::Retries, PatternSpec::Orchestrator(spec)) => spec.budget.max_retries_per_task,
            (Self::Dispatches, PatternSpec::Orchestrator(spec)) => spec.budget.max_dispatches,
            (Self::Agents, PatternSpec::Resilience(spec)) => spec.agents,
            (Self::Turns, PatternSpec::Resilience(spec)) => spec.turns,
            (Self::Pool, PatternSpec::Resilience(spec)) => spec.pool,
            _ => return None,
        };
        Some(u64::from(number))
    }

    /// Its field in a scenario.
    pub fn path(self) -> &'static str {
        match self {
            Self::Rounds => "budget.max_rounds",
            Self::Messages => "budget.max_messages",
            Self::Seconds => "budget.max_seconds",
            Self::GoVotes => "budget.min_go_votes",
            Self::Tasks => "budget.max_tasks",
            Self::Parallel => "budget.max_parallel",
            Self::Retries => "budget.max_retries_per_task",
            Self::Dispatches => "budget.max_dispatches",
            Self::Agents => "resilience.agents",
            Self::Turns => "resilience.turns",
            Self::Pool => "resilience.pool",
        }
    }

    /// What the form calls it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Rounds => "Rounds at most",
            Self::Messages => "Messages at most",
            Self::Seconds => "Seconds at most",
            Self::GoVotes => "Go votes needed",
            Self::Tasks => "Tasks at most",
            Self::Parallel => "Tasks at once",
            Self::Retries => "Retries of a task",
            Self::Dispatches => "Dispatches",
            Self::Agents => "Agents at once",
            Self::Turns => "Turns of each",
            Self::Pool => "Call slots",
        }
    }
}

/// A field with what stands in it.
#[derive(Debug)]
pub struct Field {
    /// Which.
    pub id: FieldId,
    /// What stands beside it.
    pub label: String,
    /// What may be given, where that is not plain.
    pub hint: String,
    /// What stands in it is meant as a text, whatever it looks like.
    pub literal: bool,
    /// What stands in it.
    pub value: FieldValue,
}

/// What stands in a field.
#[derive(Debug)]
pub enum FieldValue {
    /// Text.
    Text(Box<TextField>),
    /// One of these.
    Choice {
        /// What there is to choose from.
        choices: Vec<String>,
        /// Which.
        at: usize,
        /// Which it was at first.
        first: usize,
    },
    /// A switch.
    Switch {
        /// Its position.
        on: bool,
        /// Its position at first.
        first: bool,
    },
    /// A model, chosen in a window of its own.
    Model {
        /// Its name as `--model` takes it; empty: as the scenario and the environment say.
        text: String,
        /// What it was at first.
        first: String,
    },
    /// Something to press.
    Button,
}

/// Text that can be edited.
#[derive(Debug)]
pub struct TextField {
    /// The text and the cursor in it.
    pub area: TextArea<'static>,
    /// Whether Enter is a line end in it.
    pub lines: bool,
    first: String,
}

impl TextField {
    /// A field with this text.
    pub fn new(text: &str, lines: bool) -> Self {
        Self { area: area(text), lines, first: text.to_owned() }
    }

    /// The whole text.
    pub fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Whether it is another text than at first.
    pub fn changed(&self) -> bool {
        let mut first = self.first.split('\n');
        !(self.area.lines().iter().all(|line| first.next() == Some(line)) && first.next().is_none())
    }

    /// Puts another text in its place, as what it was at first.
    pub fn reset(&mut self, text: &str) {
        if self.first != text || self.changed() {
            *self = Self::new(text, self.lines);
        }
    }

    /// Takes a key; says whether the text or the cursor may have changed.
    pub fn on_key(&mut self, key: Key) -> bool {
        let Some(input) = input(key) else { return false };
        self.area.input(input);
        true
    }

    /// What it takes of pasted text, and how many lines with something in them it leaves out: all
    /// of it where it has lines, else the first line.
    pub fn of_paste<'a>(&self, text: &'a str) -> (&'a str, usize) {
        if self.lines {
            return (text, 0);
        }
        let mut lines = text.split(['\n', '\r']).filter(|line| !line.trim().is_empty());
        (lines.next().unwrap_or_default(), lines.count())
    }

    /// Takes pasted text. Control characters other than line ends become visible signs;
    /// says how many.
    pub fn on_paste(&mut self, text: &str) -> usize {
        let mut signs = 0;
        let mut plain = String::with_capacity(text.len());
        for (c, hides) in judged(text) {
            match c {
                '\n' => plain.push('\n'),
                '\t' => plain.push_str("    "),
                c if hides => {
                    signs += 1;
                    plain.push(stand_in(c));
                }
                c => plain.push(c),
            }
        }
        self.area.insert_str(plain);
        signs
    }

    /// Characters in it that no screen shows: a file's text may hold them, and they count.
    pub fn unseen(&self) -> usize {
        self.area.lines().iter().flat_map(|line| judged(line)).filter(|(_, hides)| *hides).count()
    }

    /// How many more bytes it takes.
    pub fn room(&self) -> usize {
        let taken: usize = self.area.lines().iter().map(|line| line.len() + 1).sum();
        MOST_BYTES.saturating_sub(taken)
    }
}

fn area(text: &str) -> TextArea<'static> {
    let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

fn input(key: Key) -> Option<Input> {
    use tui_textarea::Key as TextKey;
    let code = match key.code {
        KeyCode::Char(c) if is_hostile(c) => return None,
        KeyCode::Char(c) => TextKey::Char(c),
        KeyCode::Enter => TextKey::Enter,
        KeyCode::Backspace => TextKey::Backspace,
        KeyCode::Delete => TextKey::Delete,
        KeyCode::Up => TextKey::Up,
        KeyCode::Down => TextKey::Down,
        KeyCode::Left => TextKey::Left,
        KeyCode::Right => TextKey::Right,
        KeyCode::Home => TextKey::Home,
        KeyCode::End => TextKey::End,
        KeyCode::PageUp => TextKey::PageUp,
        KeyCode::PageDown => TextKey::PageDown,
        KeyCode::Esc | KeyCode::Tab | KeyCode::BackTab | KeyCode::Insert | KeyCode::F(_) => {
            return None;
        }
    };
    Some(Input { key: code, ctrl: key.ctrl, alt: key.alt, shift: key.shift })
}

impl Field {
    /// Whether it is another than at first.
    pub fn changed(&self) -> bool {
        match &self.value {
            FieldValue::Text(text) => text.changed(),
            FieldValue::Choice { at, first, .. } => at != first,
            FieldValue::Switch { on, first } => on != first,
            FieldValue::Model { text, first } => text != first,
            FieldValue::Button => false,
        }
    }

    /// What stands in it, as text.
    pub fn text(&self) -> String {
        match &self.value {
            FieldValue::Text(text) => text.text(),
            FieldValue::Choice { choices, at, .. } => choices.get(*at).cloned().unwrap_or_default(),
            FieldValue::Switch { on, .. } => on.to_string(),
            FieldValue::Model { text, .. } => text.clone(),
            FieldValue::Button => String::new(),
        }
    }

    /// The next (or the last) choice, or the other position; says whether that is something.
    pub fn turn(&mut self, forward: bool) -> bool {
        match &mut self.value {
            FieldValue::Choice { choices, at, .. } if !choices.is_empty() => {
                let steps = if forward { 1 } else { choices.len() - 1 };
                *at = (*at + steps) % choices.len();
                true
            }
            FieldValue::Switch { on, .. } => {
                *on = !*on;
                true
            }
            _ => false,
        }
    }
}
