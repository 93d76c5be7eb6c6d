//! YAML text to objects, document by document.
//! The items of a list keep their own lines.

use super::{
    LoadError,
    error::one_line,
    object::{Collector, Entry, ListItems, Parent, Place},
    split::{Chunk, documents},
    value::{Allowance, Careful, DEPTH_MAX},
};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor, value};
use serde_json::{Map, Value};
use serde_saphyr::{MessageFormatter, Options, Spanned, UserMessageFormatter};
use std::{fmt, thread};

/// Streams of fewer documents are not worth a thread.
const DOCUMENTS_PER_THREAD_MIN: usize = 500;

/// Room for the deepest document that is allowed, in a build without optimisation.
const STACK_BYTES: usize = 16 << 20;

/// Reads every document of the stream.
pub(super) fn read(text: &str, collector: &mut Collector<'_>) -> Result<(), LoadError> {
    let chunks = documents(text);
    for (at, (chunk, document)) in chunks.iter().zip(parse_all(&chunks)).enumerate() {
        let place = Place { line: chunk.line, document: at + 1, item: None };
        match document.map_err(|error| syntax_error(chunk, &error, collector))? {
            Document::Other(Value::Null) => {}
            Document::Other(value) => collector.stray(place, &value),
            Document::Mapping(entry) => collector.entry(place, entry, &Parent::default()),
        }
    }
    Ok(())
}

type Parsed = Result<Document, serde_saphyr::Error>;

/// Every document in its order. Parsing YAML is most of the time a plan takes, and documents are independent.
fn parse_all(chunks: &[Chunk<'_>]) -> Vec<Parsed> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = chunks.len().div_ceil(threads).max(DOCUMENTS_PER_THREAD_MIN);
    if chunks.len() <= share {
        return chunks.iter().map(parse).collect();
    }
    thread::scope(|scope| {
        let spawn = |part| {
            let work = move || -> Vec<Parsed> { <[Chunk<'_>]>::iter(part).map(parse).collect() };
            let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
            (part, thread)
        };
        let running: Vec<_> = chunks.chunks(share).map(spawn).collect();
        // A thread that the system would not start, or that died, costs time and nothing else.
        let joined = running.into_iter().map(|(part, thread)| match thread.map(|thread| thread.join()) {
            Ok(Ok(parsed)) => parsed,
            Ok(Err(_)) | Err(_) => part.iter().map(parse).collect(),
        });
        joined.flatten().collect()
    })
}

fn parse(chunk: &Chunk<'_>) -> Parsed {
    // Only aliases can make a document grow. Where there may be some, measure before keeping anything:
    // a few lines of YAML can ask for many gigabytes.
    if chunk.text.contains('&') && chunk.text.contains('*') {
        let allowance = Allowance::of(chunk.text);
        serde_saphyr::with_deserializer_from_str_with_options(chunk.text, options(), |yaml| {
            Careful(&allowance).deserialize(yaml)
        })?;
    }
    let mut document: Document = serde_saphyr::from_str_with_options(chunk.text, options())?;
    if let Document::Mapping(Entry { items: Some(ListItems::Each(items)), .. }) = &mut document {
        items.iter_mut().for_each(|(line, _)| *line = (chunk.first_line + *line).saturating_sub(1));
    }
    Ok(document)
}

/// Sizes are free, because the input is already in memory and bounded; growth and nesting are not.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_total_comment_bytes: usize::MAX,
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_buffered_comment_events: usize::MAX,
            // One anchor with many aliases is how people share labels; growth is measured above.
            enforce_alias_anchor_ratio: false,
        },
        emit_comments: false,
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

fn syntax_error(chunk: &Chunk<'_>, error: &serde_saphyr::Error, collector: &Collector<'_>) -> LoadError {
    let location = error.location();
    let line = location.map_or(0, |location| location.line() as usize);
    LoadError::Syntax {
        source_name: collector.source().clone(),
        line: if line == 0 { chunk.line } else { chunk.first_line + line - 1 },
        column: location.map_or(1, |location| location.column().max(1) as usize),
        format: "YAML",
        message: one_line(&UserMessageFormatter.format_message(error)),
    }
}

/// One document. A mapping's `items` are kept apart with their lines.
enum Document {
    Mapping(Entry),
    Other(Value),
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

/// Forwards everything but the one shape that a visitor is about to plain values.
macro_rules! other_shapes {
    ($wrap:expr) => {
        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok($wrap(Value::Null))
        }
        fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Self::Value, E> {
            Ok($wrap(value.into()))
        }
        fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
            Ok($wrap(value.into()))
        }
        fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
            Ok($wrap(value.into()))
        }
        fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Self::Value, E> {
            Ok($wrap(value.into()))
        }
        fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Self::Value, E> {
            Ok($wrap(value.into()))
        }
    };
}

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    other_shapes!(Document::Other);

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Document, A::Error> {
        Value::deserialize(value::SeqAccessDeserializer::new(items)).map(Document::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Document, A::Error> {
        let mut fields = Map::new();
        let mut items = None;
        while let Some(key) = entries.next_key::<String>()? {
            match key == "items" {
                true => items = Some(entries.next_value::<ListItems>()?),
                false => drop(fields.insert(key, entries.next_value()?)),
            }
        }
        Ok(Document::Mapping(Entry { fields, items }))
    }
}

impl<'de> Deserialize<'de> for ListItems {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemsVisitor)
    }
}

struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = ListItems;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    other_shapes!(ListItems::NotAList);

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ListItems, A::Error> {
        let mut found = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Value>>()? {
            found.push((item.referenced.line() as usize, item.value));
        }
        Ok(ListItems::Each(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<ListItems, A::Error> {
        Value::deserialize(value::MapAccessDeserializer::new(entries)).map(ListItems::NotAList)
    }
}
