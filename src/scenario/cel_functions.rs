//! What conditions have beyond CEL: `truthy(x)` and `number(x)`, so that rules can be as forgiving of
//! what a tool answers as those of the sources are.

use cel::common::types::{CelBool, CelDouble, CelInt, CelNull, CelString, CelUInt, DYN_TYPE, Type};
use cel::common::value::{CowVal, Val};
use cel::{Env, ExecutionError};

/// CEL's own functions and macros, and ours. A function that cannot be declared is not there, and a
/// condition that uses it says so.
pub(super) fn environment() -> Env {
    let mut env = Env::stdlib();
    let _ = env.add_overload("truthy", "truthy_dyn", vec![any()], truthy);
    let _ = env.add_overload("number", "number_dyn", vec![any()], number);
    env
}

fn any() -> Type {
    DYN_TYPE
}

/// Python's truth: nothing, zero and what is empty are false.
fn truthy<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [value] = &args[..] else {
        return Err(ExecutionError::invalid_argument_count(1, args.len()));
    };
    let value: &dyn Val = value.as_ref();
    let truth = if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        !text.inner().is_empty()
    } else if let Some(sizer) = value.as_sizer() {
        *sizer.size().inner() > 0
    } else if value.downcast_ref::<CelNull>().is_some() {
        false
    } else {
        as_number(value).is_none_or(|number| number != 0.0)
    };
    Ok(CowVal::owned(CelBool::from(truth)))
}

/// A number as a double; `true` is 1 and `false` is 0, as Python reckons.
fn number<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [value] = &args[..] else {
        return Err(ExecutionError::invalid_argument_count(1, args.len()));
    };
    let value: &dyn Val = value.as_ref();
    match as_number(value) {
        Some(number) => Ok(CowVal::owned(CelDouble::from(number))),
        None => {
            let what = format!("{} is no number", value.get_type().name());
            Err(ExecutionError::function_error("number", what))
        }
    }
}

fn as_number(value: &dyn Val) -> Option<f64> {
    if let Some(truth) = value.downcast_ref::<CelBool>() {
        return Some(f64::from(u8::from(*truth.inner())));
    }
    if let Some(whole) = value.downcast_ref::<CelInt>() {
        return Some(*whole.inner() as f64);
    }
    if let Some(whole) = value.downcast_ref::<CelUInt>() {
        return Some(*whole.inner() as f64);
    }
    value.downcast_ref::<CelDouble>().map(|number| *number.inner())
}
