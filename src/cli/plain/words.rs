//! The one table of the words of plain mode. `help`, the documents and the reader of lines use it, and a test
//! compares it with the keys of the dashboard: an action has a word, or a reason why it has none.

use super::PlainLoop;
use crate::base::worded;
use crate::log::event::Command;
use crate::scenario::read::suggest_name;
use crate::screen::Action;
use crate::screen::run::inspector::Tab;

/// The heading under which `help` lists a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordGroup {
    Start,
    Steer,
    Answer,
    Look,
    Keep,
    Program,
}

worded! { WordGroup + ALL {
    Start = "Start a run", Steer = "Steer it", Answer = "Answer questions",
    Look = "Look (never changes a run)", Keep = "Runs and files", Program = "The program",
} }

impl WordGroup {
    /// The word that `help` takes for it.
    pub(super) fn section(self) -> String {
        let words = self.word().trim_start_matches("The ");
        words.split_whitespace().next().unwrap_or_default().to_lowercase()
    }
}

/// What a word does with what follows it. The error is printed.
pub(super) type Run = fn(&mut PlainLoop, Typed<'_>) -> Result<(), String>;

/// A typed line: its word, and what follows.
#[derive(Clone, Copy, Debug)]
pub struct Typed<'l> {
    pub word: &'static Word,
    pub rest: &'l str,
    pub line: &'l str,
}

impl<'l> Typed<'l> {
    /// The first of the words that follow, and the others.
    pub(super) fn first_and_more(self) -> (&'l str, &'l str) {
        let (first, more) = self.rest.split_once(char::is_whitespace).unwrap_or((self.rest, ""));
        (first, more.trim())
    }

    /// How the word is used.
    pub(super) fn usage(self) -> String {
        format!("type: {}", self.word.usage())
    }
}

/// One word.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub word: &'static str,
    /// What follows it: names in capitals stand for something else, brackets for what may be left out.
    pub takes: &'static str,
    pub help: &'static str,
    pub group: WordGroup,
    /// The actions of the dashboard that it stands for. Sentences that name a key of these name the word.
    pub actions: &'static [Action],
    pub(super) run: Run,
    /// Whether it only prints: it may be typed while a question is open.
    pub(super) reads: bool,
    /// Whether it may be typed while a form is open.
    pub(super) in_form: bool,
}

const fn word(
    word: &'static str,
    takes: &'static str,
    run: Run,
    help: &'static str,
    group: WordGroup,
    actions: &'static [Action],
) -> Word {
    let in_form = matches!(group, Ask | Look | Program);
    Word { word, takes, help, group, actions, run, reads: false, in_form }
}

impl Word {
    const fn reads(self) -> Self {
        Self { reads: true, ..self }
    }

    const fn in_form(self) -> Self {
        Self { in_form: true, ..self }
    }
}

/// The words that an open question or form waits for.
pub(super) const YES: &str = "yes";
pub(super) const NO: &str = "no";
pub(super) const LATER: &str = "later";
pub(super) const CANCEL: &str = "cancel";
pub(super) const ANSWER: &str = "answer";

use WordGroup::{Answer as Ask, Keep, Look, Program, Start as Begin, Steer};

/// The table, in the order of `help`.
#[rustfmt::skip]
pub static WORDS: &[Word] = &[
    word("scenarios", "[WORDS]", PlainLoop::list_scenarios, "list the scenarios, or those that have these words", Begin, &[]).reads(),
    word("start", "[SCENARIO]", PlainLoop::start, "start a scenario by its name or number; alone, start what the form describes", Begin, &[Action::Open, Action::Start]).in_form(),
    word("new", "[SCENARIO]", PlainLoop::new_run, "open the launch form: goal, inputs, flags, limits, model", Begin, &[Action::NewRun]),
    word("form", "", PlainLoop::print_form, "print the open form again", Begin, &[]).reads().in_form(),
    word("set", "FIELD [VALUE]", PlainLoop::set_field, "fill in a field of the form, by its number or name; a text without a value is typed on the lines that follow", Begin, &[Action::Press]).in_form(),
    word("models", "", PlainLoop::list_models, "the models that the form offers; set 'Model' to one of them", Begin, &[Action::Take]).reads().in_form(),
    word("command", "", PlainLoop::print_command_line, "the command line that does what the form does", Begin, &[]).reads().in_form(),
    word(CANCEL, "", PlainLoop::cancel, "close the form, or leave an answer unsent", Begin, &[Action::Cancel]).in_form(),
    word("template", "[PATTERN]", PlainLoop::write_template, "write a new scenario file from the template of a pattern; alone, list the patterns", Begin, &[Action::NewScenario, Action::WriteTemplate]),
    word("edit", "SCENARIO", PlainLoop::edit, "name the scenario's file, to be edited elsewhere; a shipped one is copied to ./scenarios", Begin, &[Action::Edit]),
    word("reload", "", |it, _| it.act(Action::Rescan), "reload the scenario files", Begin, &[Action::Rescan]),

    word("pause", "[all]", PlainLoop::pause, "pause at the next boundary; all: every live run", Steer, &[Action::PauseResume, Action::PauseAll]),
    word("resume", "[all]", PlainLoop::resume, "resume; continue a run that was interrupted", Steer, &[Action::PauseResume, Action::PauseAll]),
    word("step", "", |it, _| it.send(Command::Step), "step to the next boundary", Steer, &[Action::Step]),
    word("step-round", "", |it, _| it.send(Command::StepRound), "run to the next round", Steer, &[Action::StepRound]),
    word("break", "[BOUNDARY] [off]", PlainLoop::set_breakpoint, "pause at a boundary, such as round:2; alone, at the next round or dispatch, or no longer", Steer, &[Action::Breakpoint]),
    word("flags", "", PlainLoop::list_flags, "the flags, and what a switch would change", Steer, &[Action::Flags]).reads(),
    word("flag", "NAME on|off", PlainLoop::switch_flag, "switch a flag at the next boundary", Steer, &[Action::Toggle]),
    word("undo", "", PlainLoop::undo, "undo the last flag change; without one, bring back the run that was removed last", Steer, &[Action::Undo]),
    word("faults", "[TOOL]", PlainLoop::list_faults, "the faults that are injected; of one tool, its limits too", Steer, &[Action::Faults]).reads(),
    word("fault", "TOOL KIND [VALUE|off]", PlainLoop::inject, "inject a fault, or remove it: latency MS, errors PERCENT[:STATUS], hang, malformed, reset", Steer, &[Action::Toggle, Action::More, Action::Less]),
    word("limit", "TOOL LIMIT VALUE", PlainLoop::set_limit, "change a limit; 'faults TOOL' names them", Steer, &[Action::More, Action::Less]),
    word("parallel", "N", PlainLoop::set_parallel, "how many tasks run at a time", Steer, &[Action::More, Action::Less]),
    word("breaker", "[TOOL] [trip|hold|reset|disable]", PlainLoop::change_breaker, "trip it (it opens, then cools down), hold it open, close it and reset its count, or switch it off; alone, the state of the breakers", Steer, &[Action::BreakerTrip, Action::BreakerHold, Action::BreakerReset, Action::BreakerDisable]),
    word("members", "", PlainLoop::list_members, "the members of each swarm, and who could join", Steer, &[Action::Members]).reads(),
    word("member", "AGENT join|leave [SWARM]", PlainLoop::change_member, "let an agent join a swarm or leave it", Steer, &[Action::Toggle]),
    word("say", "[TEXT]", PlainLoop::say, "send the session's next message, now or once the run has ended; to a watched program, a line of its input; without a text it is typed on the lines that follow", Steer, &[Action::Message, Action::Send]),
    word("unsay", "", PlainLoop::unsay, "withdraw the queued message", Steer, &[Action::Clear]),
    word("kill", "[all]", PlainLoop::kill, "end this run; all: every live run", Steer, &[Action::Kill]),
    word("fork", "[RUN]", |it, typed| it.act_on_named(typed.rest, Action::Fork), "a new run continues from a boundary of this one: opens its form", Steer, &[Action::Fork]),
    word("restart", "[RUN]", |it, typed| it.act_on_named(typed.rest, Action::Restart), "start a run with the settings of this one", Steer, &[Action::Restart]),

    word("questions", "", PlainLoop::list_questions, "the open questions of all runs, and the approvals that runs remember", Ask, &[Action::Inbox, Action::NextQuestion, Action::PrevQuestion]).reads(),
    word("question", "[RUN] N", PlainLoop::print_question, "a question in full, with what somebody reads who answers it, and how to answer it", Ask, &[Action::OpenCard]).reads(),
    word(ANSWER, "[RUN] N [ANSWER]", PlainLoop::answer, "answer it: yes, no, no and a reason, a choice or its number, a text; edit: field by field; always: yes, and every later call of this tool by this agent, with any arguments; alike: yes to all open ones like it; json OBJECT; alone, it asks for what is needed", Ask, &[
        Action::Approve, Action::Deny, Action::Pick(0), Action::EditAnswer, Action::EditJson, Action::Submit, Action::Remember, Action::ApproveMarked, Action::Mark,
    ]),
    word("suggest", "[RUN] N", PlainLoop::suggest, "what the script of the scenario would answer", Ask, &[Action::Suggest]),
    word("withdraw", "[RUN] N", PlainLoop::withdraw, "forget the remembered approval of question N: such calls are asked about again", Ask, &[Action::WithdrawApproval]),
    word(YES, "", |it, _| it.reply(true), "yes, do it", Ask, &[Action::Confirm, Action::Agree]),
    word(NO, "", |it, _| it.reply(false), "no, leave it", Ask, &[Action::Decline]),
    word(LATER, "", |_, _| Err("later answers the question before quitting".to_owned()), "at the question before quitting: leave the live runs, and continue them later", Ask, &[Action::Later]),

    word("status", "", PlainLoop::status, "where you are, how far the run is, and what waits for you; an empty line does the same", Look, &[]).reads(),
    word("show", "[WHAT] [NAME]", PlainLoop::show, "a part of the run as lines, or the outcome; with a name one item of it, such as show tool llm; alone, what there is", Look, &[Action::Pane(0)]).reads(),
    word("tools", "", |it, _| it.list_breakers(""), "the tools with their breakers, calls and errors; show has the panes bulkheads and retries", Look, &[Action::Tools]).reads(),
    word("events", "[all] [COUNT] [FILTER]", PlainLoop::list_events, "the last 20 notable events, or COUNT of them, or of all; of those with these words, or for which a condition in CEL holds", Look, &[Action::Filter]).reads(),
    word("lines", "notable|all|off", PlainLoop::set_lines, "which events are printed as they come", Look, &[Action::EventLevel]).reads(),
    word("inspect", "N [prompt|reply|raw|timing]", |it, typed| it.inspect(typed, None), "event N with its reply; its prompt, its JSON or its times", Look, &[Action::Inspect]).reads(),
    word("prompt", "N|NAME", |it, typed| it.inspect(typed, Some(Tab::Prompt)), "the exact prompt of the call of event N, or the last one of a seat or an agent", Look, &[Action::Prompt]).reads(),
    word("raw", "N", |it, typed| it.inspect(typed, Some(Tab::Raw)), "event N as JSON, where seq counts from 0", Look, &[Action::Raw]).reads(),
    word("cause", "N", PlainLoop::cause, "the event that caused event N; in research, the quote", Look, &[Action::Cause]).reads(),
    word("at", "[MOMENT]", PlainLoop::at, "look at an earlier moment: a boundary or its number, a time such as 4.5s, #N for event N, back, forward, mark back, mark forward; live: the present again; alone, the boundaries with their numbers", Look, &[Action::ScrubBack, Action::ScrubForward, Action::MarkBack, Action::MarkForward, Action::Bottom]),
    word("compare", "[RUN] [RUN] [all]", PlainLoop::compare, "compare this run with another one, or two runs; alone, a fork with its parent; all: every difference", Look, &[Action::Compare]),

    word("runs", "[WORDS]", |it, typed| it.filter_runs(typed.rest), "list and number the runs of this session and the kept ones, or those with these words (said:WORD, status:failed)", Keep, &[Action::Filter, Action::Apply]).reads(),
    word("search", "WORDS", PlainLoop::search, "list the runs in which these words were said", Keep, &[Action::Filter]).reads(),
    word("sort", "newest|cost|tokens|time|status", PlainLoop::sort, "sort the list of runs", Keep, &[Action::Sort]),
    word("open", "RUN", PlainLoop::open, "go to a run, by its id, its number in the list that was printed last, or last; a kept one is read", Keep, &[Action::Open]),
    word("previous", "", |it, _| it.act(Action::PrevRun), "go to the run below this one in the list", Keep, &[Action::PrevRun]),
    word("next", "", |it, _| it.act(Action::NextRun), "go to the run above this one in the list", Keep, &[Action::NextRun]),
    word("home", "", PlainLoop::go_home, "leave the run, which continues", Keep, &[Action::Back]),
    word("export", "", PlainLoop::export, "export the run to files; research as Markdown too", Keep, &[Action::Export]),
    word("save", "WHAT", PlainLoop::save_shown, "write what 'show WHAT' prints to a file; markdown: the run as Markdown", Keep, &[Action::Copy, Action::CopyMarkdown]),
    word("picture", "", |it, _| it.act(Action::Picture), "export a picture of the dashboard's screen: .svg and .txt", Keep, &[Action::Picture]),
    word("pin", "RUN", |it, typed| it.act_on_kept(typed, Action::Pin), "pin a kept run, so that it is never removed by itself; again, not", Keep, &[Action::Pin]),
    word("remove", "RUN", |it, typed| it.act_on_kept(typed, Action::Remove), "remove a kept run; undo brings it back", Keep, &[Action::Remove]),

    word("wait", "[N]", PlainLoop::wait_for, "read the next line only when the run has ended, is paused or waits for you, or has event N", Program, &[]).reads(),
    word("help", "[WORD|SECTION]", PlainLoop::help, "the sections with their words, the lines of a section, or what a word does with an example", Program, &[Action::Help, Action::Commands, Action::Choose]).reads(),
    word("suspend", "", PlainLoop::suspend, "suspend the program; live runs pause", Program, &[Action::Suspend]),
    word("quit", "", PlainLoop::quit, "quit; asks when a run is live", Program, &[Action::Quit]),
];

const NO_CURSOR: &str = "there is no cursor: lists are printed whole, and names and numbers choose";

/// The actions that have no word, each with the reason.
#[rustfmt::skip]
pub static NO_WORD: &[(Action, &str)] = &[
    (Action::Up, NO_CURSOR),
    (Action::Down, NO_CURSOR),
    (Action::Left, NO_CURSOR),
    (Action::Right, NO_CURSOR),
    (Action::Top, NO_CURSOR),
    (Action::PageUp, NO_CURSOR),
    (Action::PageDown, NO_CURSOR),
    (Action::NextPane, NO_CURSOR),
    (Action::PrevPane, NO_CURSOR),
    (Action::Zoom, "there are no panes to enlarge: 'show' prints all of one"),
    (Action::Theme, "there are no colours"),
    (Action::Redraw, "nothing is drawn: what was printed stays"),
    (Action::Tour, "it explains keys: help lists the words"),
    (Action::Interrupt, "Ctrl-C is no word: it asks to end the run, and twice it quits"),
];

/// The word for an action, for sentences that name its key.
pub fn word_of(action: Action) -> Option<&'static str> {
    let is_it = |own: &Action| own.name() == action.name();
    WORDS.iter().find(|word| word.actions.iter().any(is_it)).map(|word| word.word)
}

/// Short forms of words.
const SHORT: [(&str, &str); 5] =
    [("?", "help"), ("exit", "quit"), ("q", "quit"), ("continue", "resume"), ("message", "say")];

/// A line by the word that begins it.
///
/// # Errors
/// No word begins the line: what it could be.
pub fn parse(line: &str) -> Result<Typed<'_>, String> {
    let (given, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let lower = given.to_lowercase();
    let name = SHORT.iter().find(|(short, _)| *short == lower).map_or(lower.as_str(), |it| it.1);
    match WORDS.iter().find(|word| word.word == name) {
        Some(word) => Ok(Typed { word, rest: rest.trim(), line }),
        None => {
            if let Some((_, why)) = NO_WORD.iter().find(|(action, _)| action.name() == name) {
                return Err(format!("{name} has no word: {why}"));
            }
            let guess = suggest_name(name, WORDS.iter().map(|word| word.word));
            let guess = if guess.starts_with("did") { guess } else { "type help".to_owned() };
            Err(format!("no word `{given}`: {guess}"))
        }
    }
}

impl Word {
    /// The word with what follows it.
    pub fn usage(&self) -> String {
        format!("{} {}", self.word, self.takes).trim_end().to_owned()
    }

    /// A line as it may be typed.
    pub fn example(&self) -> &'static str {
        let example = EXAMPLES.iter().find(|it| it.split(' ').next() == Some(self.word));
        example.copied().unwrap_or(self.word)
    }
}

/// A line for each word that takes something.
#[rustfmt::skip]
const EXAMPLES: &[&str] = &[
    "scenarios checkout", "start checkout-launch", "new checkout-launch", "set goal Decide on Monday",
    "template team", "edit checkout-launch", "pause all", "resume", "break round:2", "flag legal_analyst on",
    "faults llm", "fault llm errors 20:503", "limit llm timeout_ms 800", "parallel 2", "breaker llm trip",
    "member billing join", "say And what does it cost?", "kill all", "fork last", "restart last",
    "question 2", "answer 2 no, too much", "suggest 2", "withdraw 2", "show tool llm", "events 40 retry",
    "lines all", "inspect 14 prompt", "prompt 14", "raw 14", "cause 14", "at round:2", "compare 1 2",
    "runs status:failed", "search refund", "sort cost", "open 2", "save outcome", "pin last", "remove 3",
    "wait 40", "help flag",
];

/// The words and the reasons, for the documents.
#[cfg(test)]
pub(crate) fn words_markdown() -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut out = String::new();
    for group in WordGroup::ALL {
        out += &format!("**{}**\n\n| word | what |\n| --- | --- |\n", group.word());
        for word in WORDS.iter().filter(|word| word.group == group) {
            out += &format!("| `{}` | {} |\n", cell(&word.usage()), cell(word.help));
        }
        out.push('\n');
    }
    out += "Keys of the dashboard without a word:\n\n| action | why |\n| --- | --- |\n";
    for (action, why) in NO_WORD {
        out += &format!("| `{}` | {why} |\n", action.name());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::keymap::BINDINGS;

    #[test]
    fn every_action_has_word_or_reason() {
        for row in BINDINGS {
            let name = row.action.name();
            let reason = NO_WORD.iter().any(|(action, _)| action.name() == name);
            assert!(
                word_of(row.action).is_some() != reason,
                "`{name}` needs a word in WORDS, or a reason in NO_WORD, and not both"
            );
        }
        for (action, _) in NO_WORD {
            assert!(BINDINGS.iter().any(|row| row.action == *action), "{action:?} has no key");
        }
    }

    #[test]
    fn words_are_read_with_their_rest() {
        for (line, name, rest) in [
            ("pause", "pause", ""),
            ("  PAUSE all ", "pause", "all"),
            ("flag legal_analyst on", "flag", "legal_analyst on"),
            ("answer 2   no, too much", "answer", "2   no, too much"),
            ("? flag", "help", "flag"),
            ("exit", "quit", ""),
        ] {
            let typed = parse(line).expect(line);
            assert_eq!((typed.word.word, typed.rest), (name, rest), "{line}");
        }
        for (line, told) in [
            ("puase", "no word `puase`: did you mean `pause`?"),
            ("answr 2 yes", "no word `answr`: did you mean `answer`?"),
            ("xyzzy", "no word `xyzzy`: type help"),
            ("theme", "theme has no word: there are no colours"),
        ] {
            assert_eq!(parse(line).map(|it| it.word.word).expect_err(line), told);
        }
    }

    #[test]
    fn words_are_unique_and_typable() {
        for (at, word) in WORDS.iter().enumerate() {
            assert!(WORDS[..at].iter().all(|other| other.word != word.word), "{}", word.word);
            assert!(word.word.bytes().all(|it| it.is_ascii_lowercase() || it == b'-'));
            assert!(!word.help.is_empty() && !word.help.ends_with('.'), "{}", word.word);
            assert!(word.takes.is_empty() || word.example().contains(' ') || word.word == "resume");
        }
    }
}
