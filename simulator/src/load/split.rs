//! Splits a YAML stream into documents by lines, so that each keeps its line numbers and is parsed by itself. A line that
//! begins with `---` or `...` cannot be content anywhere in YAML, block scalars included.

/// A document's text and line numbers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    /// The text with directives and marker.
    pub(super) text: &'a str,
    /// Line of the text's first character, from 1.
    pub(super) first_line: usize,
    /// Line of the first content, from 1.
    pub(super) line: usize,
}

/// Documents with content; without empty ones and those with only comments.
pub(super) fn documents(stream: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let mut open = Open::default();
    let mut offset = 0;
    for (at, line) in stream.split_inclusive('\n').enumerate() {
        let number = at + 1;
        // Directives and comments before the first marker belong to the document it starts.
        if is_marker(line, "---") && (open.content.is_some() || open.marked) {
            open.cut(stream, offset, number, &mut chunks);
        }
        open.see(line, number);
        offset += line.len();
        if is_marker(line, "...") {
            open.cut(stream, offset, number + 1, &mut chunks);
        }
    }
    open.cut(stream, offset, 0, &mut chunks);
    chunks
}

/// The document being read.
struct Open {
    start: usize,
    first_line: usize,
    content: Option<usize>,
    marked: bool,
}

impl Default for Open {
    fn default() -> Self {
        Open { start: 0, first_line: 1, content: None, marked: false }
    }
}

impl Open {
    fn see(&mut self, line: &str, number: usize) {
        let rest = match is_marker(line, "---") {
            true => {
                self.marked = true;
                &line[3..]
            }
            false => line,
        };
        let rest = rest.trim_start();
        let silent = rest.is_empty()
            || rest.starts_with('#')
            || is_marker(line, "...")
            || (!self.marked && self.content.is_none() && line.starts_with('%'));
        if !silent {
            self.content.get_or_insert(number);
        }
    }

    fn cut<'a>(&mut self, stream: &'a str, end: usize, next_line: usize, chunks: &mut Vec<Chunk<'a>>) {
        if let Some(line) = self.content {
            chunks.push(Chunk { text: &stream[self.start..end], first_line: self.first_line, line });
        }
        *self = Open { start: end, first_line: next_line, content: None, marked: false };
    }
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

#[cfg(test)]
mod tests {
    use super::documents;

    #[test]
    fn cuts_at_markers_and_keeps_lines() {
        let cases: &[(&str, &[(usize, &str)])] = &[
            ("", &[]),
            ("\n# only a comment\n", &[]),
            ("a: 1", &[(1, "a: 1")]),
            ("a: 1\n---\nb: 2\n", &[(1, "a: 1\n"), (3, "---\nb: 2\n")]),
            ("---\n---\n---\nb: 2\n", &[(4, "---\nb: 2\n")]),
            ("---\r\na: 1\r\n---\r\nb: 2\r\n", &[(2, "---\r\na: 1\r\n"), (4, "---\r\nb: 2\r\n")]),
            ("# first\n---\na: 1\n", &[(3, "# first\n---\na: 1\n")]),
            ("%YAML 1.2\n---\na: 1\n", &[(3, "%YAML 1.2\n---\na: 1\n")]),
            ("a: 1\n...\n%YAML 1.2\n---\nb: 2\n", &[(1, "a: 1\n...\n"), (5, "%YAML 1.2\n---\nb: 2\n")]),
            ("--- {a: 1}\n--- {b: 2}", &[(1, "--- {a: 1}\n"), (2, "--- {b: 2}")]),
            ("a: |\n  x\n  ---\n  y\n---\nb: 2", &[(1, "a: |\n  x\n  ---\n  y\n"), (6, "---\nb: 2")]),
            ("---x: 1\n----\n", &[(1, "---x: 1\n----\n")]),
            ("...\n...\na: 1\n", &[(3, "a: 1\n")]),
        ];
        for (stream, expected) in cases {
            let found: Vec<_> = documents(stream).iter().map(|chunk| (chunk.line, chunk.text)).collect();
            assert_eq!(&found, expected, "{stream:?}");
        }
    }

    #[test]
    fn every_chunk_knows_its_first_line() {
        let stream = "# c\n\n---\na: 1\n...\n\n---\nb: 1\n---\nc: 1\n";
        for chunk in documents(stream) {
            let start = chunk.text.as_ptr() as usize - stream.as_ptr() as usize;
            assert_eq!(chunk.first_line, stream[..start].matches('\n').count() + 1);
        }
    }
}
