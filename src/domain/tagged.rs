//! How an enum is written and read with the name of its variant inside: `{"type":"check_started","index":0}`. The name
//! stands first, where this program writes it, so it is known before anything else is read, and nothing is buffered.
//! serde's own `tag` buffers each value, since it looks for the name anywhere: that reads at half the speed, and what
//! reads from the buffer is built beside what reads from JSON, for every type within.
//!
//! It must not know which enum it is. Each variant of the enum has named fields.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;
use serde::de;
use serde::de::DeserializeSeed;
use serde::de::EnumAccess;
use serde::de::IntoDeserializer;
use serde::de::MapAccess;
use serde::de::VariantAccess;
use serde::de::Visitor;
use serde::forward_to_deserialize_any;
use serde::ser;
use serde::ser::Impossible;
use serde::ser::SerializeStruct;
use serde::ser::SerializeStructVariant;

/// The key of the name.
const KEY: &str = "type";
const NO_FIELDS: &str = "what has no named fields can't be written or read with its name inside";

/// Reads a value. Errors when the name of its variant does not stand first.
pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_map(NameFirst(PhantomData))
}

/// Writes a value.
pub(crate) fn serialize<T: Serialize, S: Serializer>(value: &T, out: S) -> Result<S::Ok, S::Error> {
    value.serialize(Inside(out))
}

struct NameFirst<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for NameFirst<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an object that begins with \"{KEY}\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<T, A::Error> {
        match fields.next_key::<String>()? {
            Some(key) if key == KEY => {}
            Some(_) | None => return Err(de::Error::missing_field(KEY)),
        }
        let name = fields.next_value()?;
        T::deserialize(Named { name, fields })
    }
}

/// A value of which the name was read, and the rest was not.
struct Named<A> {
    name: String,
    fields: A,
}

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Named<A> {
    type Error = A::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for Named<A> {
    type Error = A::Error;
    type Variant = Fields<A>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Fields<A>), A::Error> {
        Ok((seed.deserialize(self.name.into_deserializer())?, Fields(self.fields)))
    }
}

/// The rest.
struct Fields<A>(A);

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for Fields<A> {
    type Error = A::Error;

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, A::Error> {
        visitor.visit_map(self.0)
    }

    fn unit_variant(self) -> Result<(), A::Error> {
        Err(de::Error::custom(NO_FIELDS))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, A::Error> {
        Err(de::Error::custom(NO_FIELDS))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, A::Error> {
        Err(de::Error::custom(NO_FIELDS))
    }
}

/// Writes the name of a variant inside.
struct Inside<S>(S);

/// The functions of a serializer that are for something else than an enum.
macro_rules! refuse {
    ($($function:ident($($argument:ty),*) -> $done:ty;)*) => {
        $(fn $function(self, $(_: $argument),*) -> Result<$done, S::Error> {
            Err(ser::Error::custom(NO_FIELDS))
        })*
    };
}

impl<S: Serializer> Serializer for Inside<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Impossible<S::Ok, S::Error>;
    type SerializeTuple = Impossible<S::Ok, S::Error>;
    type SerializeTupleStruct = Impossible<S::Ok, S::Error>;
    type SerializeTupleVariant = Impossible<S::Ok, S::Error>;
    type SerializeMap = Impossible<S::Ok, S::Error>;
    type SerializeStruct = Impossible<S::Ok, S::Error>;
    type SerializeStructVariant = InsideFields<S::SerializeStruct>;

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<InsideFields<S::SerializeStruct>, S::Error> {
        let mut fields = self.0.serialize_struct(name, length + 1)?;
        fields.serialize_field(KEY, variant)?;
        Ok(InsideFields(fields))
    }

    fn serialize_some<T: ?Sized + Serialize>(self, _: &T) -> Result<S::Ok, S::Error> {
        Err(ser::Error::custom(NO_FIELDS))
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, _: &T) -> Result<S::Ok, S::Error> {
        Err(ser::Error::custom(NO_FIELDS))
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<S::Ok, S::Error> {
        Err(ser::Error::custom(NO_FIELDS))
    }

    refuse! {
        serialize_bool(bool) -> S::Ok;
        serialize_i8(i8) -> S::Ok;
        serialize_i16(i16) -> S::Ok;
        serialize_i32(i32) -> S::Ok;
        serialize_i64(i64) -> S::Ok;
        serialize_u8(u8) -> S::Ok;
        serialize_u16(u16) -> S::Ok;
        serialize_u32(u32) -> S::Ok;
        serialize_u64(u64) -> S::Ok;
        serialize_f32(f32) -> S::Ok;
        serialize_f64(f64) -> S::Ok;
        serialize_char(char) -> S::Ok;
        serialize_str(&str) -> S::Ok;
        serialize_bytes(&[u8]) -> S::Ok;
        serialize_none() -> S::Ok;
        serialize_unit() -> S::Ok;
        serialize_unit_struct(&'static str) -> S::Ok;
        serialize_unit_variant(&'static str, u32, &'static str) -> S::Ok;
        serialize_seq(Option<usize>) -> Impossible<S::Ok, S::Error>;
        serialize_tuple(usize) -> Impossible<S::Ok, S::Error>;
        serialize_tuple_struct(&'static str, usize) -> Impossible<S::Ok, S::Error>;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Impossible<S::Ok, S::Error>;
        serialize_map(Option<usize>) -> Impossible<S::Ok, S::Error>;
        serialize_struct(&'static str, usize) -> Impossible<S::Ok, S::Error>;
    }
}

struct InsideFields<F>(F);

impl<F: SerializeStruct> SerializeStructVariant for InsideFields<F> {
    type Ok = F::Ok;
    type Error = F::Error;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, key: &'static str, value: &T) -> Result<(), F::Error> {
        self.0.serialize_field(key, value)
    }

    fn skip_field(&mut self, key: &'static str) -> Result<(), F::Error> {
        self.0.skip_field(key)
    }

    fn end(self) -> Result<F::Ok, F::Error> {
        self.0.end()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum One {
        Said {
            text: String,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            by: Option<u8>,
        },
        Ended {},
        Bare,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        #[serde(with = "crate::domain::tagged")]
        one: One,
    }

    /// What a value is read as and what that is written as; or why not.
    fn check(json: &str) -> String {
        match serde_json::from_str::<Holder>(json) {
            Ok(read) => serde_json::to_string(&read).unwrap_or_else(|error| format!("not written: {error}")),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_name_stands_first() {
        for whole in [r#"{"one":{"type":"said","text":"a","by":3}}"#, r#"{"one":{"type":"ended"}}"#] {
            assert_eq!(check(whole), whole);
        }
        let escaped = r#"{"one":{"ty\u0070e":"sai\u0064","by":null,"text":"a","more":[{}]}}"#;
        assert_eq!(check(escaped), r#"{"one":{"type":"said","text":"a"}}"#);
    }

    #[test]
    fn what_is_otherwise_is_an_error() {
        let refused = [
            (r#"{"one":{"text":"a","type":"said"}}"#, "missing field `type`"),
            (r#"{"one":{}}"#, "missing field `type`"),
            (r#"{"one":{"type":"said"}}"#, "missing field `text`"),
            (
                r#"{"one":{"type":"sung","text":"a"}}"#,
                "unknown variant `sung`, expected one of `said`, `ended`, `bare`",
            ),
            (r#"{"one":{"type":7}}"#, "invalid type: integer `7`, expected a string"),
            (r#"{"one":"said"}"#, "invalid type: string \"said\", expected an object that begins with \"type\""),
            (r#"{"one":{"type":"said","text":"a","text":"b"}}"#, "duplicate field `text`"),
            (r#"{"one":{"type":"bare"}}"#, NO_FIELDS),
        ];
        for (json, why) in refused {
            let said = check(json);
            assert!(said.starts_with(why), "{json}: {said}");
        }
        assert!(serde_json::to_string(&Holder { one: One::Bare }).unwrap_err().to_string().contains(NO_FIELDS));
    }
}
