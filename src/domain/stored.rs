//! How what the domain shares and lists is written and read: what is shared as what it holds, what is no list of JSON
//! as a list. For the fields of `Run`; it must not know what they mean.

/// Something shared.
pub(crate) mod shared {
    use std::sync::Arc;

    use serde::Deserialize;
    use serde::Deserializer;
    use serde::Serialize;
    use serde::Serializer;

    pub(crate) fn serialize<T: Serialize, S: Serializer>(value: &Arc<T>, out: S) -> Result<S::Ok, S::Error> {
        value.as_ref().serialize(out)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Arc<T>, D::Error> {
        T::deserialize(from).map(Arc::new)
    }
}

/// Something shared, if it is there.
pub(crate) mod maybe_shared {
    use std::sync::Arc;

    use serde::Deserialize;
    use serde::Deserializer;
    use serde::Serialize;
    use serde::Serializer;

    pub(crate) fn serialize<T: Serialize, S: Serializer>(value: &Option<Arc<T>>, out: S) -> Result<S::Ok, S::Error> {
        value.as_deref().serialize(out)
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Option<Arc<T>>, D::Error>
    where
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Option::<T>::deserialize(from).map(|value| value.map(Arc::new))
    }
}

/// A list of what is shared.
pub(crate) mod each_shared {
    use std::sync::Arc;

    use serde::Deserialize;
    use serde::Deserializer;
    use serde::Serialize;
    use serde::Serializer;

    pub(crate) fn serialize<T: Serialize, S: Serializer>(values: &[Arc<T>], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(values.iter().map(Arc::as_ref))
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<Vec<Arc<T>>, D::Error>
    where
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Vec::<T>::deserialize(from).map(|values| values.into_iter().map(Arc::new).collect())
    }
}

/// A collection as a list of its items; of a map these are pairs, because not every key is a text.
pub(crate) mod listed {
    use serde::Deserialize;
    use serde::Deserializer;
    use serde::Serialize;
    use serde::Serializer;

    pub(crate) fn serialize<'a, C, S>(items: &'a C, out: S) -> Result<S::Ok, S::Error>
    where
        &'a C: IntoIterator,
        <&'a C as IntoIterator>::Item: Serialize,
        S: Serializer,
    {
        out.collect_seq(items)
    }

    pub(crate) fn deserialize<'de, C, I, D>(from: D) -> Result<C, D::Error>
    where
        C: FromIterator<I>,
        I: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Vec::<I>::deserialize(from).map(|items| items.into_iter().collect())
    }
}
