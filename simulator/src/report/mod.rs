//! Reports: self-contained HTML pages without network access, with dark mode, readable on a phone. They show documents
//! that are also printed as JSON; only the charts are computed here.

mod chart;
mod pages;

pub use pages::{class_impact, comparison, gate, plan, replay, what_if};

use k8s_openapi::jiff::Timestamp;
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use serde::Serialize;

/// Maximum rows of a table that browsers show without trouble.
const ROWS_MAX: usize = 5_000;

/// The sources of a page. Contains when files last changed instead of the current time, so that the same files give the
/// same page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The inputs.
    pub sources: Vec<Source>,
    /// The program's version.
    pub version: String,
}

/// An input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Its path or description.
    pub name: String,
    /// When it last changed, in milliseconds since the Unix epoch, if known.
    pub changed: Option<i64>,
}

impl Provenance {
    /// One sentence per input, and one for the program.
    fn lines(&self) -> Vec<String> {
        let source = |source: &Source| {
            let changed = source.changed.and_then(|ms| Timestamp::from_millisecond(ms).ok());
            match changed {
                Some(at) => format!("{}, last changed {}", source.name, at.strftime("%Y-%m-%d %H:%M:%S UTC")),
                None => source.name.clone(),
            }
        };
        let read = self.sources.iter().map(|one| format!("Source: {}", source(one)));
        let by = Some(&self.version).filter(|version| !version.is_empty());
        read.chain(by.map(|version| format!("Created by conductor {version}"))).collect()
    }
}

/// The parts of a page. Empty ones are left out.
#[derive(Default, Serialize)]
pub struct Page {
    title: String,
    subtitle: String,
    verdict: Option<Headline>,
    tiles: Vec<Tile>,
    #[serde(skip)]
    charts: Vec<(String, String)>,
    edits: Vec<String>,
    judged: Vec<CheckRow>,
    tables: Vec<Table>,
    made: Vec<String>,
    footer: String,
}

#[derive(Serialize)]
struct Headline {
    text: String,
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
struct CheckRow {
    name: String,
    result: &'static str,
    tone: &'static str,
    matched: usize,
    failures: Vec<String>,
}

/// A table with a search field and a filter button for each label.
#[derive(Serialize)]
struct Table {
    id: &'static str,
    title: &'static str,
    head: Vec<&'static str>,
    filters: Vec<Filter>,
    rows: Vec<Row>,
    /// Number of rows, if not all are shown.
    of: Option<String>,
}

#[derive(Serialize)]
struct Filter {
    label: String,
    count: String,
}

#[derive(Serialize)]
struct Row {
    label: String,
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
        let mut labels: Vec<(String, usize, usize)> = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let shown = usize::from(at < ROWS_MAX);
            match labels.iter_mut().find(|(label, ..)| *label == row.label) {
                Some((_, all, of_shown)) => (*all, *of_shown) = (*all + 1, *of_shown + shown),
                None => labels.push((row.label.clone(), 1, shown)),
            }
        }
        let of = (rows.len() > ROWS_MAX).then(|| chart::grouped(rows.len() as f64));
        let rows: Vec<Row> = rows.into_iter().take(ROWS_MAX).collect();
        let filter = |(label, all, shown): (String, usize, usize)| Filter {
            label,
            count: match all == shown {
                true => chart::grouped(all as f64),
                false => format!("{} of {}", chart::grouped(shown as f64), chart::grouped(all as f64)),
            },
        };
        // A single label filters nothing.
        let filters = if labels.len() > 1 { labels.into_iter().map(filter).collect() } else { Vec::new() };
        Table { id, title, head: head.to_vec(), filters, rows, of }
    }
}

impl Page {
    /// Renders the page as HTML.
    ///
    /// # Errors
    /// The template fails, which is a bug.
    pub fn html(self, made: &Provenance) -> Result<String, String> {
        let page = &Page { made: made.lines(), ..self };
        let mut environment = Environment::new();
        // The extension enables escaping.
        environment.add_template("page.html", include_str!("page.html")).map_err(|e| e.to_string())?;
        let chart = |(title, svg): &(String, String)| context! { title => title, svg => Value::from_safe_string(svg.clone()) };
        let charts: Vec<Value> = page.charts.iter().map(chart).collect();
        let template = environment.get_template("page.html").map_err(|e| e.to_string())?;
        template.render(context! { charts => charts, ..Value::from(Serde(page)) }).map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: usize) -> Vec<Row> {
        let row = |at: usize| Row {
            label: if at.is_multiple_of(2) { "even" } else { "odd" }.to_owned(),
            cells: vec![Cell::new(format!("row-{at}"))],
        };
        (0..count).map(row).collect()
    }

    fn page_of(count: usize) -> String {
        let page = Page { tables: vec![Table::new("t", "Rows", &["Row"], rows(count))], ..Page::default() };
        page.html(&Provenance::default()).expect("our own template")
    }

    #[test]
    fn rows_that_are_left_out_are_counted_above_the_table() {
        let whole = page_of(ROWS_MAX);
        assert!(!whole.contains("of 5,000") && !whole.contains("-o json"), "all of them are shown");
        let cut = page_of(7_312);
        let note = cut.find("The first 5,000 of 7,312 rows").expect("the number of rows is shown");
        assert!(note < cut.find("row-0<").expect("there are rows"), "before the rows");
        assert!(cut.contains("2,500 of 3,656"), "a filter counts all rows");
        assert!(cut.contains("Nothing matches among the rows shown."));
    }

    #[test]
    fn a_page_names_its_sources_and_the_program() {
        let source = |name: &str, changed| Source { name: name.to_owned(), changed };
        let made = Provenance {
            sources: vec![source("prod.rec", Some(1_704_300_000_000)), source("standard input", None)],
            version: "1.2.3".to_owned(),
        };
        let page = Page::default().html(&made).expect("our own template");
        for line in [
            "Source: prod.rec, last changed 2024-01-03 16:40:00 UTC",
            "Source: standard input",
            "Created by conductor 1.2.3",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
    }
}
