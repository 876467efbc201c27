//! Finds which model each caller uses, and the settings of its requests.

use crate::scenario::file::amount::Number;
use crate::scenario::file::format::ScenarioFile;
use crate::scenario::file::reader::ReadContext;
use crate::scenario::file::shape::{FreeTable, IntegerField, NonBlankString};
use crate::scenario::pattern_row::{ModelKey, PatternRow};
use crate::scenario::spec::model_assignment::ModelAssignment;
use crate::scenario::spec::tuning::{JsonMode, RESERVED, Tuning};

/// The request settings of a `[model]` table, of a scenario or of the configuration.
pub(crate) struct Requests {
    pub temperature: Option<Number<0, 2>>,
    pub max_tokens: Option<IntegerField<1, 10_000_000>>,
    pub reasoning_effort: Option<NonBlankString>,
    pub json: Option<JsonMode>,
    pub extra: FreeTable,
}

/// Builds the request settings; reports reserved keys in `extra`.
pub(crate) fn tuning(requests: Requests, cx: &mut ReadContext) -> Tuning {
    let extra = cx.at_key("extra", |cx| {
        for (key, node) in &requests.extra.table.entries {
            if RESERVED.contains(&key.text.as_str()) {
                let help = "other keys of the scenario set it";
                cx.error(node.at, format!("`{}` cannot be set here", key.text), help);
            }
        }
        requests.extra.table.json(&mut |text, _| text.into()).unwrap_or_default()
    });
    Tuning {
        temperature: requests.temperature.map(|number| number.0),
        max_tokens: requests.max_tokens.map(|tokens| tokens.0),
        reasoning_effort: requests.reasoning_effort.map(|word| word.text.trim().to_owned()),
        json: requests.json,
        extra,
    }
}

/// The callers with a model of their own, in the file's order.
pub(crate) fn seated(file: &ScenarioFile, own: &PatternRow) -> Vec<ModelAssignment> {
    let keys = (own.models)(file).into_iter();
    let assignments = keys.filter_map(|ModelKey { caller, place, model }| {
        let model = model.as_ref()?;
        let by_override = model.at.text > 0;
        Some(ModelAssignment { caller, model: model.text.trim().to_owned(), place, by_override })
    });
    assignments.collect()
}
