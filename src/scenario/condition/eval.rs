//! Evaluates a condition over the names bound for it. Every evaluated part is a step and every
//! created value is counted, so an evaluation ends within its budget for any condition and any
//! data.
//!
//! The rules are CEL's: operators are strict about types, `&&` and `||` ignore an error on a side
//! that does not decide, `all` and `exists` ignore an error of an element that does not decide.

use std::rc::Rc;

use super::bindings::CelBindings;
use super::budget::EvalBudget;
use super::error::{EvalError, eval_error, shorten};
use super::expr::{CelLoop, CelNode, LoopKind};
use super::operators::{
    arithmetic, index, invalid_key_type, is_in, is_key, no_key, operand_type_error, overflow,
};
use super::value::{CelList, CelMap, CelText, CelValue, SLOT, compare, equal};

/// Evaluates a condition.
pub(super) fn value<'v>(
    node: &'v CelNode,
    shown: &'v CelBindings,
    budget: &mut EvalBudget,
) -> Result<CelValue<'v>, EvalError> {
    Evaluation { shown, budget, variables: Vec::new() }.value(node)
}

/// The first element that decides a loop, and its place: one for which the body of `all` does not hold,
/// or that of `exists` does. `None`: another kind of loop, no element decides it, or its list cannot be
/// evaluated by itself.
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
        // What cannot be evaluated decides `all`, too.
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
                found.ok_or_else(|| no_key(field))?
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
                CelValue::Bool(map.field(field, self.budget)?.is_some())
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
