//! YAML text to objects, document by document. Items of a list keep their own line numbers.

use super::{
    LoadError, LoadFailure,
    error::one_line,
    object::{Collector, Entry, ListItems, Location, Parent},
    split::{Chunk, documents},
    value::{Allowance, DEPTH_MAX, Guarded},
};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor, value};
use serde_json::{Map, Value};
use serde_saphyr::{MessageFormatter, Options, Spanned, UserMessageFormatter};
use std::{fmt, thread};

/// Fewer documents than this are not worth a thread.
const DOCUMENTS_PER_THREAD_MIN: usize = 500;

/// Enough for the deepest allowed document in an unoptimised build.
const STACK_BYTES: usize = 16 << 20;

/// Reads every document of the stream.
pub(super) fn read(text: &str, collector: &mut Collector<'_>) -> Result<(), LoadError> {
    let chunks = documents(text);
    for (at, (chunk, document)) in chunks.iter().zip(parse_all(&chunks)).enumerate() {
        let location = Location { line: chunk.line, document: at + 1, item: None };
        match document.map_err(|error| syntax_error(chunk, &error, collector))? {
            Document::Other(Value::Null) => {}
            Document::Other(value) => collector.stray(location, &value),
            Document::Mapping(entry) => collector.entry(location, entry, &Parent::default()),
        }
    }
    Ok(())
}

type Parsed = Result<Document, serde_saphyr::Error>;

/// Parses documents in parallel, in order. YAML parsing dominates the time of a plan.
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
        // If a thread cannot start or panics, parse its part here.
        let joined = running.into_iter().map(|(part, thread)| match thread.map(|thread| thread.join()) {
            Ok(Ok(parsed)) => parsed,
            Ok(Err(_)) | Err(_) => part.iter().map(parse).collect(),
        });
        joined.flatten().collect()
    })
}

fn parse(chunk: &Chunk<'_>) -> Parsed {
    // Only aliases can make a document grow, to gigabytes from a few lines. Measure before keeping anything.
    if chunk.text.contains('&') && chunk.text.contains('*') {
        let allowance = Allowance::of(chunk.text);
        serde_saphyr::with_deserializer_from_str_with_options(chunk.text, options(), |yaml| {
            Guarded(&allowance).deserialize(yaml)
        })?;
    }
    let mut document: Document = serde_saphyr::from_str_with_options(chunk.text, options())?;
    if let Document::Mapping(Entry { items: Some(ListItems::Each(items)), .. }) = &mut document {
        items.iter_mut().for_each(|(line, _)| *line = (chunk.first_line + *line).saturating_sub(1));
    }
    Ok(document)
}

/// Limits on growth and nesting only: the input itself is in memory already.
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
            // One anchor with many aliases is normal for labels; growth is measured above.
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
    let line = if line == 0 { chunk.line } else { chunk.first_line + line - 1 };
    let column = location.map_or(1, |location| location.column().max(1) as usize);
    let message = one_line(&UserMessageFormatter.format_message(error));
    LoadFailure::Syntax { format: "YAML", message }.at(collector.source(), line, Some(column))
}

/// One document. A mapping's `items` are separate, with their lines.
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

/// Converts every shape but the visitor's own to a plain value.
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
