//! Parses CEL within limits. Both the parser and the evaluation are recursive, so the limits keep
//! them within the stack. Errors are short and have a position.
//!
//! Finds operators of other languages in a condition that does not parse.

use std::sync::LazyLock;

use cel::common::ast::{EntryExpr, Expr, IdedExpr};

use super::ConditionError;

/// Longest condition, in bytes.
pub(crate) const MAX_BYTES: usize = 2_000;

/// Maximum nesting of brackets: the parser is recursive.
pub(super) const MAX_BRACKETS: usize = 32;

/// Maximum nesting of the parsed condition: its evaluation is recursive.
const MAX_DEPTH: usize = 64;

/// The grammar and the macros of CEL. We implement the functions.
static ENV: LazyLock<cel::Env> = LazyLock::new(|| cel::Env::stdlib().with_optional_support(false));

/// Parses a condition.
pub(crate) fn parse(text: &str) -> Result<cel::Program, ConditionError> {
    if text.len() > MAX_BYTES {
        let text = format!("too long: {} bytes, at most {MAX_BYTES}", text.len());
        return Err(ConditionError::Syntax { text, offset: None });
    }
    let shape = Brackets::measure(text);
    if let Some(offset) = shape.too_deep {
        return Err(too_deep_error(Some(offset)));
    }
    let program = compile(text, &shape).map_err(|errors| syntax(text, &errors))?;
    if depth(program.expression()) > MAX_DEPTH {
        return Err(too_deep_error(None));
    }
    Ok(program)
}

fn too_deep_error(offset: Option<usize>) -> ConditionError {
    ConditionError::Syntax { text: "it is nested too deeply".to_owned(), offset }
}

/// The nesting of a text, found without parsing it. Brackets inside strings count too; no useful
/// string has that many.
struct Brackets {
    deepest: usize,
    /// Byte offset at which brackets or prefix operators exceed the limit.
    too_deep: Option<usize>,
}

impl Brackets {
    fn measure(text: &str) -> Self {
        let mut shape = Self { deepest: 0, too_deep: None };
        let (mut open, mut prefix) = (0_usize, 0_usize);
        for (at, c) in text.char_indices() {
            match c {
                '(' | '[' | '{' => open += 1,
                ')' | ']' | '}' => open = open.saturating_sub(1),
                '!' | '-' => prefix += 1,
                c if c.is_whitespace() => {}
                _ => prefix = 0,
            }
            shape.deepest = shape.deepest.max(open);
            if open > MAX_BRACKETS || prefix > MAX_DEPTH {
                shape.too_deep = Some(at);
                break;
            }
        }
        shape
    }
}

/// Parses a condition. In a build without optimisation the parser needs up to 200 KB of stack for
/// each open bracket, so an unusually long or nested text is parsed in a thread with a larger
/// stack.
fn compile(text: &str, shape: &Brackets) -> Result<cel::Program, cel::ParseErrors> {
    if shape.deepest <= 4 && text.len() <= 300 {
        return ENV.compile(text);
    }
    std::thread::scope(|scope| {
        let parser = std::thread::Builder::new()
            .stack_size(16 * 1024 * 1024)
            .spawn_scoped(scope, || ENV.compile(text));
        let parsed = parser.ok().and_then(|parser| parser.join().ok());
        parsed.unwrap_or_else(|| Err(cel::ParseErrors { errors: Vec::new() }))
    })
}

/// The nesting of an expression, found without recursion.
fn depth(expr: &IdedExpr) -> usize {
    let mut deepest = 0;
    let mut open = vec![(expr, 1)];
    while let Some((expr, level)) = open.pop() {
        deepest = deepest.max(level);
        children(&expr.expr, |child| open.push((child, level + 1)));
    }
    deepest
}

/// The first error of the parser, shortened.
fn syntax(text: &str, errors: &cel::ParseErrors) -> ConditionError {
    let Some(first) = errors.errors.first() else {
        return ConditionError::Syntax { text: "it does not parse".to_owned(), offset: None };
    };
    // If an operand is missing, the parser complains about the operator first.
    let said = errors.errors.iter().find(|error| error.msg.starts_with("Syntax error: "));
    let said = said.unwrap_or(first);
    if said.msg.contains("Recursion limit") {
        return too_deep_error(None);
    }
    if let Some(wrong) = find_foreign_operator(text) {
        let text = format!("unexpected `{}`; write `{}`", wrong.found, wrong.right);
        return ConditionError::Syntax { text, offset: Some(wrong.at) };
    }
    let message = said.msg.strip_prefix("Syntax error: ").unwrap_or(&said.msg);
    let message = message.split(" expecting ").next().unwrap_or(message);
    let message = if message.contains("<EOF>") {
        "it ends too early".to_owned()
    } else {
        ["mismatched input ", "extraneous input ", "token recognition error at: "]
            .iter()
            .find_map(|lead| message.strip_prefix(lead))
            .map_or_else(|| message.to_owned(), |what| format!("unexpected {what}"))
    };
    let message = message.chars().take(100).collect();
    let (line, column) = said.pos;
    let line = usize::try_from(line).unwrap_or(1).max(1);
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let column = usize::try_from(column).unwrap_or(1).max(1);
    let offset = start + byte_of(&text[start..], column - 1);
    ConditionError::Syntax { text: message, offset: Some(offset) }
}

/// The byte offset of a character.
pub(super) fn byte_of(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}

/// The parts of an expression.
pub(crate) fn children<'e>(expr: &'e Expr, mut each: impl FnMut(&'e IdedExpr)) {
    let entry = |entry: &'e EntryExpr, each: &mut dyn FnMut(&'e IdedExpr)| match entry {
        EntryExpr::StructField(field) => each(&field.value),
        EntryExpr::MapEntry(entry) => {
            each(&entry.key);
            each(&entry.value);
        }
    };
    match expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => call.target.iter().map(|it| &**it).chain(&call.args).for_each(each),
        Expr::Comprehension(inner) => {
            for part in [
                &inner.iter_range,
                &inner.accu_init,
                &inner.loop_cond,
                &inner.loop_step,
                &inner.result,
            ] {
                each(part);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(each),
        Expr::Map(map) => map.entries.iter().for_each(|it| entry(&it.expr, &mut each)),
        Expr::Select(select) => each(&select.operand),
        Expr::Struct(it) => it.entries.iter().for_each(|it| entry(&it.expr, &mut each)),
    }
}

/// What other languages write, each with the operator of CEL.
const OPERATORS: [(&str, &str); 15] = [
    ("=", "=="),
    ("===", "=="),
    ("is", "=="),
    ("<>", "!="),
    ("!==", "!="),
    ("=!", "!="),
    ("and", "&&"),
    ("AND", "&&"),
    ("&", "&&"),
    ("or", "||"),
    ("OR", "||"),
    ("|", "||"),
    ("not", "!"),
    ("=>", ">="),
    ("=<", "<="),
];

/// An operator of another language.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ForeignOperator<'t> {
    /// Byte offset in the condition.
    pub at: usize,
    pub found: &'t str,
    /// The operator of CEL.
    pub right: &'static str,
}

/// The first operator of another language, outside of strings.
fn find_foreign_operator(text: &str) -> Option<ForeignOperator<'_>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_sign = |c: char| "=!<>&|".contains(c);
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match first {
            '\'' | '"' => end_of_string(rest, first),
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if is_sign(first) => rest.find(|c| !is_sign(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let found = &rest[..length];
        // A field may have the name of an operator.
        let is_field = text[..at].ends_with('.');
        let row = OPERATORS.iter().find(|(foreign, _)| *foreign == found).filter(|_| !is_field);
        if let Some((_, right)) = row {
            return Some(ForeignOperator { at, found, right });
        }
        at += length;
    }
    None
}

/// The length of a string with its quotes.
fn end_of_string(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::find_foreign_operator;

    #[test]
    fn finds_foreign_operators_outside_strings() {
        for (text, found) in [
            ("a = 1", Some((2, "=="))),
            ("a === 'b'", Some((2, "=="))),
            ("a == 'x = y' and b", Some((13, "&&"))),
            (r"a == 'it\'s or' | b", Some((16, "||"))),
            ("not a", Some((0, "!"))),
            ("a <> b", Some((2, "!="))),
            ("a => 1", Some((2, ">="))),
            ("a.or == 1 &&", None),
            ("a == -1 || !b && c != d", None),
            ("organ == island", None),
            ("a == 'b", None),
        ] {
            let found_here = find_foreign_operator(text).map(|it| (it.at, it.right));
            assert_eq!(found_here, found, "{text}");
        }
    }
}
