//! The bound names that a condition uses, found in its syntax tree.

use cel::common::ast::{Expr, IdedExpr};

/// A bound name that a condition uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name<'c> {
    /// The name, then the fields selected on it: `facts`, `risk_signals`, `chargeback_alerts`.
    pub path: Vec<&'c str>,
    /// Whether the last field is only tested with `has()`.
    pub guarded: bool,
    /// Byte offset of its start in the condition's text.
    pub at: usize,
}

/// The name and the fields of `a.b.c`, the id of `a`, and whether it is inside `has()`.
pub(super) fn path_of(expr: &IdedExpr) -> Option<(u64, Vec<&str>, bool)> {
    let mut path = Vec::new();
    let mut guarded = false;
    let mut expr = expr;
    loop {
        match &expr.expr {
            Expr::Ident(name) => {
                path.push(name.trim_start_matches('.'));
                path.reverse();
                return Some((expr.id, path, guarded));
            }
            Expr::Select(select) => {
                guarded |= select.test;
                path.push(&select.field);
                expr = &select.operand;
            }
            _ => return None,
        }
    }
}
