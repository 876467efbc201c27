//! The file format of the pattern `research`.

use serde_json::{Value, json};

use super::amount::Fraction;
use super::domain::Domain;
use super::reader::{Reader, among};
use super::record::{Need, ObjectSchema, record, sentence, words};
use super::research::{Misquotes, NOTES_PER_PAGE, Who};
use super::shape::{At, List, Prose, Shape, Text, Whole};
use super::tree::{Node, Span, Tree};

record! {
    /// The question, the domains that may be read, and who does each step.
    struct ResearchTable => {
        /// The question to answer. `{{input}}` is filled in.
        question: Prose = needed,
        /// Inputs that the planner sees together with the question.
        echo: List<Prose, 0, 64> = default(List(Vec::new())),
        /// Domains that may be read at all (the policy allowlist): hosts, each with its port if its
        /// URLs have one.
        allowed_domains_policy: At<List<Domain, 0, 500>> = needed,
        /// Domains that are switched on (the execution allowlist). Sources of other domains are
        /// denied.
        allowed_domains_execution: At<List<Domain, 0, 500>> = needed,
        /// Who makes the plan of steps.
        plan: At<Who> = default(At::nowhere(Who::Model)),
        /// Who takes notes of a page.
        notes: At<Who> = default(At::nowhere(Who::Model)),
        /// Who writes the answer from the notes.
        answer: At<Who> = default(At::nowhere(Who::Model)),
        /// System prompt of the plan; the required reply format is appended. There is a default.
        plan_prompt: Prose = optional,
        /// System prompt of the notes; the required reply format is appended. There is a default.
        notes_prompt: Prose = optional,
        /// System prompt of the answer; the required reply format is appended. There is a default.
        answer_prompt: Prose = optional,
        /// The model that plans. Default: that of [model].
        plan_model: Prose = optional,
        /// The model that takes notes. Default: that of [model].
        notes_model: Prose = optional,
        /// The model that writes the answer. Default: that of [model].
        answer_model: Prose = optional,
        /// Text before an answer by rule.
        preface: Text = optional,
        /// Text after an answer by rule.
        closing: Text = optional,
        /// Maximum number of characters of a page that the model sees.
        page_chars: Whole<200, 1_000_000> = default(Whole(24_000)),
        /// Maximum number of notes per page. If it is not set, a rule takes the best 3.
        notes_per_page: At<Whole<1, 20>> = default(At::nowhere(Whole(NOTES_PER_PAGE))),
        /// What happens if a quote is not found on its page.
        misquotes: Misquotes = default(Misquotes::Stop),
        /// Domains that must support a claim; with fewer it is marked unconfirmed.
        min_independent_sources: At<Whole<1, 20>> = default(At::nowhere(Whole(1))),
        /// Age in days beyond which a page is not used. 0: no limit.
        max_age_days: Whole<0, 36_500> = default(Whole(0)),
        /// The date of the question, as YYYY-MM-DD. `{{input}}` is filled in. Default: the date on
        /// which the run starts.
        as_of: AsOf = optional,
    }
}

words! { Who:
    "model" => Who::Model, "The model; in an offline run, the script.";
    "rule" => Who::Rule, "A rule of the program, without a model.";
    "model_when_live" => Who::ModelWhenLive, "The model in a live run, otherwise the rule.";
}

words! { Misquotes:
    "stop" => Misquotes::Stop, "The run stops with verification_failed:quote_not_in_source.";
    "refuse" => Misquotes::Refuse, "The note is refused and counted, and the run continues.";
}

record! {
    /// Settings of one domain.
    struct SourceTable => {
        /// Trust in the domain, from 0 to 1: sources are read in the order of score times trust.
        trust: Fraction = default(Fraction(1.0)),
        /// A flag that takes it off the execution allowlist while it is off.
        flag: Prose = optional,
    }
}

/// A date, or a text with an input that is one.
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

/// An integer that is clamped to two bounds, both included (as in the research source document).
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
            let what = format!("{number} is out of range and is clamped to {clamped}");
            cx.warn(node.at, what, format!("{MIN} to {MAX}"));
        }
        u32::try_from(clamped).ok().map(Self)
    }
    fn plain(&self) -> Value {
        self.0.into()
    }
}
