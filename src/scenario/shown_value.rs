//! JSON as values of CEL. Its maps keep the order of the JSON: the crate's own iterate in an order
//! that differs from run to run.

use std::collections::HashMap;

use cel::ExecutionError;
use cel::common::traits::{Container, Indexer, Iterable, Iterator as ValIterator, Sizer};
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt, Type,
};
use cel::common::value::{Builtin, BuiltinRef, CowVal, Val};
use serde_json::Value;

/// The same as a value of CEL.
pub(super) fn to_val(value: &Value) -> Box<dyn Val> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(truth) => Box::new(CelBool::from(*truth)),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), _, _) => Box::new(CelInt::from(whole)),
            (None, Some(whole), _) => Box::new(CelUInt::from(whole)),
            (None, None, Some(float)) => Box::new(CelDouble::from(float)),
            (None, None, None) => Box::new(CelNull),
        },
        Value::String(text) => Box::new(CelString::from(text.clone())),
        Value::Array(items) => {
            Box::new(CelList::from(items.iter().map(to_val).collect::<Vec<_>>()))
        }
        Value::Object(fields) => {
            let keys = fields.keys().map(|key| CelString::from(key.clone())).collect();
            let map: HashMap<CelMapKey<'static>, Box<dyn Val>> = fields
                .iter()
                .map(|(key, value)| (CelMapKey::from(key.clone()), to_val(value)))
                .collect();
            Box::new(OrderedMap { map: CelMap::from(map), keys })
        }
    }
}

/// A map of CEL whose keys come in the order in which they stand.
#[derive(Debug, Clone)]
struct OrderedMap {
    map: CelMap<'static>,
    keys: Vec<CelString<'static>>,
}

impl Val for OrderedMap {
    fn get_type(&self) -> &Type {
        self.map.get_type()
    }
    fn cel_type() -> &'static Type {
        CelMap::cel_type()
    }
    fn as_container(&self) -> Option<&dyn Container> {
        self.map.as_container()
    }
    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }
    fn into_indexer<'v>(self: Box<Self>) -> Option<Box<dyn Indexer + 'v>>
    where
        Self: 'v,
    {
        Some(self)
    }
    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }
    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.map.as_sizer()
    }
    fn equals(&self, other: &dyn Val) -> bool {
        self.map.equals(other)
    }
    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }
    // So that the crate's own maps know it for one of them, and `{'a': 1} == facts` holds.
    fn as_builtin<'b, 'v>(&'b self) -> BuiltinRef<'b, 'v>
    where
        Self: 'v,
    {
        BuiltinRef::Map(&self.map)
    }
    fn into_builtin<'v>(self: Box<Self>) -> Option<Builtin<'v>>
    where
        Self: 'v,
    {
        Some(Builtin::Map(self.map))
    }
}

impl Indexer for OrderedMap {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Indexer::get(&self.map, index)
    }
    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        Indexer::steal(Box::new(self.map), index)
    }
}

impl Iterable for OrderedMap {
    fn iter<'b, 'v>(&'b self) -> Box<dyn ValIterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Keys(self.keys.iter()))
    }
}

struct Keys<'b>(std::slice::Iter<'b, CelString<'static>>);

impl<'b, 'v> ValIterator<'b, 'v> for Keys<'b> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        let key: &'b CelString<'static> = self.0.next()?;
        Some(key)
    }
}
