//! The file format of the pattern `research`.

use serde_json::Value;

use crate::base::seeded_random::Latency;
use crate::pattern::research::spec::{MisquotePolicy, NOTES_PER_PAGE, StepMode};
use crate::scenario::file::amount::Fraction;
use crate::scenario::file::domain::Domain;
use crate::scenario::file::reader::{ReadContext, suggest_name};
use crate::scenario::file::record::{ObjectSchema, Requirement, join_doc_lines, record, words};
use crate::scenario::file::shape::{
    BoundedList, FormatShape, IntegerField, NonBlankString, Positioned, StringField,
};
use crate::scenario::file::tree::{TextSpan, TomlNode, TomlValue};

record! {
    /// The question, the domains that may be read, and who does each step.
    struct ResearchTable => {
        /// The question to answer. `{{input}}` is filled in.
        question: NonBlankString = needed,
        /// Inputs that the planner sees together with the question.
        echo: BoundedList<NonBlankString, 0, 64> = default(BoundedList(Vec::new())),
        /// Domains that may be read at all (the policy allowlist): hosts, each with its port if its
        /// URLs have one.
        allowed_domains_policy: Positioned<BoundedList<Domain, 0, 500>> = needed,
        /// Domains that are switched on (the execution allowlist). Sources of other domains are
        /// denied.
        allowed_domains_execution: Positioned<BoundedList<Domain, 0, 500>> = needed,
        /// Who makes the plan of steps.
        plan: Positioned<StepMode> = default(Positioned::not_in_file(StepMode::Model)),
        /// Who takes notes of a page.
        notes: Positioned<StepMode> = default(Positioned::not_in_file(StepMode::Model)),
        /// Who writes the answer from the notes.
        answer: Positioned<StepMode> = default(Positioned::not_in_file(StepMode::Model)),
        /// System prompt of the plan; the required reply format is appended. There is a default.
        plan_prompt: NonBlankString = optional_or_file,
        /// System prompt of the notes; the required reply format is appended. There is a default.
        notes_prompt: NonBlankString = optional_or_file,
        /// System prompt of the answer; the required reply format is appended. There is a default.
        answer_prompt: NonBlankString = optional_or_file,
        /// The model that plans. Default: that of [model].
        plan_model: NonBlankString = optional,
        /// The model that takes notes. Default: that of [model].
        notes_model: NonBlankString = optional,
        /// The model that writes the answer. Default: that of [model].
        answer_model: NonBlankString = optional,
        /// Text before an answer by rule.
        preface: StringField = optional,
        /// Text after an answer by rule.
        closing: StringField = optional,
        /// Maximum number of characters of a page that the model sees.
        page_chars: IntegerField<200, 1_000_000> = default(IntegerField(24_000)),
        /// Maximum number of notes per page. If it is not set, a rule takes the best 3.
        notes_per_page: Positioned<IntegerField<1, 20>> = default(Positioned::not_in_file(IntegerField(NOTES_PER_PAGE))),
        /// What happens if a quote is not found on its page.
        misquotes: MisquotePolicy = default(MisquotePolicy::Stop),
        /// Domains that must support a claim; with fewer it is marked unconfirmed.
        min_independent_sources: Positioned<IntegerField<1, 20>> = default(Positioned::not_in_file(IntegerField(1))),
        /// Age in days beyond which a page is not used. 0: no limit.
        max_age_days: IntegerField<0, 36_500> = default(IntegerField(0)),
        /// The date of the question, as YYYY-MM-DD. `{{input}}` is filled in. Default: the date on
        /// which the run starts.
        as_of: AsOf = optional,
        /// A pause at each step and each source of an offline run, so that it can be watched: `300ms`,
        /// or `200ms..400ms` for a random time from the seed. Live and instant runs leave it out.
        pace: Latency = default(Latency::default()),
    }
}

words! { StepMode:
    "model" => StepMode::Model, "The model; in an offline run, the script.";
    "rule" => StepMode::Rule, "A rule of the program, without a model.";
    "model_when_live" => StepMode::ModelWhenLive, "The model in a live run, otherwise the rule.";
}

words! { MisquotePolicy:
    "stop" => MisquotePolicy::Stop, "The run stops with verification_failed:quote_not_in_source.";
    "refuse" => MisquotePolicy::Refuse, "The note is refused and counted, and the run continues.";
}

record! {
    /// Settings of one domain.
    struct SourceTable => {
        /// Trust in the domain, from 0 to 1: sources are read in the order of score times trust.
        trust: Fraction = default(Fraction(1.0)),
        /// A flag that takes it off the execution allowlist while it is off.
        flag: NonBlankString = optional,
    }
}

/// A date, or a text with an input that is one.
#[derive(Debug, Clone)]
pub(crate) struct AsOf {
    pub at: TextSpan,
    pub text: String,
}

impl FormatShape for AsOf {
    fn schema() -> Value {
        NonBlankString::schema()
    }
    fn read(node: &TomlNode, cx: &mut ReadContext) -> Option<Self> {
        match &node.value {
            TomlValue::Date(day) => Some(Self { at: node.at, text: day.clone() }),
            _ => {
                NonBlankString::read(node, cx).map(|NonBlankString { at, text }| Self { at, text })
            }
        }
    }
}
