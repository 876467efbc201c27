//! The functions of conditions: CEL's own for JSON values, and two extensions. `truthy(x)` and
//! `number(x)` make rules as lenient about a tool's result as the Python rules of the source
//! documents.

use super::budget::Budget;
use super::eval::{Fault, failed, short};
use super::value::{Text, Value};

/// A function that a condition may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
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
enum Form {
    /// `size(x)`.
    Plain,
    /// `x.contains(y)`.
    Member,
    Both,
}

/// Each function with its name, its number of arguments and its form.
const TABLE: [(Function, &str, usize, Form); 13] = [
    (Function::Size, "size", 1, Form::Both),
    (Function::Contains, "contains", 2, Form::Member),
    (Function::StartsWith, "startsWith", 2, Form::Member),
    (Function::EndsWith, "endsWith", 2, Form::Member),
    (Function::String, "string", 1, Form::Plain),
    (Function::Int, "int", 1, Form::Plain),
    (Function::UInt, "uint", 1, Form::Plain),
    (Function::Double, "double", 1, Form::Plain),
    (Function::Bool, "bool", 1, Form::Plain),
    (Function::Type, "type", 1, Form::Plain),
    (Function::Dyn, "dyn", 1, Form::Plain),
    (Function::Truthy, "truthy", 1, Form::Plain),
    (Function::Number, "number", 1, Form::Plain),
];

impl Function {
    /// Finds a function by name, for a call on a value (`member`) or not, with `values` arguments
    /// in all.
    ///
    /// # Errors
    /// What is wrong with the call, and which functions exist.
    pub(super) fn find(name: &str, member: bool, values: usize) -> Result<Self, String> {
        let named = TABLE.iter().find(|(_, own, ..)| *own == name);
        let Some((function, _, takes, form)) = named else {
            let names: Vec<&str> = TABLE.iter().map(|(_, name, ..)| *name).collect();
            let name = short(name);
            return Err(format!("there is no function `{name}`; there are {}", names.join(", ")));
        };
        let usage = match form {
            Form::Member => format!("x.{name}({})", if *takes == 2 { "y" } else { "" }),
            Form::Plain | Form::Both => format!("{name}(x)"),
        };
        let fits = match form {
            Form::Plain => !member,
            Form::Member => member,
            Form::Both => true,
        };
        if fits && *takes == values { Ok(*function) } else { Err(format!("write `{usage}`")) }
    }

    fn name(self) -> &'static str {
        TABLE.iter().find(|(function, ..)| *function == self).map_or("", |(_, name, ..)| name)
    }

    /// Calls the function. [`find`](Self::find) has checked the number of arguments.
    pub(super) fn call<'v>(
        self,
        args: &[Value<'v>],
        budget: &mut Budget,
    ) -> Result<Value<'v>, Fault> {
        match args {
            [one] => self.of_one(one, budget),
            [one, other] => self.of_two(one, other, budget),
            _ => Err(failed(format!("`{}` has too many arguments", self.name()))),
        }
    }

    fn of_one<'v>(self, value: &Value<'v>, budget: &mut Budget) -> Result<Value<'v>, Fault> {
        if let Value::Text(text) = value {
            budget.scan(text.as_str().len())?;
        }
        Ok(match (self, value) {
            (Self::Size, Value::Text(text)) => whole(text.as_str().chars().count()),
            (Self::Size, Value::List(list)) => whole(list.len()),
            (Self::Size, Value::Map(map)) => whole(map.len()),
            (Self::Dyn, value) => value.clone(),
            (Self::Type, value) => Value::Type(value.kind()),
            (Self::Truthy, value) => Value::Bool(truth(value)),
            (Self::Number, value) => match value.as_number() {
                Some(number) => Value::Double(number),
                None => return Err(self.refuses(value)),
            },
            (Self::String, Value::Text(text)) => Value::Text(text.clone()),
            (Self::String, Value::Bool(truth)) => made(truth.to_string(), budget)?,
            (Self::String, Value::Int(number)) => made(number.to_string(), budget)?,
            (Self::String, Value::UInt(number)) => made(number.to_string(), budget)?,
            (Self::String, Value::Double(number)) => made(number.to_string(), budget)?,
            (Self::Bool, Value::Bool(truth)) => Value::Bool(*truth),
            (Self::Bool, Value::Text(text)) => match text.as_str() {
                "1" | "t" | "true" | "TRUE" | "True" => Value::Bool(true),
                "0" | "f" | "false" | "FALSE" | "False" => Value::Bool(false),
                _ => return Err(self.cannot_read(text)),
            },
            (Self::Double, Value::Text(text)) => match text.as_str().parse() {
                Ok(number) => Value::Double(number),
                Err(_) => return Err(self.cannot_read(text)),
            },
            (Self::Double, Value::Int(_) | Value::UInt(_) | Value::Double(_)) => {
                Value::Double(value.as_number().unwrap_or_default())
            }
            (Self::Int, Value::Int(number)) => Value::Int(*number),
            (Self::Int, Value::UInt(number)) => match i64::try_from(*number) {
                Ok(number) => Value::Int(number),
                Err(_) => return Err(self.overflows()),
            },
            // Both ends are excluded, as in CEL: a double can hold the minimum exactly, but not the
            // maximum.
            (Self::Int, Value::Double(number)) => {
                if *number > i64::MIN as f64 && *number < i64::MAX as f64 {
                    Value::Int(*number as i64)
                } else {
                    return Err(self.overflows());
                }
            }
            (Self::Int, Value::Text(text)) => match text.as_str().parse() {
                Ok(number) => Value::Int(number),
                Err(_) => return Err(self.cannot_read(text)),
            },
            (Self::UInt, Value::UInt(number)) => Value::UInt(*number),
            (Self::UInt, Value::Int(number)) => match u64::try_from(*number) {
                Ok(number) => Value::UInt(number),
                Err(_) => return Err(self.overflows()),
            },
            (Self::UInt, Value::Double(number)) => {
                if *number >= 0.0 && *number < u64::MAX as f64 {
                    Value::UInt(*number as u64)
                } else {
                    return Err(self.overflows());
                }
            }
            (Self::UInt, Value::Text(text)) => match text.as_str().parse() {
                Ok(number) => Value::UInt(number),
                Err(_) => return Err(self.cannot_read(text)),
            },
            (_, value) => return Err(self.refuses(value)),
        })
    }

    fn of_two<'v>(
        self,
        value: &Value<'v>,
        other: &Value<'v>,
        budget: &mut Budget,
    ) -> Result<Value<'v>, Fault> {
        let (Value::Text(text), Value::Text(part)) = (value, other) else {
            let wrong = if matches!(value, Value::Text(_)) { other } else { value };
            return Err(self.refuses(wrong));
        };
        let (text, part) = (text.as_str(), part.as_str());
        let found = match self {
            Self::StartsWith | Self::EndsWith => {
                budget.scan(part.len().min(text.len()))?;
                if self == Self::StartsWith { text.starts_with(part) } else { text.ends_with(part) }
            }
            _ => {
                budget.scan(text.len().saturating_add(part.len()))?;
                text.contains(part)
            }
        };
        Ok(Value::Bool(found))
    }

    fn refuses(self, value: &Value<'_>) -> Fault {
        failed(format!("`{}` does not take {}", self.name(), value.kind()))
    }

    fn overflows(self) -> Fault {
        failed(format!("`{}` overflows 64 bits", self.name()))
    }

    fn cannot_read(self, text: &Text<'_>) -> Fault {
        failed(format!("`{}` cannot read \"{}\"", self.name(), short(text.as_str())))
    }
}

/// Python's truth value: null, zero and empty values are false.
fn truth(value: &Value<'_>) -> bool {
    match value {
        Value::Null => false,
        Value::Text(text) => !text.as_str().is_empty(),
        Value::List(list) => list.len() > 0,
        Value::Map(map) => map.len() > 0,
        value => value.as_number().is_none_or(|number| number != 0.0),
    }
}

fn whole<'v>(count: usize) -> Value<'v> {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn made<'v>(text: String, budget: &mut Budget) -> Result<Value<'v>, Fault> {
    budget.make(text.len())?;
    Ok(Value::text(text))
}
