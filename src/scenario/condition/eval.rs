//! Evaluates a condition over the names bound for it. Every evaluated part is a step and every
//! created value is counted, so an evaluation ends within its budget for any condition and any
//! data.
//!
//! The rules are CEL's: operators are strict about types, `&&` and `||` ignore an error on a side
//! that does not decide, `all` and `exists` ignore an error of an element that does not decide.

use std::cmp::Ordering;
use std::rc::Rc;

use super::Shown;
use super::budget::{Budget, Spent};
use super::expr::{Loop, LoopKind, Node, Order, Reckon};
use super::value::{List, Map, Text, Value, compare, equal};

/// Longest part of a name or a text that an error repeats, in characters.
const SHORT: usize = 64;

/// Why an evaluation has no value.
#[derive(Debug)]
pub(super) enum Fault {
    /// An error. It does not count where another part decides.
    Failed(String),
    /// The budget is used up; the whole evaluation ends.
    Spent(Spent),
}

impl From<Spent> for Fault {
    fn from(spent: Spent) -> Self {
        Self::Spent(spent)
    }
}

pub(super) fn failed(what: String) -> Fault {
    Fault::Failed(what)
}

/// The beginning of a text.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Evaluates a condition.
pub(super) fn value<'v>(
    node: &'v Node,
    shown: &'v Shown,
    budget: &mut Budget,
) -> Result<Value<'v>, Fault> {
    Evaluation { shown, budget, variables: Vec::new() }.value(node)
}

struct Evaluation<'v, 'b> {
    shown: &'v Shown,
    budget: &'b mut Budget,
    /// The current elements of the enclosing loops, the outermost first.
    variables: Vec<Value<'v>>,
}

/// The size of one value in a list.
const SLOT: usize = size_of::<Value<'_>>();

impl<'v> Evaluation<'v, '_> {
    fn value(&mut self, node: &'v Node) -> Result<Value<'v>, Fault> {
        self.budget.step(1)?;
        Ok(match node {
            Node::Null => Value::Null,
            Node::Bool(truth) => Value::Bool(*truth),
            Node::Int(whole) => Value::Int(*whole),
            Node::UInt(whole) => Value::UInt(*whole),
            Node::Double(float) => Value::Double(*float),
            Node::Text(text) => Value::Text(Text::Lent(text)),
            Node::Shown(name, kind) => match (self.shown.get(name), kind) {
                (Some(json), _) => Value::of(json),
                (None, Some(kind)) => Value::Type(kind),
                (None, None) => {
                    let name = short(name);
                    return Err(failed(format!("`{name}` is not available in this condition")));
                }
            },
            Node::Variable(place) => match self.variables.get(*place) {
                Some(value) => value.clone(),
                None => return Err(failed("a loop has no variable".to_owned())),
            },
            Node::Field(operand, field) => {
                let operand = self.value(operand)?;
                let Value::Map(map) = &operand else {
                    let kind = operand.kind();
                    return Err(failed(format!("`.{}` needs a map, not {kind}", short(field))));
                };
                let found = map.field(field, self.budget)?;
                found.ok_or_else(|| no_key(field))?
            }
            Node::Has(operand, field) => {
                let operand = self.value(operand)?;
                let Value::Map(map) = &operand else {
                    let kind = operand.kind();
                    return Err(failed(format!(
                        "`has` needs a map for `.{}`, not {kind}",
                        short(field)
                    )));
                };
                Value::Bool(map.field(field, self.budget)?.is_some())
            }
            Node::Index(sides) => {
                let [operand, index] = self.both(sides)?;
                self.index(&operand, &index)?
            }
            Node::List(items) => {
                self.budget.make(items.len() * SLOT)?;
                let items = items.iter().map(|item| self.value(item));
                Value::List(List::Made(Rc::new(items.collect::<Result<_, _>>()?)))
            }
            Node::Map(entries) => self.map(entries)?,
            Node::If(parts) => {
                let [condition, yes, no] = &**parts;
                let holds = self.truth(condition, "? :")?;
                self.value(if holds { yes } else { no })?
            }
            Node::Not(inner) => Value::Bool(!self.truth(inner, "!")?),
            Node::Negate(inner) => match self.value(inner)? {
                Value::Int(whole) => match whole.checked_neg() {
                    Some(whole) => Value::Int(whole),
                    None => return Err(overflow("-")),
                },
                Value::Double(float) => Value::Double(-float),
                other => return Err(failed(format!("`-` does not take {}", other.kind()))),
            },
            Node::And(sides) => Value::Bool(!self.either(sides, "&&", false)?),
            Node::Or(sides) => Value::Bool(self.either(sides, "||", true)?),
            Node::Equal(wanted, sides) => {
                let [left, right] = self.both(sides)?;
                Value::Bool(equal(&left, &right, self.budget)? == *wanted)
            }
            Node::Order(order, sides) => {
                let [left, right] = self.both(sides)?;
                let found = compare(&left, &right, self.budget)?;
                let found = found.ok_or_else(|| between(order.sign(), &left, &right))?;
                Value::Bool(order.holds(found))
            }
            Node::Reckon(reckon, sides) => {
                let [left, right] = self.both(sides)?;
                self.reckon(*reckon, &left, &right)?
            }
            Node::In(sides) => {
                let [item, whole] = self.both(sides)?;
                Value::Bool(self.is_in(&item, &whole)?)
            }
            Node::Call(function, values) => {
                // No function takes more than two arguments.
                let mut given = [const { Value::Null }; 2];
                for (place, value) in given.iter_mut().zip(values) {
                    *place = self.value(value)?;
                }
                function.call(&given[..values.len().min(2)], self.budget)?
            }
            Node::Loop(inner) => self.looped(inner)?,
        })
    }

    fn both(&mut self, sides: &'v [Node; 2]) -> Result<[Value<'v>; 2], Fault> {
        let [left, right] = sides;
        Ok([self.value(left)?, self.value(right)?])
    }

    /// Evaluates a part that must be a boolean.
    fn truth(&mut self, node: &'v Node, asks: &str) -> Result<bool, Fault> {
        match self.value(node)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(failed(format!("`{asks}` takes true or false, not {}", other.kind()))),
        }
    }

    /// Whether either side is `deciding`. An error on one side counts only if the other side does
    /// not decide.
    fn either(&mut self, sides: &'v [Node; 2], asks: &str, deciding: bool) -> Result<bool, Fault> {
        let [left, right] = sides;
        let left = match self.truth(left, asks) {
            Ok(truth) if truth == deciding => return Ok(true),
            Err(Fault::Spent(spent)) => return Err(spent.into()),
            left => left,
        };
        let right = self.truth(right, asks)?;
        if right == deciding { Ok(true) } else { left.map(|_| false) }
    }

    fn index(&mut self, operand: &Value<'v>, index: &Value<'v>) -> Result<Value<'v>, Fault> {
        match (operand, index) {
            (Value::Map(map), Value::Text(key)) => {
                let found = map.get(index, self.budget)?;
                found.ok_or_else(|| no_key(key.as_str()))
            }
            (
                Value::Map(map),
                Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Double(_),
            ) => {
                let found = map.get(index, self.budget)?;
                found.ok_or_else(|| {
                    failed(format!("the map has no such key of type {}", index.kind()))
                })
            }
            (Value::List(list), Value::Int(_) | Value::UInt(_) | Value::Double(_)) => {
                let place = match index {
                    Value::Int(place) => usize::try_from(*place).ok(),
                    Value::UInt(place) => usize::try_from(*place).ok(),
                    Value::Double(place) if place.fract() == 0.0 && *place >= 0.0 => {
                        Some(*place as usize)
                    }
                    _ => None,
                };
                let items = list.len();
                place.and_then(|place| list.get(place)).ok_or_else(|| {
                    failed(format!("the index is out of range: the list has {items} items"))
                })
            }
            _ => {
                Err(failed(format!("`[ ]` does not take {} and {}", operand.kind(), index.kind())))
            }
        }
    }

    fn map(&mut self, entries: &'v [(Node, Node)]) -> Result<Value<'v>, Fault> {
        self.budget.make(entries.len() * 2 * SLOT)?;
        let mut made: Vec<(Value<'v>, Value<'v>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = self.value(key)?;
            if !is_key(&key) {
                return Err(no_kind_of_key(&key));
            }
            for (taken, _) in &made {
                if equal(taken, &key, self.budget)? {
                    return Err(failed("a map has a duplicate key".to_owned()));
                }
            }
            let value = self.value(value)?;
            made.push((key, value));
        }
        Ok(Value::Map(Map::Made(Rc::new(made))))
    }

    fn is_in(&mut self, item: &Value<'v>, whole: &Value<'v>) -> Result<bool, Fault> {
        match whole {
            Value::List(list) => {
                for place in 0..list.len() {
                    let Some(other) = list.get(place) else { break };
                    if equal(item, &other, self.budget)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Map(map) if is_key(item) || matches!(item, Value::Double(_)) => {
                Ok(map.get(item, self.budget)?.is_some())
            }
            Value::Map(_) => Err(no_kind_of_key(item)),
            other => Err(failed(format!("`in` needs a list or a map, not {}", other.kind()))),
        }
    }

    fn reckon(
        &mut self,
        reckon: Reckon,
        left: &Value<'v>,
        right: &Value<'v>,
    ) -> Result<Value<'v>, Fault> {
        match (left, right) {
            (Value::Int(left), Value::Int(right)) => {
                let found = match reckon {
                    Reckon::Add => left.checked_add(*right),
                    Reckon::Subtract => left.checked_sub(*right),
                    Reckon::Multiply => left.checked_mul(*right),
                    Reckon::Divide | Reckon::Remainder if *right == 0 => {
                        return Err(by_zero(reckon));
                    }
                    Reckon::Divide => left.checked_div(*right),
                    Reckon::Remainder => left.checked_rem(*right),
                };
                found.map(Value::Int).ok_or_else(|| overflow(reckon.sign()))
            }
            (Value::UInt(left), Value::UInt(right)) => {
                let found = match reckon {
                    Reckon::Add => left.checked_add(*right),
                    Reckon::Subtract => left.checked_sub(*right),
                    Reckon::Multiply => left.checked_mul(*right),
                    Reckon::Divide | Reckon::Remainder if *right == 0 => {
                        return Err(by_zero(reckon));
                    }
                    Reckon::Divide => left.checked_div(*right),
                    Reckon::Remainder => left.checked_rem(*right),
                };
                found.map(Value::UInt).ok_or_else(|| overflow(reckon.sign()))
            }
            (Value::Double(first), Value::Double(second)) => match reckon {
                Reckon::Add => Ok(Value::Double(first + second)),
                Reckon::Subtract => Ok(Value::Double(first - second)),
                Reckon::Multiply => Ok(Value::Double(first * second)),
                Reckon::Divide => Ok(Value::Double(first / second)),
                Reckon::Remainder => Err(between(reckon.sign(), left, right)),
            },
            (Value::Text(left), Value::Text(right)) if reckon == Reckon::Add => {
                let (left, right) = (left.as_str(), right.as_str());
                let bytes = left.len().saturating_add(right.len());
                self.budget.make(bytes)?;
                self.budget.scan(bytes)?;
                Ok(Value::text([left, right].concat()))
            }
            (Value::List(left), Value::List(right)) if reckon == Reckon::Add => {
                let items = left.len().saturating_add(right.len());
                self.budget.make(items.saturating_mul(SLOT))?;
                self.budget.step(items as u64)?;
                let each = |list: &List<'v>| {
                    let list = list.clone();
                    (0..list.len()).map_while(move |place| list.get(place))
                };
                Ok(Value::List(List::Made(Rc::new(each(left).chain(each(right)).collect()))))
            }
            _ => Err(between(reckon.sign(), left, right)),
        }
    }

    fn looped(&mut self, inner: &'v Loop) -> Result<Value<'v>, Fault> {
        let items: Items<'v> = match self.value(&inner.range)? {
            Value::List(list) => Items::List(list, 0),
            Value::Map(map) => Items::Keys(map.entries()),
            other => {
                let kind = other.kind();
                return Err(failed(format!("a loop needs a list or a map, not {kind}")));
            }
        };
        self.variables.push(Value::Null);
        let found = match &inner.kind {
            LoopKind::All => self.decided(items, &inner.body, false).map(|it| Value::Bool(!it)),
            LoopKind::Exists => self.decided(items, &inner.body, true).map(Value::Bool),
            LoopKind::ExistsOne => self.just_one(items, &inner.body),
            LoopKind::Map(keep) => self.mapped(items, keep.as_ref(), &inner.body),
        };
        self.variables.pop();
        found
    }

    fn turn_to(&mut self, item: Value<'v>) -> Result<(), Fault> {
        self.budget.step(1)?;
        if let Some(variable) = self.variables.last_mut() {
            *variable = item;
        }
        Ok(())
    }

    /// Whether any element is `deciding`. An element's error counts only if no element decides.
    fn decided(&mut self, items: Items<'v>, body: &'v Node, deciding: bool) -> Result<bool, Fault> {
        let asks = if deciding { "exists" } else { "all" };
        let mut pending = None;
        for item in items {
            self.turn_to(item)?;
            match self.truth(body, asks) {
                Ok(truth) if truth == deciding => return Ok(true),
                Ok(_) => {}
                Err(Fault::Spent(spent)) => return Err(spent.into()),
                Err(fault) => pending = Some(fault),
            }
        }
        pending.map_or(Ok(false), Err)
    }

    fn just_one(&mut self, items: Items<'v>, body: &'v Node) -> Result<Value<'v>, Fault> {
        let mut held = 0_u64;
        for item in items {
            self.turn_to(item)?;
            held += u64::from(self.truth(body, "exists_one")?);
        }
        Ok(Value::Bool(held == 1))
    }

    fn mapped(
        &mut self,
        items: Items<'v>,
        keep: Option<&'v Node>,
        body: &'v Node,
    ) -> Result<Value<'v>, Fault> {
        let mut made = Vec::new();
        for item in items {
            self.turn_to(item)?;
            if let Some(keep) = keep
                && !self.truth(keep, "filter")?
            {
                continue;
            }
            let value = self.value(body)?;
            self.budget.make(SLOT)?;
            made.push(value);
        }
        Ok(Value::List(List::Made(Rc::new(made))))
    }
}

/// The elements of a loop.
enum Items<'v> {
    List(List<'v>, usize),
    Keys(super::value::Entries<'v>),
}

impl<'v> Iterator for Items<'v> {
    type Item = Value<'v>;

    fn next(&mut self) -> Option<Value<'v>> {
        match self {
            Self::List(list, place) => {
                *place += 1;
                list.get(*place - 1)
            }
            Self::Keys(entries) => entries.next().map(|(key, _)| key),
        }
    }
}

impl Order {
    fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    fn holds(self, found: Ordering) -> bool {
        match self {
            Self::Less => found == Ordering::Less,
            Self::LessEqual => found != Ordering::Greater,
            Self::Greater => found == Ordering::Greater,
            Self::GreaterEqual => found != Ordering::Less,
        }
    }
}

impl Reckon {
    fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

fn is_key(value: &Value<'_>) -> bool {
    matches!(value, Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Text(_))
}

fn no_kind_of_key(value: &Value<'_>) -> Fault {
    failed(format!("{} cannot be the key of a map", value.kind()))
}

fn no_key(key: &str) -> Fault {
    failed(format!("there is no key `{}`", short(key)))
}

fn overflow(sign: &str) -> Fault {
    failed(format!("`{sign}` overflows 64 bits"))
}

fn by_zero(reckon: Reckon) -> Fault {
    failed(format!("`{}` by zero", reckon.sign()))
}

fn between(sign: &str, left: &Value<'_>, right: &Value<'_>) -> Fault {
    failed(format!("`{sign}` does not take {} and {}", left.kind(), right.kind()))
}
