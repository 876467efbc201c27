//! A line of the newest version, read in one pass: first what every event has, then the fields of its
//! kind. [`Event::from_line`] reads what this way refuses by its tree of values.
//!
//! A deserializer that refuses values which the type does not read. The parser checks a value that is
//! skipped less than one that is read (it may be out of range, or nested too deeply), so a line with
//! such a value is left to the careful way of reading.

use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

use super::kind::SCHEMA_VERSION;
use super::{Elapsed, Event, EventKind, Seq, SpanId};
use crate::log::facts::PatternFact;

/// The event of a line as roundtable writes it. `None`: it may still be one; the line may be of an earlier
/// version, of an unknown kind, in another order, or no event at all.
pub(crate) fn read(line: &str) -> Option<Event> {
    // An object with this name is another value in a tree of values, however the name is written.
    if line.contains("$serde_json") || has_escaped_letters(line) {
        return None;
    }
    let mut json = serde_json::Deserializer::from_str(line);
    let event = NothingSkipped(&mut json).deserialize_map(LineVisitor).ok()?;
    json.end().ok()?;
    Some(event)
}

/// If characters are escaped that roundtable writes as they are: all but control characters.
fn has_escaped_letters(line: &str) -> bool {
    let mut escapes = line.split("\\u").skip(1);
    escapes.any(|digits| !digits.starts_with("000") && !digits.starts_with("001"))
}

/// A field that comes before those of the kind.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum LineField {
    V,
    Run,
    Seq,
    AtUs,
    Span,
    Kind,
}

struct LineVisitor;

impl<'de> Visitor<'de> for LineVisitor {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Event, A::Error> {
        let (mut version, mut run) = (None::<u32>, None::<&str>);
        let (mut seq, mut at, mut span) = (None::<Seq>, None::<Elapsed>, None::<SpanId>);
        let kind: &str = loop {
            match fields.next_key()? {
                Some(LineField::V) => once(&mut version, &mut fields)?,
                Some(LineField::Run) => once(&mut run, &mut fields)?,
                Some(LineField::Seq) => once(&mut seq, &mut fields)?,
                Some(LineField::AtUs) => once(&mut at, &mut fields)?,
                Some(LineField::Span) => once(&mut span, &mut fields)?,
                Some(LineField::Kind) => break fields.next_value()?,
                None => return Err(refused()),
            }
        };
        let (Some(seq), Some(at), Some(span)) = (seq, at, span) else { return Err(refused()) };
        if version.is_some_and(|version| version != SCHEMA_VERSION) {
            return Err(refused());
        }
        let kind = match PatternFact::read_fields(kind, KindReader { kind, fields }) {
            Ok(fact) => EventKind::Pattern(fact?),
            Err(shared) => EventKind::read_fields(shared)?,
        };
        Ok(Event { seq, at, span, kind })
    }
}

fn refused<E: Error>() -> E {
    E::custom("not a line as roundtable writes it")
}

/// Reads the value of a field that a line has once.
fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    field: &mut Option<T>,
    fields: &mut A,
) -> Result<(), A::Error> {
    if field.replace(fields.next_value()?).is_some() { Err(refused()) } else { Ok(()) }
}

/// A kind and the fields after it, as the variant of an enum and its content.
struct KindReader<'k, A> {
    kind: &'k str,
    fields: A,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for KindReader<'_, A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for KindReader<'_, A> {
    type Error = A::Error;
    type Variant = KindFields<A>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, KindFields<A>), A::Error> {
        let kind = seed.deserialize(StrDeserializer::new(self.kind))?;
        Ok((kind, KindFields(self.fields)))
    }
}

/// The fields of a kind.
struct KindFields<A>(A);

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for KindFields<A> {
    type Error = A::Error;

    fn unit_variant(mut self) -> Result<(), A::Error> {
        match self.next_key::<IgnoredAny>()? {
            None => Ok(()),
            Some(_) => Err(refused()),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        seed.deserialize(MapAccessDeserializer::new(self))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, A::Error> {
        Err(refused())
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(self)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for KindFields<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(KindFieldName(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

/// The name of a field of a kind. What every event has must not come again: of two equal names in a
/// tree of values, the last one counts.
struct KindFieldName<S>(S);

impl<S> KindFieldName<S> {
    fn is_allowed(name: &str) -> bool {
        !matches!(name, "v" | "seq" | "at_us" | "span" | "kind")
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for KindFieldName<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for KindFieldName<S> {
    type Value = S::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<S::Value, E> {
        match Self::is_allowed(name) {
            true => self.0.deserialize(StrDeserializer::new(name)),
            false => Err(refused()),
        }
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<S::Value, E> {
        match Self::is_allowed(name) {
            true => self.0.deserialize(BorrowedStrDeserializer::new(name)),
            false => Err(refused()),
        }
    }
}

/// Passes everything through to the inner deserializer, visitor or access, except values that are
/// skipped: these are an error.
pub(crate) struct NothingSkipped<T>(pub T);

macro_rules! forward {
    ($($method:ident)*) => {
        $(
            #[inline]
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
                self.0.$method(NothingSkipped(visitor))
            }
        )*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for NothingSkipped<D> {
    type Error = D::Error;

    forward! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32
        deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32
        deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
        deserialize_option deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, D::Error> {
        Err(D::Error::custom("a value that is not read"))
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, NothingSkipped(visitor))
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, NothingSkipped(visitor))
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(len, NothingSkipped(visitor))
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, len, NothingSkipped(visitor))
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, NothingSkipped(visitor))
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, NothingSkipped(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident($value:ty))*) => {
        $(
            #[inline]
            fn $method<E: serde::de::Error>(self, value: $value) -> Result<V::Value, E> {
                self.0.$method(value)
            }
        )*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for NothingSkipped<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    // JSON has no other numbers, and no bytes.
    visit! {
        visit_bool(bool) visit_i64(i64) visit_u64(u64) visit_i128(i128) visit_u128(u128)
        visit_f64(f64) visit_str(&str) visit_borrowed_str(&'de str) visit_string(String)
    }

    #[inline]
    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    #[inline]
    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    #[inline]
    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(NothingSkipped(inner))
    }

    #[inline]
    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(NothingSkipped(inner))
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(NothingSkipped(items))
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(NothingSkipped(entries))
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(NothingSkipped(variant))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for NothingSkipped<S> {
    type Value = S::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(NothingSkipped(from))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for NothingSkipped<A> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(NothingSkipped(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for NothingSkipped<A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(NothingSkipped(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for NothingSkipped<A> {
    type Error = A::Error;
    type Variant = NothingSkipped<A::Variant>;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.0.variant_seed(seed)?;
        Ok((value, NothingSkipped(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for NothingSkipped<A> {
    type Error = A::Error;

    #[inline]
    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(NothingSkipped(seed))
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, NothingSkipped(visitor))
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, NothingSkipped(visitor))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const V2: &str = include_str!("../../../tests/golden/v2/facts.jsonl");

    /// What is put into a line: fields, values that only some readers refuse, and pieces of lines.
    const PIECES: [&str; 36] = [
        "\"\\u0024serde_json::private::RawValue\":\"1\",",
        "{\"\\u0024serde_json::private::RawValue\":\"1\"}",
        "\"x\":1e400,",
        "\"x\":[\"\\ud800\"],",
        "\"x\":{\"\\ud800\":1},",
        "\"x\":null,",
        "\"x\":{\"x\":[{\"y\":1}]},",
        "\"$serde_json::private::RawValue\":\"1\",",
        "\"$serde_json::private::Number\":\"1\",",
        "\"v\":1,",
        "\"v\":2,",
        "\"v\":9,",
        "\"run\":\"r-1\",",
        "\"run\":{\"x\":\"\\ud800\"},",
        "\"seq\":7,",
        "\"at_us\":7,",
        "\"at\":7,",
        "\"span\":7,",
        "\"kind\":\"warning\",",
        "\"kind\":\"invented.later\",",
        "\"limit\":\"deadline\",",
        "\"attempt\":1,",
        "\"text\":\"a\",",
        "\"\\u0073eq\":7,",
        "{",
        "}",
        "[",
        "]",
        "\"",
        ",",
        "-1",
        "1.5",
        "1e400",
        "18446744073709551616",
        "null",
        "\"a\"",
    ];

    /// A golden line in which a piece was put somewhere, in the place of some characters, some times.
    fn changed_line() -> impl Strategy<Value = String> {
        let lines: Vec<&str> = V2.lines().collect();
        let change =
            (any::<prop::sample::Index>(), 0..4_u8, 0..6_usize, prop::sample::select(&PIECES[..]));
        let changes = prop::collection::vec(change, 0..4);
        (prop::sample::select(lines), changes).prop_map(|(line, changes)| {
            let mut line = line.to_owned();
            for (place, way, length, piece) in changes {
                // Fields belong behind a brace or a comma, values behind a colon.
                let after: &[char] = match (way, piece.ends_with(',')) {
                    (0, _) => &[],
                    (_, true) => &['{', ','],
                    (_, false) => &[':', '[', ','],
                };
                let is_place = |at: &usize| {
                    line.is_char_boundary(*at) && (way == 0 || line[..*at].ends_with(after))
                };
                let places: Vec<usize> = (0..=line.len()).filter(is_place).collect();
                if places.is_empty() {
                    continue;
                }
                let from = *place.get(&places);
                let rest = line[from..].find([',', '}', ']']).map_or(line.len(), |at| from + at);
                let to = match way {
                    0 => (from + length).min(line.len()),
                    1 if !piece.ends_with(',') => rest,
                    _ => from,
                };
                if line.is_char_boundary(to) {
                    line.replace_range(from..to, piece);
                }
            }
            line
        })
    }

    fn check(line: &str) -> bool {
        let Some(event) = read(line) else { return false };
        assert_eq!(Event::from_tree(line).ok(), Some(event), "{line}");
        true
    }

    #[test]
    fn every_known_kind_is_read_in_one_pass() {
        for line in V2.lines() {
            assert_eq!(check(line), !line.contains("\"invented.later\""), "{line}");
            // As the store writes it.
            let with_run = line.replacen("\"seq\"", "\"run\":\"r-1\",\"seq\"", 1);
            check(&with_run);
        }
    }

    #[test]
    fn a_value_that_is_not_read_is_left_to_the_tree() {
        let line = r#"{"v":2,"seq":0,"at_us":0,"span":0,"kind":"warning","text":"a"}"#;
        assert!(check(line));
        for more in ["\"x\":1", "\"x\":1e400", "\"x\":\"\\ud800\"", "\"seq\":1", "\"kind\":\"x\""] {
            let line = line.replacen("\"text\"", &format!("{more},\"text\""), 1);
            assert!(!check(&line), "{line}");
        }
        assert!(!check(&format!("{line}x")));
    }

    #[test]
    fn an_object_that_is_another_value_in_a_tree_is_left_to_the_tree() {
        let line = V2.lines().find(|line| line.contains(r#""purpose":{"#)).expect("a model call");
        for dollar in ["$", r"\u0024"] {
            let with = format!(r#""purpose":{{"{dollar}serde_json::private::RawValue":"1","#);
            assert!(!check(&line.replacen(r#""purpose":{"#, &with, 1)), "{dollar}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn what_is_read_in_one_pass_is_what_the_tree_gives(line in changed_line()) {
            check(&line);
        }
    }
}
