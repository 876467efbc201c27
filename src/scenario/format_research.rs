//! The format of a scenario file: what only the pattern `research` has.

use serde_json::{Value, json};

use super::amount::Fraction;
use super::domain::Domain;
use super::reader::{Reader, among};
use super::record::{Need, ObjectSchema, record, sentence, words};
use super::research::{Misquotes, NOTES_PER_PAGE, Who};
use super::shape::{At, List, Prose, Shape, Text, Whole};
use super::tree::{Node, Span, Tree};

record! {
    /// What is asked, where it may be looked for, and who does each step.
    struct ResearchTable => {
        /// What is to be found out. `{{input}}` is filled in.
        question: Prose = needed,
        /// Inputs that the planner is shown beside the question.
        echo: List<Prose, 0, 64> = default(List(Vec::new())),
        /// Domains that may ever be read: hosts, each with its port where its addresses have one.
        allowed_domains_policy: At<List<Domain, 0, 500>> = needed,
        /// Domains that are switched on. A source of another one is denied.
        allowed_domains_execution: At<List<Domain, 0, 500>> = needed,
        /// Who makes the plan of steps.
        plan: At<Who> = default(At::nowhere(Who::Model)),
        /// Who takes notes of a page.
        notes: At<Who> = default(At::nowhere(Who::Model)),
        /// Who puts the answer together from the notes.
        answer: At<Who> = default(At::nowhere(Who::Model)),
        /// System prompt of the plan; how it must reply is added to it. Without it: ours.
        plan_prompt: Prose = optional,
        /// System prompt of the notes; how it must reply is added to it. Without it: ours.
        notes_prompt: Prose = optional,
        /// System prompt of the answer; how it must reply is added to it. Without it: ours.
        answer_prompt: Prose = optional,
        /// The model that plans. Without it: that of [model].
        plan_model: Prose = optional,
        /// The model that takes notes. Without it: that of [model].
        notes_model: Prose = optional,
        /// The model that puts the answer together. Without it: that of [model].
        answer_model: Prose = optional,
        /// What an answer by rule begins with.
        preface: Text = optional,
        /// What an answer by rule ends with.
        closing: Text = optional,
        /// Characters of a page that the model is shown at most.
        page_chars: Whole<200, 1_000_000> = default(Whole(24_000)),
        /// Notes of one page at most. Where it is not set a rule takes the best 3.
        notes_per_page: At<Whole<1, 20>> = default(At::nowhere(Whole(NOTES_PER_PAGE))),
        /// What is done with a quote that does not stand in its page.
        misquotes: Misquotes = default(Misquotes::Stop),
        /// Domains that a claim needs; with fewer it is marked unconfirmed.
        min_independent_sources: At<Whole<1, 20>> = default(At::nowhere(Whole(1))),
        /// Days after which a page is too old to be used. 0: never.
        max_age_days: Whole<0, 36_500> = default(Whole(0)),
        /// The day that it is asked about, as YYYY-MM-DD. `{{input}}` is filled in. Without it: the
        /// day on which the run starts.
        as_of: AsOf = optional,
    }
}

words! { Who:
    "model" => Who::Model, "The model; offline, the script.";
    "rule" => Who::Rule, "A rule of the program: no model is asked.";
    "model_when_live" => Who::ModelWhenLive, "The model in a live run, else the rule.";
}

words! { Misquotes:
    "stop" => Misquotes::Stop, "The run stops with verification_failed:quote_not_in_source.";
    "refuse" => Misquotes::Refuse, "The note is refused and counted, and the run goes on.";
}

record! {
    /// What is said of a domain.
    struct SourceTable => {
        /// How far it is trusted, from 0 to 1: sources are read in the order of score times trust.
        trust: Fraction = default(Fraction(1.0)),
        /// The flag that takes it off the execution allowlist while it is off.
        flag: Prose = optional,
    }
}

/// A day, or a text that an input is filled in.
#[derive(Debug, Clone)]
pub(super) struct AsOf {
    pub at: Span,
    pub text: String,
}

impl Shape for AsOf {
    fn schema() -> Value {
        Prose::schema()
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        match &node.value {
            Tree::Date(day) => Some(Self { at: node.at, text: day.clone() }),
            _ => Prose::read(node, cx).map(|Prose { at, text }| Self { at, text }),
        }
    }
}

/// A whole number that is brought between two bounds, both included, as source `004` does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clamped<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> Shape for Clamped<MIN, MAX> {
    fn schema() -> Value {
        json!({ "type": "integer" })
    }
    fn read(node: &Node, cx: &mut Reader) -> Option<Self> {
        let Tree::Whole(Some(number)) = node.value else {
            cx.wrong_type(node, &format!("a whole number from {MIN} to {MAX}"));
            return None;
        };
        let clamped = number.clamp(i64::from(MIN), i64::from(MAX));
        if clamped != number {
            let what = format!("{number} is out of range, so it is taken as {clamped}");
            cx.warn(node.at, what, format!("{MIN} to {MAX}"));
        }
        u32::try_from(clamped).ok().map(Self)
    }
    fn plain(&self) -> Value {
        self.0.into()
    }
}
