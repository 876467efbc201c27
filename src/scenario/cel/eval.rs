//! Evaluates a condition over the names bound for it. Every evaluated part is a step and every
//! created value is counted, so an evaluation ends within its budget for any condition and any
//! data.
//!
//! The rules are CEL's: operators are strict about types, `&&` and `||` ignore an error on a side
//! that does not decide, `all` and `exists` ignore an error of an element that does not decide.

use std::cmp::Ordering;
use std::rc::Rc;

use super::decision::EvalBudget;
use super::expr::{ArithmeticOp, CelLoop, CelNode, ComparisonOp, LoopKind};
use super::value::{CelList, CelMap, CelText, CelValue, SLOT, compare, equal};
use super::{CelBindings, EvalError, eval_error, explain, shorten};

/// Evaluates a condition.
pub(crate) fn value<'v>(
    node: &'v CelNode,
    shown: &'v CelBindings,
    budget: &mut EvalBudget,
) -> Result<CelValue<'v>, EvalError> {
    Evaluation { shown, budget, variables: Vec::new() }.value(node)
}

/// The first element that decides a loop, and its place: one for which the body of `all` does not
/// hold, or that of `exists` does. `None`: another kind of loop, no element decides it, or its list
/// cannot be evaluated alone.
pub(super) fn deciding_element<'v>(
    inner: &'v CelLoop,
    shown: &'v CelBindings,
) -> Option<(usize, CelValue<'v>)> {
    let decides = match inner.kind {
        LoopKind::All => false,
        LoopKind::Exists => true,
        LoopKind::ExistsOne | LoopKind::Map(_) => return None,
    };
    let mut budget = EvalBudget::default();
    let mut evaluation = Evaluation { shown, budget: &mut budget, variables: Vec::new() };
    let CelValue::List(list) = evaluation.value(&inner.range).ok()? else { return None };
    evaluation.variables.push(CelValue::Null);
    LoopItems::List(list, 0).enumerate().find(|(_, item)| {
        let set = evaluation.set_loop_variable(item.clone());
        let holds = set.and_then(|()| evaluation.eval_boolean(&inner.body, inner.kind.name()));
        // An element that cannot be evaluated decides `all`, too.
        holds.map_or(!decides, |holds| holds == decides)
    })
}

struct Evaluation<'v, 'b> {
    shown: &'v CelBindings,
    budget: &'b mut EvalBudget,
    /// The current elements of the enclosing loops, the outermost first.
    variables: Vec<CelValue<'v>>,
}

impl<'v> Evaluation<'v, '_> {
    fn value(&mut self, node: &'v CelNode) -> Result<CelValue<'v>, EvalError> {
        self.budget.count_steps(1)?;
        Ok(match node {
            CelNode::Null => CelValue::Null,
            CelNode::Bool(truth) => CelValue::Bool(*truth),
            CelNode::Int(whole) => CelValue::Int(*whole),
            CelNode::UInt(whole) => CelValue::UInt(*whole),
            CelNode::Double(float) => CelValue::Double(*float),
            CelNode::Text(text) => CelValue::Text(CelText::Borrowed(text)),
            CelNode::Bound(name, kind) => match (self.shown.get(name), kind) {
                (Some(json), _) => CelValue::from_json(json),
                (None, Some(kind)) => CelValue::Type(kind),
                (None, None) => {
                    if let Some(why) = self.shown.missing(name) {
                        return Err(eval_error(why.to_string()));
                    }
                    let name = shorten(name);
                    return Err(eval_error(format!("`{name}` is not available in this condition")));
                }
            },
            CelNode::Variable(place) => match self.variables.get(*place) {
                Some(value) => value.clone(),
                None => return Err(eval_error("a loop has no variable".to_owned())),
            },
            CelNode::Field(operand, field) => {
                let operand = self.value(operand)?;
                let CelValue::Map(map) = &operand else {
                    let kind = operand.kind();
                    return Err(eval_error(format!(
                        "`.{}` needs a map, not {kind}",
                        shorten(field)
                    )));
                };
                let found = map.field(field, self.budget)?;
                found.ok_or_else(|| self.missing(node).unwrap_or_else(|| no_key(field)))?
            }
            CelNode::Has(operand, field) => {
                let operand = self.value(operand)?;
                let CelValue::Map(map) = &operand else {
                    let kind = operand.kind();
                    return Err(eval_error(format!(
                        "`has` needs a map for `.{}`, not {kind}",
                        shorten(field)
                    )));
                };
                let has = map.field(field, self.budget)?.is_some();
                match (!has).then(|| self.missing(node)).flatten() {
                    Some(why) => return Err(why),
                    None => CelValue::Bool(has),
                }
            }
            CelNode::Index(sides) => {
                let [operand, place] = self.eval_sides(sides)?;
                index(&operand, &place, self.budget)?
            }
            CelNode::List(items) => {
                self.budget.count_created(items.len() * SLOT)?;
                let items = items.iter().map(|item| self.value(item));
                CelValue::List(CelList::Owned(Rc::new(items.collect::<Result<_, _>>()?)))
            }
            CelNode::Map(entries) => self.map(entries)?,
            CelNode::If(parts) => {
                let [condition, yes, no] = &**parts;
                let holds = self.eval_boolean(condition, "? :")?;
                self.value(if holds { yes } else { no })?
            }
            CelNode::Not(inner) => CelValue::Bool(!self.eval_boolean(inner, "!")?),
            CelNode::Negate(inner) => match self.value(inner)? {
                CelValue::Int(whole) => match whole.checked_neg() {
                    Some(whole) => CelValue::Int(whole),
                    None => return Err(overflow("-")),
                },
                CelValue::Double(float) => CelValue::Double(-float),
                other => return Err(eval_error(format!("`-` does not take {}", other.kind()))),
            },
            CelNode::And(sides) => CelValue::Bool(!self.either(sides, "&&", false)?),
            CelNode::Or(sides) => CelValue::Bool(self.either(sides, "||", true)?),
            CelNode::Equal(wanted, sides) => {
                let [left, right] = self.eval_sides(sides)?;
                CelValue::Bool(equal(&left, &right, self.budget)? == *wanted)
            }
            CelNode::Order(order, sides) => {
                let [left, right] = self.eval_sides(sides)?;
                let found = compare(&left, &right, self.budget)?;
                let found = found.ok_or_else(|| operand_type_error(order.sign(), &left, &right))?;
                CelValue::Bool(order.holds(found))
            }
            CelNode::Arithmetic(op, sides) => {
                let [left, right] = self.eval_sides(sides)?;
                arithmetic(*op, &left, &right, self.budget)?
            }
            CelNode::In(sides) => {
                let [item, whole] = self.eval_sides(sides)?;
                CelValue::Bool(is_in(&item, &whole, self.budget)?)
            }
            CelNode::Call(function, values) => {
                // No function takes more than two arguments.
                let mut given = [const { CelValue::Null }; 2];
                for (place, value) in given.iter_mut().zip(values) {
                    *place = self.value(value)?;
                }
                function.call(&given[..values.len().min(2)], self.budget)?
            }
            CelNode::OfRun(function, args) => {
                function.call(args, self.shown.run_facts(), self.budget)?
            }
            CelNode::Loop(inner) => self.eval_loop(inner)?,
        })
    }

    /// Why a field of a bound name has no value, if that is known.
    fn missing(&self, node: &CelNode) -> Option<EvalError> {
        let path = match node {
            CelNode::Has(inner, field) => format!("{}.{field}", explain::written(inner)?),
            node => explain::written(node)?,
        };
        self.shown.missing(&path).map(|why| eval_error(why.to_string()))
    }

    fn eval_sides(&mut self, sides: &'v [CelNode; 2]) -> Result<[CelValue<'v>; 2], EvalError> {
        let [left, right] = sides;
        Ok([self.value(left)?, self.value(right)?])
    }

    /// Evaluates a part that must be a boolean.
    fn eval_boolean(&mut self, node: &'v CelNode, asks: &str) -> Result<bool, EvalError> {
        match self.value(node)? {
            CelValue::Bool(truth) => Ok(truth),
            other => Err(eval_error(format!("`{asks}` takes true or false, not {}", other.kind()))),
        }
    }

    /// Whether either side is `deciding`. An error on one side counts only if the other side does
    /// not decide.
    fn either(
        &mut self,
        sides: &'v [CelNode; 2],
        asks: &str,
        deciding: bool,
    ) -> Result<bool, EvalError> {
        let [left, right] = sides;
        let left = match self.eval_boolean(left, asks) {
            Ok(truth) if truth == deciding => return Ok(true),
            Err(EvalError::BudgetExceeded(spent)) => return Err(spent.into()),
            left => left,
        };
        let right = self.eval_boolean(right, asks)?;
        if right == deciding { Ok(true) } else { left.map(|_| false) }
    }

    fn map(&mut self, entries: &'v [(CelNode, CelNode)]) -> Result<CelValue<'v>, EvalError> {
        self.budget.count_created(entries.len() * 2 * SLOT)?;
        let mut made: Vec<(CelValue<'v>, CelValue<'v>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = self.value(key)?;
            if !is_key(&key) {
                return Err(invalid_key_type(&key));
            }
            for (taken, _) in &made {
                if equal(taken, &key, self.budget)? {
                    return Err(eval_error("a map has a duplicate key".to_owned()));
                }
            }
            let value = self.value(value)?;
            made.push((key, value));
        }
        Ok(CelValue::Map(CelMap::Owned(Rc::new(made))))
    }

    fn eval_loop(&mut self, inner: &'v CelLoop) -> Result<CelValue<'v>, EvalError> {
        let items: LoopItems<'v> = match self.value(&inner.range)? {
            CelValue::List(list) => LoopItems::List(list, 0),
            CelValue::Map(map) => LoopItems::Keys(map.entries()),
            other => {
                let kind = other.kind();
                return Err(eval_error(format!("a loop needs a list or a map, not {kind}")));
            }
        };
        self.variables.push(CelValue::Null);
        let found = match &inner.kind {
            LoopKind::All => {
                self.any_decides(items, &inner.body, false).map(|it| CelValue::Bool(!it))
            }
            LoopKind::Exists => self.any_decides(items, &inner.body, true).map(CelValue::Bool),
            LoopKind::ExistsOne => self.exactly_one(items, &inner.body),
            LoopKind::Map(keep) => self.map_items(items, keep.as_ref(), &inner.body),
        };
        self.variables.pop();
        found
    }

    fn set_loop_variable(&mut self, item: CelValue<'v>) -> Result<(), EvalError> {
        self.budget.count_steps(1)?;
        if let Some(variable) = self.variables.last_mut() {
            *variable = item;
        }
        Ok(())
    }

    /// Whether any element is `deciding`. An element's error counts only if no element decides.
    fn any_decides(
        &mut self,
        items: LoopItems<'v>,
        body: &'v CelNode,
        deciding: bool,
    ) -> Result<bool, EvalError> {
        let asks = if deciding { "exists" } else { "all" };
        let mut pending = None;
        for item in items {
            self.set_loop_variable(item)?;
            match self.eval_boolean(body, asks) {
                Ok(truth) if truth == deciding => return Ok(true),
                Ok(_) => {}
                Err(EvalError::BudgetExceeded(spent)) => return Err(spent.into()),
                Err(fault) => pending = Some(fault),
            }
        }
        pending.map_or(Ok(false), Err)
    }

    fn exactly_one(
        &mut self,
        items: LoopItems<'v>,
        body: &'v CelNode,
    ) -> Result<CelValue<'v>, EvalError> {
        let mut held = 0_u64;
        for item in items {
            self.set_loop_variable(item)?;
            held += u64::from(self.eval_boolean(body, "exists_one")?);
        }
        Ok(CelValue::Bool(held == 1))
    }

    fn map_items(
        &mut self,
        items: LoopItems<'v>,
        keep: Option<&'v CelNode>,
        body: &'v CelNode,
    ) -> Result<CelValue<'v>, EvalError> {
        let mut made = Vec::new();
        for item in items {
            self.set_loop_variable(item)?;
            if let Some(keep) = keep
                && !self.eval_boolean(keep, "filter")?
            {
                continue;
            }
            let value = self.value(body)?;
            self.budget.count_created(SLOT)?;
            made.push(value);
        }
        Ok(CelValue::List(CelList::Owned(Rc::new(made))))
    }
}

/// The elements of a loop.
enum LoopItems<'v> {
    List(CelList<'v>, usize),
    Keys(super::value::CelMapEntries<'v>),
}

impl<'v> Iterator for LoopItems<'v> {
    type Item = CelValue<'v>;

    fn next(&mut self) -> Option<CelValue<'v>> {
        match self {
            Self::List(list, place) => {
                *place += 1;
                list.get(*place - 1)
            }
            Self::Keys(entries) => entries.next().map(|(key, _)| key),
        }
    }
}

impl ComparisonOp {
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    pub(crate) fn holds(self, found: Ordering) -> bool {
        match self {
            Self::Less => found == Ordering::Less,
            Self::LessEqual => found != Ordering::Greater,
            Self::Greater => found == Ordering::Greater,
            Self::GreaterEqual => found != Ordering::Less,
        }
    }
}

impl ArithmeticOp {
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

pub(crate) fn is_key(value: &CelValue<'_>) -> bool {
    matches!(value, CelValue::Bool(_) | CelValue::Int(_) | CelValue::UInt(_) | CelValue::Text(_))
}

pub(crate) fn invalid_key_type(value: &CelValue<'_>) -> EvalError {
    eval_error(format!("{} cannot be the key of a map", value.kind()))
}

pub(crate) fn no_key(key: &str) -> EvalError {
    eval_error(format!("there is no key `{}`", shorten(key)))
}

pub(crate) fn overflow(sign: &str) -> EvalError {
    eval_error(format!("`{sign}` overflows 64 bits"))
}

fn division_by_zero(op: ArithmeticOp) -> EvalError {
    eval_error(format!("`{}` by zero", op.sign()))
}

pub(crate) fn operand_type_error(
    sign: &str,
    left: &CelValue<'_>,
    right: &CelValue<'_>,
) -> EvalError {
    eval_error(format!("`{sign}` does not take {} and {}", left.kind(), right.kind()))
}

/// The element of a list at an index, or the value of a map under a key.
pub(crate) fn index<'v>(
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
pub(crate) fn is_in<'v>(
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
pub(crate) fn arithmetic<'v>(
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
