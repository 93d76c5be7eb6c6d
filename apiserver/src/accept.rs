//! What a client wants to be answered with: JSON or YAML, an object as it is, as a row of a table, or only its
//! metadata. Protocol buffers and CBOR are never answered with: every client of Kubernetes also reads JSON.

use super::status::Status;

const KNOWN: [&str; 3] = ["application/json", "application/yaml", "application/json;stream=watch"];

/// How text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Yaml,
}

/// What becomes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Whole,
    Table,
    Metadata,
    /// Discovery of all groups at once.
    Discovery,
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub encoding: Encoding,
    pub shape: Shape,
}

impl Wanted {
    pub const JSON: Wanted = Wanted { encoding: Encoding::Json, shape: Shape::Whole };

    /// Reads an Accept header; `shapes` are those that this answer can have.
    pub fn read(accept: Option<&str>, shapes: &[Shape]) -> Result<Wanted, Status> {
        let Some(accept) = accept.filter(|text| !text.trim().is_empty()) else { return Ok(Wanted::JSON) };
        let mut ranges: Vec<(f32, Range<'_>)> = accept.split(',').map(Range::read).collect();
        ranges.sort_by(|a, b| b.0.total_cmp(&a.0));
        let found = ranges.into_iter().find_map(|(_, range)| range.wanted(shapes));
        found.ok_or_else(|| Status::not_acceptable(&KNOWN))
    }
}

/// One entry of an Accept header.
struct Range<'a> {
    media: &'a str,
    shape: Option<&'a str>,
    group: &'a str,
    version: &'a str,
}

impl<'a> Range<'a> {
    fn read(text: &'a str) -> (f32, Range<'a>) {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Range { media: parts.next().unwrap_or(""), shape: None, group: "", version: "" };
        let mut quality = 1.0;
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim() {
                "as" => range.shape = Some(value.trim()),
                "g" => range.group = value.trim(),
                "v" => range.version = value.trim(),
                "q" => quality = value.trim().parse().unwrap_or(0.0),
                _ => {}
            }
        }
        (quality, range)
    }

    fn wanted(&self, shapes: &[Shape]) -> Option<Wanted> {
        let encoding = match self.media {
            "application/json" | "application/*" | "*/*" => Encoding::Json,
            "application/yaml" => Encoding::Yaml,
            _ => return None,
        };
        let shape = match (self.shape, self.group, self.version) {
            (None, ..) => Shape::Whole,
            (Some("Table"), "meta.k8s.io", "v1" | "v1beta1") => Shape::Table,
            (
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                "meta.k8s.io",
                "v1" | "v1beta1",
            ) => Shape::Metadata,
            (Some("APIGroupDiscoveryList"), "apidiscovery.k8s.io", "v2") => Shape::Discovery,
            _ => return None,
        };
        (shape == Shape::Whole || shapes.contains(&shape)).then_some(Wanted { encoding, shape })
    }
}

#[test]
fn the_first_that_can_be_had_is_taken() {
    const SHAPES: [Shape; 2] = [Shape::Table, Shape::Metadata];
    let read = |text| Wanted::read(Some(text), &SHAPES).map(|wanted| (wanted.encoding, wanted.shape)).ok();
    for (text, expected) in [
        ("*/*", Some((Encoding::Json, Shape::Whole))),
        ("application/vnd.kubernetes.protobuf, application/json", Some((Encoding::Json, Shape::Whole))),
        (
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            Some((Encoding::Json, Shape::Table)),
        ),
        ("application/json;q=0.5, application/yaml", Some((Encoding::Yaml, Shape::Whole))),
        (
            "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2,application/json",
            Some((Encoding::Json, Shape::Whole)),
        ),
        ("application/vnd.kubernetes.protobuf", None),
        ("text/html", None),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}
