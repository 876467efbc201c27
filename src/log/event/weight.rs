//! Estimates the bytes that an event takes, which limits the memory of logs. Its values are counted
//! as serde passes them. Texts and names are counted as if they were not shared, because in a log read
//! from a file they are not.

use std::fmt::Display;
use std::mem::size_of;

use serde::de::value::Error;
use serde::ser::{self, Serialize, Serializer};
use serde_json::Value;

use super::{Event, EventKind, KindOut};

/// Bytes of an item of a list, without what it refers to.
const ITEM: usize = size_of::<Value>();
/// Bytes of an entry of a map, without what it refers to.
const ENTRY: usize = 64;
/// Bytes of a text, without its characters.
const TEXT: usize = 24;
/// Bytes of a number or a word.
const NUMBER: usize = 8;

/// Approximate bytes of a value. It recurses: the parser has limited the depth.
pub(crate) fn weight_of(value: &impl Serialize) -> usize {
    let mut bytes = Bytes(0);
    // Counting does not fail.
    let _ = value.serialize(&mut bytes);
    bytes.0
}

impl EventKind {
    /// Approximate bytes of an event of this kind.
    pub fn weight(&self) -> usize {
        size_of::<Event>() + weight_of(&KindOut(self))
    }
}

struct Bytes(usize);

type Counted = Result<(), Error>;

impl Bytes {
    fn add(&mut self, bytes: usize) -> Counted {
        self.0 += bytes;
        Ok(())
    }
}

macro_rules! numbers {
    ($($method:ident($number:ty))*) => {
        $(fn $method(self, _: $number) -> Counted {
            self.add(NUMBER)
        })*
    };
}

impl Serializer for &mut Bytes {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    numbers! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_f32(f32)
        serialize_f64(f64) serialize_char(char) serialize_unit_struct(&'static str)
    }

    fn serialize_str(self, text: &str) -> Counted {
        self.add(TEXT + text.len())
    }

    fn collect_str<T: Display + ?Sized>(self, text: &T) -> Counted {
        self.add(TEXT + text.to_string().len())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Counted {
        self.add(TEXT + bytes.len())
    }

    fn serialize_none(self) -> Counted {
        Ok(())
    }

    fn serialize_unit(self) -> Counted {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Counted {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Counted {
        self.add(NUMBER)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Counted {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Counted {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Error> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Error> {
        Ok(self)
    }
}

macro_rules! items {
    ($($list:ident::$method:ident)*) => {$(
        impl ser::$list for &mut Bytes {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Counted {
                self.0 += ITEM;
                item.serialize(&mut **self)
            }

            fn end(self) -> Counted {
                Ok(())
            }
        }
    )*};
}

items! {
    SerializeSeq::serialize_element
    SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field
    SerializeTupleVariant::serialize_field
}

macro_rules! fields {
    ($($object:ident)*) => {$(
        impl ser::$object for &mut Bytes {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, field: &T) -> Counted {
                field.serialize(&mut **self)
            }

            fn end(self) -> Counted {
                Ok(())
            }
        }
    )*};
}

fields! { SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for &mut Bytes {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Counted {
        self.0 += ENTRY;
        name.serialize(&mut **self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Counted {
        value.serialize(&mut **self)
    }

    fn end(self) -> Counted {
        Ok(())
    }
}
