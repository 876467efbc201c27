//! The operators of conditions, over values that are already evaluated.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::scenario::condition::budget::EvalBudget;
use crate::scenario::condition::error::{EvalError, eval_error, shorten};
use crate::scenario::condition::expr::{ArithmeticOp, ComparisonOp};
use crate::scenario::condition::value::{CelList, CelValue, SLOT, equal};

impl ComparisonOp {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    pub(super) fn holds(self, found: Ordering) -> bool {
        match self {
            Self::Less => found == Ordering::Less,
            Self::LessEqual => found != Ordering::Greater,
            Self::Greater => found == Ordering::Greater,
            Self::GreaterEqual => found != Ordering::Less,
        }
    }
}

impl ArithmeticOp {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

pub(super) fn is_key(value: &CelValue<'_>) -> bool {
    matches!(value, CelValue::Bool(_) | CelValue::Int(_) | CelValue::UInt(_) | CelValue::Text(_))
}

pub(super) fn invalid_key_type(value: &CelValue<'_>) -> EvalError {
    eval_error(format!("{} cannot be the key of a map", value.kind()))
}

pub(super) fn no_key(key: &str) -> EvalError {
    eval_error(format!("there is no key `{}`", shorten(key)))
}

pub(super) fn overflow(sign: &str) -> EvalError {
    eval_error(format!("`{sign}` overflows 64 bits"))
}

fn division_by_zero(op: ArithmeticOp) -> EvalError {
    eval_error(format!("`{}` by zero", op.sign()))
}

pub(super) fn operand_type_error(
    sign: &str,
    left: &CelValue<'_>,
    right: &CelValue<'_>,
) -> EvalError {
    eval_error(format!("`{sign}` does not take {} and {}", left.kind(), right.kind()))
}

/// The element of a list at an index, or the value of a map under a key.
pub(super) fn index<'v>(
    operand: &CelValue<'v>,
    index: &CelValue<'v>,
    budget: &mut EvalBudget,
) -> Result<CelValue<'v>, EvalError> {
    match (operand, index) {
        (CelValue::Map(map), CelValue::Text(key)) => {
            let found = map.get(index, budget)?;
            found.ok_or_else(|| no_key(key.as_str()))
        }
        (
            CelValue::Map(map),
            CelValue::Bool(_) | CelValue::Int(_) | CelValue::UInt(_) | CelValue::Double(_),
        ) => {
            let found = map.get(index, budget)?;
            found.ok_or_else(|| {
                eval_error(format!("the map has no such key of type {}", index.kind()))
            })
        }
        (CelValue::List(list), CelValue::Int(_) | CelValue::UInt(_) | CelValue::Double(_)) => {
            let place = match index {
                CelValue::Int(place) => usize::try_from(*place).ok(),
                CelValue::UInt(place) => usize::try_from(*place).ok(),
                CelValue::Double(place) if place.fract() == 0.0 && *place >= 0.0 => {
                    Some(*place as usize)
                }
                _ => None,
            };
            let items = list.len();
            place.and_then(|place| list.get(place)).ok_or_else(|| {
                eval_error(format!("the index is out of range: the list has {items} items"))
            })
        }
        _ => {
            Err(eval_error(format!("`[ ]` does not take {} and {}", operand.kind(), index.kind())))
        }
    }
}

/// Whether an item is in a list, or the key of a map.
pub(super) fn is_in<'v>(
    item: &CelValue<'v>,
    whole: &CelValue<'v>,
    budget: &mut EvalBudget,
) -> Result<bool, EvalError> {
    match whole {
        CelValue::List(list) => {
            for place in 0..list.len() {
                let Some(other) = list.get(place) else { break };
                if equal(item, &other, budget)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        CelValue::Map(map) if is_key(item) || matches!(item, CelValue::Double(_)) => {
            Ok(map.get(item, budget)?.is_some())
        }
        CelValue::Map(_) => Err(invalid_key_type(item)),
        other => Err(eval_error(format!("`in` needs a list or a map, not {}", other.kind()))),
    }
}

/// The result for whole numbers of one type, which all have the same checked operations.
macro_rules! whole {
    ($op:expr, $left:expr, $right:expr) => {{
        let found = match $op {
            ArithmeticOp::Add => $left.checked_add($right),
            ArithmeticOp::Subtract => $left.checked_sub($right),
            ArithmeticOp::Multiply => $left.checked_mul($right),
            ArithmeticOp::Divide | ArithmeticOp::Remainder if $right == 0 => {
                return Err(division_by_zero($op));
            }
            ArithmeticOp::Divide => $left.checked_div($right),
            ArithmeticOp::Remainder => $left.checked_rem($right),
        };
        found.ok_or_else(|| overflow($op.sign()))
    }};
}

/// The result of `+`, `-`, `*`, `/` or `%`.
pub(super) fn arithmetic<'v>(
    op: ArithmeticOp,
    left: &CelValue<'v>,
    right: &CelValue<'v>,
    budget: &mut EvalBudget,
) -> Result<CelValue<'v>, EvalError> {
    match (left, right) {
        (CelValue::Int(left), CelValue::Int(right)) => whole!(op, *left, *right).map(CelValue::Int),
        (CelValue::UInt(left), CelValue::UInt(right)) => {
            whole!(op, *left, *right).map(CelValue::UInt)
        }
        (CelValue::Double(first), CelValue::Double(second)) => match op {
            ArithmeticOp::Add => Ok(CelValue::Double(first + second)),
            ArithmeticOp::Subtract => Ok(CelValue::Double(first - second)),
            ArithmeticOp::Multiply => Ok(CelValue::Double(first * second)),
            ArithmeticOp::Divide => Ok(CelValue::Double(first / second)),
            ArithmeticOp::Remainder => Err(operand_type_error(op.sign(), left, right)),
        },
        (CelValue::Text(left), CelValue::Text(right)) if op == ArithmeticOp::Add => {
            let (left, right) = (left.as_str(), right.as_str());
            let bytes = left.len().saturating_add(right.len());
            budget.count_created(bytes)?;
            budget.count_read(bytes)?;
            Ok(CelValue::text([left, right].concat()))
        }
        (CelValue::List(left), CelValue::List(right)) if op == ArithmeticOp::Add => {
            let items = left.len().saturating_add(right.len());
            budget.count_created(items.saturating_mul(SLOT))?;
            budget.count_steps(items as u64)?;
            let each = |list: &CelList<'v>| {
                let list = list.clone();
                (0..list.len()).map_while(move |place| list.get(place))
            };
            Ok(CelValue::List(CelList::Owned(Rc::new(each(left).chain(each(right)).collect()))))
        }
        _ => Err(operand_type_error(op.sign(), left, right)),
    }
}
