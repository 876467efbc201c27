//! A dashboard without a terminal, for tests: messages in, effects and cells out. The facts come
//! from real runs of the engine under paused time; ids and wall clocks are made the same in every
//! run, so that a screen can be held to a snapshot.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use roundtable::engine::{Engine, EngineSettings, Launch, Schedule};
use roundtable::log::event::{Event, EventKind, RunId, RunStarted, Seq};
use roundtable::scenario::catalogue::{LiveOffer, ProviderHost, ProviderOffer, ScenarioEntry};
use roundtable::scenario::{Override, Scenario, ScenarioOrigin};
use roundtable::screen::effect::{LaunchRequest, RequestId};
use roundtable::screen::form::models::{LiveQueryResult, OfferedModels};
use roundtable::screen::layout::Size;
use roundtable::screen::msg::{Mouse, MouseKind};
use roundtable::screen::state::DisplaySettings;
use roundtable::screen::theme::Theme;
use roundtable::screen::{
    AppState, DrawContext, Effect, KeyCode, KeyPress, Msg, questions, update,
};
use roundtable::words::glyph::Glyphs;
use roundtable::{scenario, screen};

/// The scenarios that are shipped, as entries; none can be run live. They are read once for all tests.
pub fn shipped() -> Vec<ScenarioEntry> {
    static READ: LazyLock<Vec<ScenarioEntry>> = LazyLock::new(read_shipped);
    READ.clone()
}

fn read_shipped() -> Vec<ScenarioEntry> {
    let why = "No key: set OPENAI_API_KEY, or put it into .env.";
    let entry = |shipped: &scenario::ShippedScenario| {
        let live = LiveOffer::Missing { why: why.to_owned() };
        ScenarioEntry::from_text(
            shipped.name.to_owned(),
            shipped.origin(),
            shipped.text.into(),
            live,
        )
    };
    scenario::shipped().iter().map(entry).collect()
}

/// What the shell finds where this model can be asked at the tests' provider.
pub fn ready(model: &str) -> LiveOffer {
    LiveOffer::Ready {
        host: "api.example.com".to_owned(),
        model: model.to_owned(),
        model_from: "the default of Example".to_owned(),
        key: "key from the environment".to_owned(),
        places: vec![place("example")],
    }
}

/// The place of a provider of this word.
pub fn place(provider: &str) -> ProviderHost {
    let name = format!("{}{}", provider[..1].to_uppercase(), &provider[1..]);
    ProviderHost {
        provider: provider.to_owned(),
        name,
        host: format!("api.{provider}.com"),
        known_prefixes: &[],
    }
}

/// The shell answers what the form asked last about live models.
pub fn answer(dash: &mut Dash, offer: LiveOffer, providers: Vec<ProviderOffer>) {
    let asked = dash.asked();
    let query = asked.iter().rev().find_map(|effect| match effect {
        Effect::FindLive(query) => Some(query),
        _ => None,
    });
    let query = query.expect("the form asks whom it would ask");
    let (form, model) = (query.form, query.model.clone());
    dash.send(Msg::LiveFound {
        form,
        model,
        found: Box::new(LiveQueryResult { offer, providers }),
    });
}

/// The lists that the form asks for: which form, and where.
pub fn lists_wanted(dash: &mut Dash) -> Vec<(RequestId, ProviderHost)> {
    let wanted = |effect: Effect| match effect {
        Effect::ListModels { query, place } => Some((query.form, place)),
        _ => None,
    };
    dash.asked().into_iter().filter_map(wanted).collect()
}

/// A list of these names.
pub fn listing(names: &[&str]) -> OfferedModels {
    let names: Arc<[String]> = names.iter().map(|&name| name.to_owned()).collect();
    OfferedModels::Listed { all: names.len(), names }
}

/// A provider that has a key.
pub fn with_key(provider: &str, model: &str) -> ProviderOffer {
    let key = "key from the shell".to_owned();
    ProviderOffer { place: place(provider), model: model.to_owned(), key }
}

/// An entry of a person's own file.
pub fn own(path: &str, text: &str) -> ScenarioEntry {
    let live = ready("small-1");
    ScenarioEntry::from_text(path.to_owned(), ScenarioOrigin::File(path.into()), text.into(), live)
}

/// All facts of a shipped scenario's run, with these overrides and this schedule, under paused
/// time.
pub fn facts(
    name: &str,
    sets: &[&str],
    flags: &[(&str, bool)],
    schedule: Schedule,
) -> Vec<Arc<Event>> {
    let shipped = scenario::shipped().iter().find(|shipped| shipped.name == name);
    let shipped = shipped.expect("a shipped scenario");
    let sets: Vec<Override> = sets.iter().map(|set| set.parse().expect("an override")).collect();
    let scenario = scenario::load(shipped.text, shipped.origin(), &sets).expect("a good scenario");
    facts_of(scenario, flags, schedule)
}

/// All facts of a scenario's run, like [`facts`].
pub fn facts_of(scenario: Scenario, flags: &[(&str, bool)], schedule: Schedule) -> Vec<Arc<Event>> {
    let launch = Launch {
        flags: flags.iter().map(|(name, on)| ((*name).into(), *on)).collect(),
        schedule,
        ..Launch::scripted(Arc::new(scenario), false)
    };
    let runtime = super::table::paused_runtime();
    let events = runtime.block_on(async {
        let engine = Engine::new(EngineSettings::default());
        let run = engine.start(launch);
        run.wait_until_finished().await;
        let mut events = Vec::new();
        run.bus().reader(Seq(0)).take(&mut events, usize::MAX);
        events
    });
    events.into_iter().map(|event| same_in_every_run(&event)).collect()
}

fn same_in_every_run(event: &Arc<Event>) -> Arc<Event> {
    match &event.kind {
        EventKind::RunStarted(head) => {
            let head = RunStarted {
                run: RunId::new("r-7f3a"),
                wall_ms: 1_772_442_000_000,
                ..(**head).clone()
            };
            Arc::new(Event { kind: EventKind::RunStarted(Arc::new(head)), ..(**event).clone() })
        }
        _ => Arc::clone(event),
    }
}

/// How many of these facts there are until the first that is so, that one included.
pub fn until(events: &[Arc<Event>], so: impl Fn(&EventKind) -> bool) -> usize {
    1 + events.iter().position(|event| so(&event.kind)).expect("such a fact")
}

/// The key of this name in [`Dash::press`]; `None` where it is no name but characters to type.
fn key_named(word: &str) -> Option<KeyPress> {
    let code = match word {
        "Space" => KeyCode::Char(' '),
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "S-Tab" => KeyCode::BackTab,
        "Backspace" => KeyCode::Backspace,
        "Delete" => KeyCode::Delete,
        "Insert" => KeyCode::Insert,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "PgUp" => KeyCode::PageUp,
        "PgDn" => KeyCode::PageDown,
        _ => {
            if let Some(c) = word.strip_prefix("C-") {
                return Some(KeyPress::ctrl(c.parse().expect("one character")));
            }
            if let Some(number) = word.strip_prefix('F').and_then(|number| number.parse().ok()) {
                return Some(KeyPress::new(KeyCode::F(number)));
            }
            // A name that is misspelt is not typed.
            let mut chars = word.chars();
            let begins = chars.next().is_some_and(char::is_uppercase);
            assert!(!begins || !chars.next().is_some_and(char::is_lowercase), "no key {word}");
            return None;
        }
    };
    Some(KeyPress::new(code))
}

/// A dashboard that keeps what it asked of the shell.
pub struct Dash {
    pub state: AppState,
    pub now: Duration,
    pub effects: Vec<Effect>,
    /// Whether the last message changed the screen.
    pub redraw: bool,
    /// Whether the terminal shows each change at once.
    pub shows_frames: bool,
    pub theme: Theme,
}

impl Dash {
    pub fn new(cols: u16, rows: u16) -> Self {
        Self::over(cols, rows, shipped(), DisplaySettings::default())
    }

    pub fn over(
        cols: u16,
        rows: u16,
        scenarios: Vec<ScenarioEntry>,
        settings: DisplaySettings,
    ) -> Self {
        let theme = Theme::shipped(&settings.theme).expect("a shipped theme");
        Self {
            state: AppState::new(Size { cols, rows }, settings, scenarios),
            now: Duration::from_secs(10),
            effects: Vec::new(),
            redraw: false,
            shows_frames: true,
            theme,
        }
    }

    pub fn send(&mut self, msg: Msg) -> &mut Self {
        let update = update(&mut self.state, self.now, msg);
        self.redraw = update.redraw;
        self.effects.extend(update.effects);
        if self.shows_frames {
            self.frame();
        }
        self
    }

    /// A frame is drawn, and the terminal shows it.
    pub fn frame(&mut self) -> &mut Self {
        questions::on_frame_drawn(&mut self.state);
        questions::on_frame_shown(&mut self.state, self.now);
        self
    }

    pub fn key(&mut self, key: KeyPress) -> &mut Self {
        self.send(Msg::Key(key))
    }

    /// Types characters, one key each.
    pub fn text(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            self.key(KeyPress::char(c));
        }
        self
    }

    /// Presses keys, written with blanks between them: `/risk Enter Esc C-c 'two words' Space`. A word
    /// is the name of a key, or characters that are typed; what is quoted is typed.
    pub fn press(&mut self, keys: &str) -> &mut Self {
        let mut rest = keys;
        while !rest.is_empty() {
            let quoted = rest.strip_prefix('\'');
            let (word, after) = match quoted {
                Some(quoted) => quoted.split_once('\'').expect("a closing quote"),
                None => rest.split_once(' ').unwrap_or((rest, "")),
            };
            let key = if quoted.is_none() { key_named(word) } else { None };
            match key {
                Some(key) => self.key(key),
                None => self.text(word),
            };
            rest = after.trim_start();
        }
        self
    }

    pub fn click(&mut self, col: u16, row: u16) -> &mut Self {
        self.send(Msg::Mouse(Mouse { kind: MouseKind::Down, col, row }));
        self.send(Msg::Mouse(Mouse { kind: MouseKind::Up, col, row }))
    }

    pub fn wheel(&mut self, up: bool, col: u16, row: u16) -> &mut Self {
        let what = if up { MouseKind::WheelUp } else { MouseKind::WheelDown };
        self.send(Msg::Mouse(Mouse { kind: what, col, row }))
    }

    pub fn after(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    /// The effects since the last time.
    pub fn asked(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The one start that was asked for.
    pub fn launch(&mut self) -> Box<LaunchRequest> {
        let mut effects = self.asked();
        match (effects.pop(), effects.is_empty()) {
            (Some(Effect::Start(request)), true) => request,
            (last, _) => panic!("not one start: {effects:?} {last:?}"),
        }
    }

    /// Adds a run with these facts to the list, started as a person would start it.
    pub fn run(&mut self, id: &str, events: &[Arc<Event>]) -> &mut Self {
        let run = RunId::new(id);
        let request = roundtable::screen::effect::RequestId(u64::MAX);
        let at = events.last().map_or(Duration::ZERO, |event| event.at.duration());
        let zero = self.now.saturating_sub(at);
        self.send(Msg::Started { request, run: run.clone(), zero, launch: None });
        self.send(Msg::Events { run, events: events.to_vec() })
    }

    pub fn draw(&self) -> Buffer {
        let area = self.state.terminal.area();
        let mut buf = Buffer::empty(area);
        let glyphs = Glyphs::new(self.state.settings.ascii);
        let cx = DrawContext { now: self.now, theme: &self.theme, glyphs };
        screen::render(&self.state, &cx, area, &mut buf);
        buf
    }

    /// The screen as text.
    pub fn screen(&self) -> String {
        text(&self.draw())
    }

    /// The screen as text, its styles below.
    pub fn dump(&self) -> String {
        let buf = self.draw();
        format!("{}\n{}", text(&buf), styles(&buf))
    }
}

pub use roundtable::screen::picture::text;

/// The styles that are not the terminal's own: for each row the stretches, a name for each style,
/// and what the names mean.
pub fn styles(buf: &Buffer) -> String {
    let mut seen: Vec<String> = Vec::new();
    let mut out = String::new();
    for y in buf.area.top()..buf.area.bottom() {
        let mut stretches: Vec<(u16, u16, usize)> = Vec::new();
        for x in buf.area.left()..buf.area.right() {
            let said = say(buf[(x, y)].style());
            if said.is_empty() {
                continue;
            }
            let name = seen.iter().position(|known| *known == said).unwrap_or_else(|| {
                seen.push(said);
                seen.len() - 1
            });
            match stretches.last_mut() {
                Some((_, end, last)) if *last == name && *end + 1 == x => *end = x,
                _ => stretches.push((x, x, name)),
            }
        }
        if stretches.is_empty() {
            continue;
        }
        let _ = write!(out, "{y:>3}:");
        for (from, to, name) in stretches {
            let _ = write!(out, " {from}-{to}{}", letter(name));
        }
        out.push('\n');
    }
    for (name, said) in seen.iter().enumerate() {
        let _ = writeln!(out, "{} = {said}", letter(name));
    }
    out
}

fn letter(name: usize) -> String {
    let letter = char::from(b'a' + (name % 26) as u8);
    match name / 26 {
        0 => letter.to_string(),
        more => format!("{letter}{more}"),
    }
}

fn say(style: Style) -> String {
    let mut parts = Vec::new();
    for (name, colour) in [("", style.fg), ("on ", style.bg)] {
        if let Some(colour) = colour.filter(|colour| *colour != Color::Reset) {
            parts.push(format!("{name}{colour}"));
        }
    }
    if !style.add_modifier.is_empty() {
        let names: Vec<_> = style.add_modifier.iter_names().map(|(name, _)| name).collect();
        parts.push(names.join("+").to_lowercase());
    }
    let _: Modifier = style.add_modifier;
    parts.join(" ")
}
