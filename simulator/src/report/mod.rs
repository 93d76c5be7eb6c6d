//! Reports: one self-contained HTML page, no network, dark where the reader is, readable on a phone. Everything in it
//! comes from documents that are printed elsewhere as JSON; nothing is computed here but the charts.

mod chart;
mod pages;

pub use pages::{class_impact, comparison, gate, plan, replay, what_if};

use k8s_openapi::jiff::Timestamp;
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use serde::Serialize;

/// Most rows of a table; a browser shows no more without complaint.
const ROWS_MAX: usize = 5_000;

/// What a page was made from, and by what. The caller says when its files were last changed: the same files give the same
/// page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// What was read.
    pub sources: Vec<Source>,
    /// The version of the program.
    pub version: String,
}

/// Something that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Its path, or what it is otherwise.
    pub name: String,
    /// When it was last changed, in milliseconds since the Unix epoch; absent where that is not known.
    pub changed: Option<i64>,
}

impl Provenance {
    /// In sentences, the most that a page says of itself.
    fn lines(&self) -> Vec<String> {
        let source = |source: &Source| {
            let changed = source.changed.and_then(|ms| Timestamp::from_millisecond(ms).ok());
            match changed {
                Some(at) => format!("{}, last changed {}", source.name, at.strftime("%Y-%m-%d %H:%M:%S UTC")),
                None => source.name.clone(),
            }
        };
        let read = self.sources.iter().map(|one| format!("Read: {}", source(one)));
        let by = Some(&self.version).filter(|version| !version.is_empty());
        read.chain(by.map(|version| format!("Made by conductor {version}"))).collect()
    }
}

/// What a page shows. What is empty is not shown.
#[derive(Default, Serialize)]
struct Page {
    title: String,
    subtitle: String,
    verdict: Option<Told>,
    tiles: Vec<Tile>,
    #[serde(skip)]
    charts: Vec<(String, String)>,
    edits: Vec<String>,
    judged: Vec<JudgedRow>,
    tables: Vec<Table>,
    made: Vec<String>,
    footer: String,
}

#[derive(Serialize)]
struct Told {
    words: String,
    tone: &'static str,
}

#[derive(Serialize)]
struct Tile {
    label: &'static str,
    value: String,
    tone: &'static str,
    note: Option<String>,
}

#[derive(Serialize)]
struct JudgedRow {
    name: String,
    word: &'static str,
    tone: &'static str,
    matched: usize,
    failures: Vec<String>,
}

/// A table with a search field and a button for each word.
#[derive(Serialize)]
struct Table {
    id: &'static str,
    title: &'static str,
    head: Vec<&'static str>,
    filters: Vec<Filter>,
    rows: Vec<Row>,
    /// How many rows there are, where not all are shown.
    of: Option<String>,
}

#[derive(Serialize)]
struct Filter {
    word: String,
    count: String,
}

#[derive(Serialize)]
struct Row {
    word: String,
    cells: Vec<Cell>,
}

#[derive(Default, Serialize)]
struct Cell {
    text: String,
    tone: &'static str,
    rule: bool,
    more: Vec<String>,
}

impl Cell {
    fn new(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    fn toned(text: impl Into<String>, tone: &'static str) -> Cell {
        Cell { text: text.into(), tone, ..Cell::default() }
    }

    fn rule(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), rule: true, ..Cell::default() }
    }
}

impl Table {
    fn new(id: &'static str, title: &'static str, head: &[&'static str], rows: Vec<Row>) -> Table {
        let mut words: Vec<(String, usize, usize)> = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let shown = usize::from(at < ROWS_MAX);
            match words.iter_mut().find(|(word, ..)| *word == row.word) {
                Some((_, all, of_shown)) => (*all, *of_shown) = (*all + 1, *of_shown + shown),
                None => words.push((row.word.clone(), 1, shown)),
            }
        }
        let of = (rows.len() > ROWS_MAX).then(|| chart::grouped(rows.len() as f64));
        let rows: Vec<Row> = rows.into_iter().take(ROWS_MAX).collect();
        let filter = |(word, all, shown): (String, usize, usize)| Filter {
            word,
            count: match all == shown {
                true => chart::grouped(all as f64),
                false => format!("{} of {}", chart::grouped(shown as f64), chart::grouped(all as f64)),
            },
        };
        // With one word there is nothing to choose.
        let filters = if words.len() > 1 { words.into_iter().map(filter).collect() } else { Vec::new() };
        Table { id, title, head: head.to_vec(), filters, rows, of }
    }
}

/// A page as HTML.
///
/// # Errors
/// The template's, which is ours and tested.
fn render(page: Page, made: &Provenance) -> Result<String, String> {
    let page = &Page { made: made.lines(), ..page };
    let mut environment = Environment::new();
    // The name's ending switches escaping on.
    environment.add_template("page.html", include_str!("page.html")).map_err(|e| e.to_string())?;
    let charts: Vec<Value> = page
        .charts
        .iter()
        .map(|(title, svg)| context! { title => title, svg => Value::from_safe_string(svg.clone()) })
        .collect();
    let template = environment.get_template("page.html").map_err(|e| e.to_string())?;
    template.render(context! { charts => charts, ..Value::from(Serde(page)) }).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: usize) -> Vec<Row> {
        let row = |at: usize| Row {
            word: if at.is_multiple_of(2) { "even" } else { "odd" }.to_owned(),
            cells: vec![Cell::new(format!("row-{at}"))],
        };
        (0..count).map(row).collect()
    }

    fn page_of(count: usize) -> String {
        let page = Page { tables: vec![Table::new("t", "Rows", &["Row"], rows(count))], ..Page::default() };
        render(page, &Provenance::default()).expect("our own template")
    }

    #[test]
    fn rows_that_are_left_out_are_counted_above_the_table() {
        let whole = page_of(ROWS_MAX);
        assert!(!whole.contains("of 5,000") && !whole.contains("-o json"), "all of them are shown");
        let cut = page_of(7_312);
        let note = cut.find("The first 5,000 of 7,312 rows").expect("what is left out is said");
        assert!(note < cut.find("row-0<").expect("there are rows"), "before the rows");
        assert!(cut.contains("2,500 of 3,656"), "a filter says of how many it chooses");
        assert!(cut.contains("Nothing matches among the rows shown."));
    }

    #[test]
    fn a_page_says_what_it_was_made_from_and_by_what() {
        let source = |name: &str, changed| Source { name: name.to_owned(), changed };
        let made = Provenance {
            sources: vec![source("prod.rec", Some(1_704_300_000_000)), source("standard input", None)],
            version: "1.2.3".to_owned(),
        };
        let page = render(Page::default(), &made).expect("our own template");
        for line in [
            "Read: prod.rec, last changed 2024-01-03 16:40:00 UTC",
            "Read: standard input",
            "Made by conductor 1.2.3",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
    }
}
