//! JSON text to objects: one document, a sequence of documents, or JSON lines. The text is first cut into raw values, so
//! that items keep their line numbers and other kinds cost little.

use super::{
    LoadError, LoadFailure,
    error::one_line,
    object::{Collector, LISTS_MAX, Location, Parent, Shape},
    value::{Allowance, Guarded},
};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};
use std::fmt;

/// Reads every document of the text.
pub(super) fn read(text: &str, collector: &mut Collector<'_>) -> Result<(), LoadError> {
    let mut reader = Reader { lines: Lines { text, offset: 0, line: 1 }, collector };
    let stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    for (at, document) in stream.enumerate() {
        let document = document.map_err(|error| reader.syntax_error(text, &error))?;
        reader.value(
            document.get(),
            Position { document: at + 1, item: None, lists: 0 },
            &Parent::default(),
        )?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Position {
    document: usize,
    item: Option<usize>,
    lists: usize,
}

struct Reader<'a, 'c, 'o> {
    lines: Lines<'a>,
    collector: &'c mut Collector<'o>,
}

impl<'a> Reader<'a, '_, '_> {
    fn value(&mut self, text: &'a str, position: Position, parent: &Parent) -> Result<(), LoadError> {
        let location =
            Location { line: self.lines.of(text), document: position.document, item: position.item };
        if !text.starts_with('{') {
            let value = self.parse(text)?;
            if position.item.is_some() || !value.is_null() {
                self.collector.stray(location, &value);
            }
            return Ok(());
        }
        let fields: Fields<'a> =
            serde_json::from_str(text).map_err(|error| self.syntax_error(text, &error))?;
        let api_version = fields.find("apiVersion").map(|raw| self.parse(raw)).transpose()?;
        let kind = fields.find("kind").map(|raw| self.parse(raw)).transpose()?;
        let items = fields.find("items");
        match parent.shape(api_version.as_ref(), kind.as_ref(), items.map(|raw| raw.starts_with(['[', 'n'])))
        {
            Shape::List(parent) => self.items(items.unwrap_or("null"), location, position, &parent),
            Shape::Other(kind) => {
                self.collector.ignore(kind);
                Ok(())
            }
            shape @ (Shape::Read(_) | Shape::Broken(_)) => {
                let fields = self.fields(&fields)?;
                self.collector.shaped(location, shape, fields);
                Ok(())
            }
        }
    }

    fn items(
        &mut self,
        text: &'a str,
        location: Location,
        position: Position,
        parent: &Parent,
    ) -> Result<(), LoadError> {
        if position.lists >= LISTS_MAX {
            self.collector.too_many_lists(location);
            return Ok(());
        }
        self.collector.list();
        let items: Option<Vec<&RawValue>> =
            serde_json::from_str(text).map_err(|error| self.syntax_error(text, &error))?;
        for (at, item) in items.unwrap_or_default().into_iter().enumerate() {
            let position = Position { item: Some(at + 1), lists: position.lists + 1, ..position };
            self.value(item.get(), position, parent)?;
        }
        Ok(())
    }

    fn fields(&self, fields: &Fields<'a>) -> Result<Map<String, Value>, LoadError> {
        fields.0.iter().map(|(key, raw)| Ok((key.clone(), self.parse(raw.get())?))).collect()
    }

    fn parse(&self, text: &'a str) -> Result<Value, LoadError> {
        let allowance = Allowance::of(text);
        let mut json = serde_json::Deserializer::from_str(text);
        Guarded(&allowance).deserialize(&mut json).map_err(|error| self.syntax_error(text, &error))
    }

    /// Converts a position in `part` to one in the file.
    fn syntax_error(&self, part: &str, error: &serde_json::Error) -> LoadError {
        let (line, column) = self.lines.location(part);
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        let syntax = LoadFailure::Syntax { format: "JSON", message: one_line(message) };
        let before = if error.line() <= 1 { column - 1 } else { 0 };
        let (line, column) = (line + error.line().saturating_sub(1), before + error.column().max(1));
        syntax.at(self.collector.source(), line, Some(column))
    }
}

/// Counts lines onward from the last lookup: items come in order, so a file is counted once.
struct Lines<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    fn of(&mut self, part: &'a str) -> usize {
        let offset = self.offset(part);
        if offset < self.offset {
            (self.offset, self.line) = (0, 1);
        }
        self.line += newlines(&self.text[self.offset..offset]);
        self.offset = offset;
        self.line
    }

    fn location(&self, part: &str) -> (usize, usize) {
        let before = &self.text[..self.offset(part)];
        let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
        (newlines(before) + 1, column)
    }

    /// Offset in the text of `part`, a slice of it.
    fn offset(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize).min(self.text.len())
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// The fields of one object, values unparsed.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    fn find(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, raw)| raw.get())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor).map(Fields)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut seen = std::collections::BTreeSet::new();
        let mut fields = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom(format_args!("the key {key:?} is written twice")));
            }
            fields.push((key, entries.next_value()?));
        }
        Ok(fields)
    }
}
