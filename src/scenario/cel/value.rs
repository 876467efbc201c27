//! Values of an evaluation. Bound JSON values are borrowed, so nothing is copied or converted
//! before it is used; the budget counts every created value.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value as Json;

use super::decision::{BudgetExceeded, EvalBudget};

/// The size of one value in a list.
pub(super) const SLOT: usize = size_of::<CelValue<'_>>();

/// A value of CEL.
#[derive(Clone, Debug)]
pub(crate) enum CelValue<'v> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(CelText<'v>),
    List(CelList<'v>),
    Map(CelMap<'v>),
    /// A type, identified by its name.
    Type(&'static str),
}

/// A string.
#[derive(Clone, Debug)]
pub(crate) enum CelText<'v> {
    Borrowed(&'v str),
    Owned(Rc<str>),
}

/// A list.
#[derive(Clone, Debug)]
pub(crate) enum CelList<'v> {
    Borrowed(&'v [Json]),
    Owned(Rc<Vec<CelValue<'v>>>),
}

/// A map. Its keys are in the order of the source.
#[derive(Clone, Debug)]
pub(crate) enum CelMap<'v> {
    Borrowed(&'v serde_json::Map<String, Json>),
    /// At most as many entries as fit into the text of a condition.
    Owned(Rc<Vec<(CelValue<'v>, CelValue<'v>)>>),
}

impl CelText<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}

impl<'v> CelList<'v> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Borrowed(items) => items.len(),
            Self::Owned(items) => items.len(),
        }
    }

    pub(crate) fn get(&self, place: usize) -> Option<CelValue<'v>> {
        match self {
            Self::Borrowed(items) => items.get(place).map(CelValue::from_json),
            Self::Owned(items) => items.get(place).cloned(),
        }
    }
}

impl<'v> CelMap<'v> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Borrowed(fields) => fields.len(),
            Self::Owned(entries) => entries.len(),
        }
    }

    /// The value of a string key.
    pub(crate) fn field(
        &self,
        key: &str,
        budget: &mut EvalBudget,
    ) -> Result<Option<CelValue<'v>>, BudgetExceeded> {
        match self {
            Self::Borrowed(fields) => {
                budget.count_read(key.len())?;
                Ok(fields.get(key).map(CelValue::from_json))
            }
            Self::Owned(entries) => {
                budget.count_steps(entries.len() as u64)?;
                let found = entries
                    .iter()
                    .find(|(name, _)| matches!(name, CelValue::Text(text) if text.as_str() == key));
                Ok(found.map(|(_, value)| value.clone()))
            }
        }
    }

    /// The value of a key, if the map has it.
    pub(crate) fn get(
        &self,
        key: &CelValue<'v>,
        budget: &mut EvalBudget,
    ) -> Result<Option<CelValue<'v>>, BudgetExceeded> {
        match (self, key) {
            (_, CelValue::Text(text)) => self.field(text.as_str(), budget),
            (Self::Borrowed(_), _) => Ok(None),
            (Self::Owned(entries), key) => {
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
    pub(crate) fn entries(&self) -> CelMapEntries<'v> {
        match self {
            Self::Borrowed(fields) => CelMapEntries::Borrowed(fields.iter()),
            Self::Owned(entries) => CelMapEntries::Owned(Rc::clone(entries), 0),
        }
    }
}

/// Iterator over the entries of a map.
pub(crate) enum CelMapEntries<'v> {
    Borrowed(serde_json::map::Iter<'v>),
    Owned(Rc<Vec<(CelValue<'v>, CelValue<'v>)>>, usize),
}

impl<'v> Iterator for CelMapEntries<'v> {
    type Item = (CelValue<'v>, CelValue<'v>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Borrowed(fields) => {
                let (key, value) = fields.next()?;
                Some((CelValue::Text(CelText::Borrowed(key)), CelValue::from_json(value)))
            }
            Self::Owned(entries, place) => {
                let entry = entries.get(*place).cloned();
                *place += 1;
                entry
            }
        }
    }
}

impl<'v> CelValue<'v> {
    /// Borrows a JSON value.
    pub(super) fn from_json(json: &'v Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(truth) => Self::Bool(*truth),
            Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(whole), _, _) => Self::Int(whole),
                (None, Some(whole), _) => Self::UInt(whole),
                (None, None, Some(float)) => Self::Double(float),
                (None, None, None) => Self::Null,
            },
            Json::String(text) => Self::Text(CelText::Borrowed(text)),
            Json::Array(items) => Self::List(CelList::Borrowed(items)),
            Json::Object(fields) => Self::Map(CelMap::Borrowed(fields)),
        }
    }

    /// A created string; the caller has already counted its bytes.
    pub(crate) fn text(text: String) -> Self {
        Self::Text(CelText::Owned(text.into()))
    }

    /// The name of its type, as in CEL.
    pub(crate) fn kind(&self) -> &'static str {
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
    pub(crate) fn as_number(&self) -> Option<f64> {
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
pub(crate) fn equal(
    left: &CelValue<'_>,
    right: &CelValue<'_>,
    budget: &mut EvalBudget,
) -> Result<bool, BudgetExceeded> {
    budget.count_steps(1)?;
    match (left, right) {
        (CelValue::Null, CelValue::Null) => Ok(true),
        (CelValue::Type(left), CelValue::Type(right)) => Ok(left == right),
        (CelValue::List(left), CelValue::List(right)) => {
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
        (CelValue::Map(left), CelValue::Map(right)) => {
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
pub(crate) fn compare(
    left: &CelValue<'_>,
    right: &CelValue<'_>,
    budget: &mut EvalBudget,
) -> Result<Option<Ordering>, BudgetExceeded> {
    use CelValue::{Bool, Double, Int, Text, UInt};
    Ok(match (left, right) {
        (Bool(left), Bool(right)) => Some(left.cmp(right)),
        (Text(left), Text(right)) => {
            let (left, right) = (left.as_str(), right.as_str());
            budget.count_read(left.len().min(right.len()))?;
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
