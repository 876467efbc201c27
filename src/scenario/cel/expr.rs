//! The syntax tree of a condition, built once when the scenario is loaded: names are resolved,
//! loops are recognised, and unsupported parts are refused with their position.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators as op,
};

use super::RunFunction;
use super::function::Function;

/// A part of a condition.
#[derive(Debug)]
pub(crate) enum CelNode {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(String),
    /// A bound name, or else the type with that name.
    Bound(String, Option<&'static str>),
    /// The variable of a loop, numbered from the outermost loop.
    Variable(usize),
    Field(Box<CelNode>, String),
    Has(Box<CelNode>, String),
    Index(Box<[CelNode; 2]>),
    List(Vec<CelNode>),
    Map(Vec<(CelNode, CelNode)>),
    If(Box<[CelNode; 3]>),
    Not(Box<CelNode>),
    Negate(Box<CelNode>),
    And(Box<[CelNode; 2]>),
    Or(Box<[CelNode; 2]>),
    /// `==`, and `!=` where this is false.
    Equal(bool, Box<[CelNode; 2]>),
    Order(ComparisonOp, Box<[CelNode; 2]>),
    Arithmetic(ArithmeticOp, Box<[CelNode; 2]>),
    In(Box<[CelNode; 2]>),
    Call(Function, Vec<CelNode>),
    /// A function of expectations.
    OfRun(RunFunction, Vec<String>),
    Loop(Box<CelLoop>),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComparisonOp {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArithmeticOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A loop over a list or the keys of a map.
#[derive(Debug)]
pub(crate) struct CelLoop {
    pub kind: LoopKind,
    pub range: CelNode,
    /// The condition or the expression that is evaluated for each element.
    pub body: CelNode,
}

/// The macro that a loop comes from.
#[derive(Debug)]
pub(crate) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    /// Lists the values of the body, only for elements for which this condition holds.
    Map(Option<CelNode>),
}

impl LoopKind {
    /// Its name in the source; that of a filter is `map`'s.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Exists => "exists",
            Self::ExistsOne => "exists_one",
            Self::Map(_) => "map",
        }
    }
}

/// Why an expression is refused: the error, and the id of the part that is wrong.
pub(crate) type CelCompileError = (String, u64);

/// Builds the tree from the parser's. Its recursion is bounded by the limits of the parser. `of_run`:
/// whether it may call the functions of expectations.
pub(crate) fn compile(expr: &IdedExpr, of_run: bool) -> Result<CelNode, CelCompileError> {
    Scope { variables: Vec::new(), of_run }.node(expr)
}

/// What the parts of a condition may use.
struct Scope<'e> {
    /// The variables of the enclosing loops, the outermost first.
    variables: Vec<&'e str>,
    of_run: bool,
}

impl<'e> Scope<'e> {
    fn node(&mut self, expr: &'e IdedExpr) -> Result<CelNode, CelCompileError> {
        let refused = |what: &str| Err((what.to_owned(), expr.id));
        match &expr.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Null => Ok(CelNode::Null),
                LiteralValue::Boolean(truth) => Ok(CelNode::Bool(*truth.inner())),
                LiteralValue::Int(whole) => Ok(CelNode::Int(*whole.inner())),
                LiteralValue::UInt(whole) => Ok(CelNode::UInt(*whole.inner())),
                LiteralValue::Double(float) => Ok(CelNode::Double(*float.inner())),
                LiteralValue::String(text) => Ok(CelNode::Text(text.inner().to_owned())),
                LiteralValue::Bytes(_) => refused("bytes are not supported; write a string"),
            },
            Expr::Ident(name) => Ok(self.name(name)),
            Expr::Select(select) => {
                let operand = Box::new(self.node(&select.operand)?);
                let field = select.field.clone();
                Ok(if select.test {
                    CelNode::Has(operand, field)
                } else {
                    CelNode::Field(operand, field)
                })
            }
            Expr::List(list) if list.optional_indices.is_empty() => {
                let items = list.elements.iter().map(|item| self.node(item));
                Ok(CelNode::List(items.collect::<Result<_, _>>()?))
            }
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    match &entry.expr {
                        EntryExpr::MapEntry(it) if !it.optional => {
                            entries.push((self.node(&it.key)?, self.node(&it.value)?));
                        }
                        EntryExpr::MapEntry(_) | EntryExpr::StructField(_) => {
                            return Err(("optional entries are not supported".into(), entry.id));
                        }
                    }
                }
                Ok(CelNode::Map(entries))
            }
            Expr::Call(call) => self.call(call, expr.id),
            Expr::Comprehension(inner) => self.compile_loop(inner, expr.id),
            Expr::List(_) => refused("optional elements are not supported"),
            Expr::Struct(_) => refused("messages are not supported; write a map"),
            Expr::Unspecified => refused("it does not parse"),
        }
    }

    /// Resolves a name. A leading dot never names the variable of a loop.
    fn name(&self, name: &str) -> CelNode {
        let bound = self.variables.iter().rposition(|variable| *variable == name);
        match bound {
            Some(place) => CelNode::Variable(place),
            None => {
                let name = name.trim_start_matches('.');
                CelNode::Bound(name.to_owned(), type_named(name))
            }
        }
    }

    fn call(&mut self, call: &'e CallExpr, id: u64) -> Result<CelNode, CelCompileError> {
        let name = call.func_name.as_str();
        if call.target.is_none() {
            match &call.args[..] {
                [one] if matches!(name, op::LOGICAL_NOT | op::NEGATE) => {
                    let one = Box::new(self.node(one)?);
                    return Ok(if name == op::NEGATE {
                        CelNode::Negate(one)
                    } else {
                        CelNode::Not(one)
                    });
                }
                [left, right] => {
                    if let Some(join) = binary_operator(name) {
                        return Ok(join(Box::new([self.node(left)?, self.node(right)?])));
                    }
                }
                [condition, yes, no] if name == op::CONDITIONAL => {
                    let parts = [self.node(condition)?, self.node(yes)?, self.node(no)?];
                    return Ok(CelNode::If(Box::new(parts)));
                }
                _ => {}
            }
        }
        let member = call.target.is_some();
        if let Some(function) = RunFunction::named(name).filter(|_| !member) {
            return self.of_run(function, &call.args, id);
        }
        let values = call.target.iter().map(|target| &**target).chain(&call.args);
        let function = Function::find(name, member, values.clone().count(), self.of_run)
            .map_err(|what| (what, id))?;
        let values = values.map(|value| self.node(value)).collect::<Result<_, _>>()?;
        Ok(CelNode::Call(function, values))
    }

    /// A call of a function of expectations. Its arguments are literals, so that they can be checked
    /// when the file is loaded.
    fn of_run(
        &self,
        function: RunFunction,
        args: &[IdedExpr],
        id: u64,
    ) -> Result<CelNode, CelCompileError> {
        let name = function.name();
        if !self.of_run {
            return Err((format!("`{name}` can only be used in [[expect]]"), id));
        }
        function.check(args.len()).map_err(|what| (what, id))?;
        let args = args.iter().map(|arg| match &arg.expr {
            Expr::Literal(LiteralValue::String(text)) => Ok(text.inner().to_owned()),
            _ => Err((format!("`{name}` takes names in quotes"), arg.id)),
        });
        Ok(CelNode::OfRun(function, args.collect::<Result<_, _>>()?))
    }

    /// The macros expand to loops of these forms only; a file cannot contain `@result`.
    fn compile_loop(
        &mut self,
        inner: &'e ComprehensionExpr,
        id: u64,
    ) -> Result<CelNode, CelCompileError> {
        let unknown = || ("this loop is not supported".to_owned(), id);
        let step = as_plain_call(&inner.loop_step).ok_or_else(unknown)?;
        let range = self.node(&inner.iter_range)?;
        self.variables.push(&inner.iter_var);
        let found = match (step.func_name.as_str(), &step.args[..]) {
            (op::LOGICAL_AND, [_, body]) => self.node(body).map(|body| (LoopKind::All, body)),
            (op::LOGICAL_OR, [_, body]) => self.node(body).map(|body| (LoopKind::Exists, body)),
            (op::ADD, [_, added]) => match &added.expr {
                Expr::List(list) => match &list.elements[..] {
                    [body] => self.node(body).map(|body| (LoopKind::Map(None), body)),
                    _ => Err(unknown()),
                },
                _ => Err(unknown()),
            },
            (op::CONDITIONAL, [keep, added, _]) => {
                let added = as_plain_call(added).and_then(|added| added.args.get(1));
                match added.map(|added| &added.expr) {
                    Some(Expr::List(list)) => match &list.elements[..] {
                        [body] => self
                            .node(keep)
                            .and_then(|keep| Ok((LoopKind::Map(Some(keep)), self.node(body)?))),
                        _ => Err(unknown()),
                    },
                    Some(Expr::Literal(_)) => {
                        self.node(keep).map(|body| (LoopKind::ExistsOne, body))
                    }
                    _ => Err(unknown()),
                }
            }
            _ => Err(unknown()),
        };
        self.variables.pop();
        let (kind, body) = found?;
        Ok(CelNode::Loop(Box::new(CelLoop { kind, range, body })))
    }
}

fn as_plain_call(expr: &IdedExpr) -> Option<&CallExpr> {
    match &expr.expr {
        Expr::Call(call) if call.target.is_none() => Some(call),
        _ => None,
    }
}

/// Builds a part from its two sides.
type BinaryNode = fn(Box<[CelNode; 2]>) -> CelNode;

/// The part that a binary operator builds.
fn binary_operator(name: &str) -> Option<BinaryNode> {
    Some(match name {
        op::LOGICAL_AND => CelNode::And,
        op::LOGICAL_OR => CelNode::Or,
        op::EQUALS => |sides| CelNode::Equal(true, sides),
        op::NOT_EQUALS => |sides| CelNode::Equal(false, sides),
        op::LESS => |sides| CelNode::Order(ComparisonOp::Less, sides),
        op::LESS_EQUALS => |sides| CelNode::Order(ComparisonOp::LessEqual, sides),
        op::GREATER => |sides| CelNode::Order(ComparisonOp::Greater, sides),
        op::GREATER_EQUALS => |sides| CelNode::Order(ComparisonOp::GreaterEqual, sides),
        op::ADD => |sides| CelNode::Arithmetic(ArithmeticOp::Add, sides),
        op::SUBSTRACT => |sides| CelNode::Arithmetic(ArithmeticOp::Subtract, sides),
        op::MULTIPLY => |sides| CelNode::Arithmetic(ArithmeticOp::Multiply, sides),
        op::DIVIDE => |sides| CelNode::Arithmetic(ArithmeticOp::Divide, sides),
        op::MODULO => |sides| CelNode::Arithmetic(ArithmeticOp::Remainder, sides),
        op::IN => CelNode::In,
        op::INDEX => CelNode::Index,
        _ => return None,
    })
}

/// The type with this name. Types are names of the language and need not be bound.
pub(super) fn type_named(name: &str) -> Option<&'static str> {
    let names = ["bool", "double", "int", "list", "map", "null_type", "string", "type", "uint"];
    names.into_iter().find(|known| *known == name)
}
