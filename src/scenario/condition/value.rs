//! Values of an evaluation. Bound JSON values are borrowed, so nothing is copied or converted
//! before it is used; the budget counts every created value.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value as Json;

use super::budget::{Budget, Spent};

/// A value of CEL.
#[derive(Clone, Debug)]
pub(super) enum Value<'v> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(Text<'v>),
    List(List<'v>),
    Map(Map<'v>),
    /// A type, identified by its name.
    Type(&'static str),
}

/// A string.
#[derive(Clone, Debug)]
pub(super) enum Text<'v> {
    Lent(&'v str),
    Made(Rc<str>),
}

/// A list.
#[derive(Clone, Debug)]
pub(super) enum List<'v> {
    Lent(&'v [Json]),
    Made(Rc<Vec<Value<'v>>>),
}

/// A map. Its keys are in the order of the source.
#[derive(Clone, Debug)]
pub(super) enum Map<'v> {
    Lent(&'v serde_json::Map<String, Json>),
    /// At most as many entries as fit into the text of a condition.
    Made(Rc<Vec<(Value<'v>, Value<'v>)>>),
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Lent(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl<'v> List<'v> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Lent(items) => items.len(),
            Self::Made(items) => items.len(),
        }
    }

    pub(super) fn get(&self, place: usize) -> Option<Value<'v>> {
        match self {
            Self::Lent(items) => items.get(place).map(Value::of),
            Self::Made(items) => items.get(place).cloned(),
        }
    }
}

impl<'v> Map<'v> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Lent(fields) => fields.len(),
            Self::Made(entries) => entries.len(),
        }
    }

    /// The value of a string key.
    pub(super) fn field(&self, key: &str, budget: &mut Budget) -> Result<Option<Value<'v>>, Spent> {
        match self {
            Self::Lent(fields) => {
                budget.scan(key.len())?;
                Ok(fields.get(key).map(Value::of))
            }
            Self::Made(entries) => {
                budget.step(entries.len() as u64)?;
                let found = entries
                    .iter()
                    .find(|(name, _)| matches!(name, Value::Text(text) if text.as_str() == key));
                Ok(found.map(|(_, value)| value.clone()))
            }
        }
    }

    /// The value of a key, if the map has it.
    pub(super) fn get(
        &self,
        key: &Value<'v>,
        budget: &mut Budget,
    ) -> Result<Option<Value<'v>>, Spent> {
        match (self, key) {
            (_, Value::Text(text)) => self.field(text.as_str(), budget),
            (Self::Lent(_), _) => Ok(None),
            (Self::Made(entries), key) => {
                for (name, value) in entries.iter() {
                    if equal(name, key, budget)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Its entries in order.
    pub(super) fn entries(&self) -> Entries<'v> {
        match self {
            Self::Lent(fields) => Entries::Lent(fields.iter()),
            Self::Made(entries) => Entries::Made(Rc::clone(entries), 0),
        }
    }
}

/// Iterator over the entries of a map.
pub(super) enum Entries<'v> {
    Lent(serde_json::map::Iter<'v>),
    Made(Rc<Vec<(Value<'v>, Value<'v>)>>, usize),
}

impl<'v> Iterator for Entries<'v> {
    type Item = (Value<'v>, Value<'v>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Lent(fields) => {
                let (key, value) = fields.next()?;
                Some((Value::Text(Text::Lent(key)), Value::of(value)))
            }
            Self::Made(entries, place) => {
                let entry = entries.get(*place).cloned();
                *place += 1;
                entry
            }
        }
    }
}

impl<'v> Value<'v> {
    /// Borrows a JSON value.
    pub(super) fn of(json: &'v Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(truth) => Self::Bool(*truth),
            Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(whole), _, _) => Self::Int(whole),
                (None, Some(whole), _) => Self::UInt(whole),
                (None, None, Some(float)) => Self::Double(float),
                (None, None, None) => Self::Null,
            },
            Json::String(text) => Self::Text(Text::Lent(text)),
            Json::Array(items) => Self::List(List::Lent(items)),
            Json::Object(fields) => Self::Map(Map::Lent(fields)),
        }
    }

    /// A created string; the caller has already counted its bytes.
    pub(super) fn text(text: String) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    /// The name of its type, as in CEL.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::UInt(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
        }
    }

    /// The value as a number; `true` and `false` are 1 and 0.
    pub(super) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Bool(truth) => Some(f64::from(u8::from(*truth))),
            Self::Int(whole) => Some(*whole as f64),
            Self::UInt(whole) => Some(*whole as f64),
            Self::Double(float) => Some(*float),
            _ => None,
        }
    }
}

/// Whether two values are equal. Numbers compare by value; values of other types that differ are
/// never equal.
pub(super) fn equal(
    left: &Value<'_>,
    right: &Value<'_>,
    budget: &mut Budget,
) -> Result<bool, Spent> {
    budget.step(1)?;
    match (left, right) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Type(left), Value::Type(right)) => Ok(left == right),
        (Value::List(left), Value::List(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for place in 0..left.len() {
                let (Some(left), Some(right)) = (left.get(place), right.get(place)) else {
                    return Ok(false);
                };
                if !equal(&left, &right, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Map(left), Value::Map(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (key, value) in left.entries() {
                let Some(other) = right.get(&key, budget)? else { return Ok(false) };
                if !equal(&value, &other, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(compare(left, right, budget)? == Some(Ordering::Equal)),
    }
}

/// The order of two values; `None` if they cannot be compared.
pub(super) fn compare(
    left: &Value<'_>,
    right: &Value<'_>,
    budget: &mut Budget,
) -> Result<Option<Ordering>, Spent> {
    use Value::{Bool, Double, Int, Text, UInt};
    Ok(match (left, right) {
        (Bool(left), Bool(right)) => Some(left.cmp(right)),
        (Text(left), Text(right)) => {
            let (left, right) = (left.as_str(), right.as_str());
            budget.scan(left.len().min(right.len()))?;
            Some(left.cmp(right))
        }
        (Int(left), Int(right)) => Some(left.cmp(right)),
        (UInt(left), UInt(right)) => Some(left.cmp(right)),
        // A negative number is less than any unsigned one.
        (Int(left), UInt(right)) => {
            Some(u64::try_from(*left).map_or(Ordering::Less, |left| left.cmp(right)))
        }
        (UInt(left), Int(right)) => {
            Some(u64::try_from(*right).map_or(Ordering::Greater, |right| left.cmp(&right)))
        }
        (Double(_), Int(_) | UInt(_) | Double(_)) | (Int(_) | UInt(_), Double(_)) => {
            match (left.as_number(), right.as_number()) {
                (Some(left), Some(right)) => left.partial_cmp(&right),
                _ => None,
            }
        }
        _ => None,
    })
}
