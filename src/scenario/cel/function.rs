//! The functions of conditions: CEL's own for JSON values, and two extensions. `truthy(x)` and
//! `number(x)` make rules as lenient about a tool's result as the Python rules of the source
//! documents.

use super::decision::EvalBudget;
use super::value::{CelText, CelValue};
use super::{EvalError, RunFunction, eval_error, shorten};
use crate::scenario::read::closest_name;

/// A function that a condition may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    String,
    Int,
    UInt,
    Double,
    Bool,
    Type,
    Dyn,
    Truthy,
    Number,
}

/// How a function is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallForm {
    /// `size(x)`.
    Plain,
    /// `x.contains(y)`.
    Member,
    Both,
}

/// Each function with its name, its number of arguments and its form.
const TABLE: [(Function, &str, usize, CallForm); 13] = [
    (Function::Size, "size", 1, CallForm::Both),
    (Function::Contains, "contains", 2, CallForm::Member),
    (Function::StartsWith, "startsWith", 2, CallForm::Member),
    (Function::EndsWith, "endsWith", 2, CallForm::Member),
    (Function::String, "string", 1, CallForm::Plain),
    (Function::Int, "int", 1, CallForm::Plain),
    (Function::UInt, "uint", 1, CallForm::Plain),
    (Function::Double, "double", 1, CallForm::Plain),
    (Function::Bool, "bool", 1, CallForm::Plain),
    (Function::Type, "type", 1, CallForm::Plain),
    (Function::Dyn, "dyn", 1, CallForm::Plain),
    (Function::Truthy, "truthy", 1, CallForm::Plain),
    (Function::Number, "number", 1, CallForm::Plain),
];

impl Function {
    /// Finds a function by name, for a call on a value (`member`) or not, with `values` arguments
    /// in all.
    pub(crate) fn find(
        name: &str,
        member: bool,
        values: usize,
        of_run: bool,
    ) -> Result<Self, String> {
        let named = TABLE.iter().find(|(_, own, ..)| *own == name);
        let Some((function, _, takes, form)) = named else {
            return Err(no_function(name, of_run));
        };
        let usage = match form {
            CallForm::Member => format!("x.{name}({})", if *takes == 2 { "y" } else { "" }),
            CallForm::Plain | CallForm::Both => format!("{name}(x)"),
        };
        let fits = match form {
            CallForm::Plain => !member,
            CallForm::Member => member,
            CallForm::Both => true,
        };
        if fits && *takes == values { Ok(*function) } else { Err(format!("write `{usage}`")) }
    }

    fn name(self) -> &'static str {
        TABLE.iter().find(|(function, ..)| *function == self).map_or("", |(_, name, ..)| name)
    }

    /// Calls the function. [`find`](Self::find) has checked the number of arguments.
    pub(crate) fn call<'v>(
        self,
        args: &[CelValue<'v>],
        budget: &mut EvalBudget,
    ) -> Result<CelValue<'v>, EvalError> {
        match args {
            [one] => self.call_unary(one, budget),
            [one, other] => self.call_binary(one, other, budget),
            _ => Err(eval_error(format!("`{}` has too many arguments", self.name()))),
        }
    }

    fn call_unary<'v>(
        self,
        value: &CelValue<'v>,
        budget: &mut EvalBudget,
    ) -> Result<CelValue<'v>, EvalError> {
        if let CelValue::Text(text) = value {
            budget.count_read(text.as_str().len())?;
        }
        Ok(match (self, value) {
            (Self::Size, CelValue::Text(text)) => whole(text.as_str().chars().count()),
            (Self::Size, CelValue::List(list)) => whole(list.len()),
            (Self::Size, CelValue::Map(map)) => whole(map.len()),
            (Self::Dyn, value) => value.clone(),
            (Self::Type, value) => CelValue::Type(value.kind()),
            (Self::Truthy, value) => CelValue::Bool(truth(value)),
            (Self::Number, value) => match value.as_number() {
                Some(number) => CelValue::Double(number),
                None => return Err(self.argument_type_error(value)),
            },
            (Self::String, CelValue::Text(text)) => CelValue::Text(text.clone()),
            (Self::String, CelValue::Bool(truth)) => created_text(truth.to_string(), budget)?,
            (Self::String, CelValue::Int(number)) => created_text(number.to_string(), budget)?,
            (Self::String, CelValue::UInt(number)) => created_text(number.to_string(), budget)?,
            (Self::String, CelValue::Double(number)) => created_text(number.to_string(), budget)?,
            (Self::Bool, CelValue::Bool(truth)) => CelValue::Bool(*truth),
            (Self::Bool, CelValue::Text(text)) => match text.as_str() {
                "1" | "t" | "true" | "TRUE" | "True" => CelValue::Bool(true),
                "0" | "f" | "false" | "FALSE" | "False" => CelValue::Bool(false),
                _ => return Err(self.conversion_error(text)),
            },
            (Self::Double, CelValue::Text(text)) => match text.as_str().parse() {
                Ok(number) => CelValue::Double(number),
                Err(_) => return Err(self.conversion_error(text)),
            },
            (Self::Double, CelValue::Int(_) | CelValue::UInt(_) | CelValue::Double(_)) => {
                CelValue::Double(value.as_number().unwrap_or_default())
            }
            (Self::Int, CelValue::Int(number)) => CelValue::Int(*number),
            (Self::Int, CelValue::UInt(number)) => match i64::try_from(*number) {
                Ok(number) => CelValue::Int(number),
                Err(_) => return Err(self.overflow_error()),
            },
            // Both ends are excluded, as in CEL: a double can hold the minimum exactly, but not the
            // maximum.
            (Self::Int, CelValue::Double(number)) => {
                if *number > i64::MIN as f64 && *number < i64::MAX as f64 {
                    CelValue::Int(*number as i64)
                } else {
                    return Err(self.overflow_error());
                }
            }
            (Self::Int, CelValue::Text(text)) => match text.as_str().parse() {
                Ok(number) => CelValue::Int(number),
                Err(_) => return Err(self.conversion_error(text)),
            },
            (Self::UInt, CelValue::UInt(number)) => CelValue::UInt(*number),
            (Self::UInt, CelValue::Int(number)) => match u64::try_from(*number) {
                Ok(number) => CelValue::UInt(number),
                Err(_) => return Err(self.overflow_error()),
            },
            (Self::UInt, CelValue::Double(number)) => {
                if *number >= 0.0 && *number < u64::MAX as f64 {
                    CelValue::UInt(*number as u64)
                } else {
                    return Err(self.overflow_error());
                }
            }
            (Self::UInt, CelValue::Text(text)) => match text.as_str().parse() {
                Ok(number) => CelValue::UInt(number),
                Err(_) => return Err(self.conversion_error(text)),
            },
            (_, value) => return Err(self.argument_type_error(value)),
        })
    }

    fn call_binary<'v>(
        self,
        value: &CelValue<'v>,
        other: &CelValue<'v>,
        budget: &mut EvalBudget,
    ) -> Result<CelValue<'v>, EvalError> {
        let (CelValue::Text(text), CelValue::Text(part)) = (value, other) else {
            let wrong = if matches!(value, CelValue::Text(_)) { other } else { value };
            return Err(self.argument_type_error(wrong));
        };
        let (text, part) = (text.as_str(), part.as_str());
        let found = match self {
            Self::StartsWith | Self::EndsWith => {
                budget.count_read(part.len().min(text.len()))?;
                if self == Self::StartsWith { text.starts_with(part) } else { text.ends_with(part) }
            }
            _ => {
                budget.count_read(text.len().saturating_add(part.len()))?;
                text.contains(part)
            }
        };
        Ok(CelValue::Bool(found))
    }

    fn argument_type_error(self, value: &CelValue<'_>) -> EvalError {
        eval_error(format!("`{}` does not take {}", self.name(), value.kind()))
    }

    fn overflow_error(self) -> EvalError {
        eval_error(format!("`{}` overflows 64 bits", self.name()))
    }

    fn conversion_error(self, text: &CelText<'_>) -> EvalError {
        eval_error(format!("`{}` cannot read \"{}\"", self.name(), shorten(text.as_str())))
    }
}

/// Names of functions in other languages, each with the one of CEL.
const SYNONYMS: [(&[&str], &str); 7] = [
    (&["len", "length", "count"], "size"),
    (&["includes", "include", "has"], "contains"),
    (&["each", "every"], "all"),
    (&["any", "some"], "exists"),
    (&["float"], "double"),
    (&["num"], "number"),
    (&["str"], "string"),
];

/// The macros of CEL that are called like functions.
const MACROS: [&str; 6] = ["all", "exists", "exists_one", "filter", "map", "has"];

/// The error for a function that does not exist. `of_run`: those of expectations exist, too.
fn no_function(name: &str, of_run: bool) -> String {
    let own = || TABLE.iter().map(|(_, name, ..)| *name);
    let of_runs = RunFunction::names().filter(|_| of_run);
    let synonym = SYNONYMS.iter().find(|(words, _)| words.contains(&name)).map(|(_, own)| *own);
    let meant = synonym.or_else(|| closest_name(name, of_runs.chain(own()).chain(MACROS)));
    let name = shorten(name);
    match meant {
        Some(meant) => format!("there is no function `{name}`; did you mean `{meant}`?"),
        None => {
            let names: Vec<&str> = own().collect();
            format!("there is no function `{name}`; there are {}", names.join(", "))
        }
    }
}

/// Python's truth value: null, zero and empty values are false.
fn truth(value: &CelValue<'_>) -> bool {
    match value {
        CelValue::Null => false,
        CelValue::Text(text) => !text.as_str().is_empty(),
        CelValue::List(list) => list.len() > 0,
        CelValue::Map(map) => map.len() > 0,
        value => value.as_number().is_none_or(|number| number != 0.0),
    }
}

fn whole<'v>(count: usize) -> CelValue<'v> {
    CelValue::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn created_text<'v>(text: String, budget: &mut EvalBudget) -> Result<CelValue<'v>, EvalError> {
    budget.count_created(text.len())?;
    Ok(CelValue::text(text))
}
