//! Reports: one self-contained HTML page, no network, dark where the reader is, readable on a phone. Everything in it
//! comes from documents that are printed elsewhere as JSON; nothing is computed here but the charts.

mod chart;
mod pages;

pub use pages::{class_impact, comparison, gate, plan, replay, what_if};

use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use serde::Serialize;

/// Most rows of a table; a browser shows no more without complaint.
const ROWS_MAX: usize = 5_000;

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
    left: usize,
}

#[derive(Serialize)]
struct Filter {
    word: String,
    count: usize,
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
        let mut filters: Vec<Filter> = Vec::new();
        for row in &rows {
            match filters.iter_mut().find(|f| f.word == row.word) {
                Some(filter) => filter.count += 1,
                None => filters.push(Filter { word: row.word.clone(), count: 1 }),
            }
        }
        let left = rows.len().saturating_sub(ROWS_MAX);
        let rows = rows.into_iter().take(ROWS_MAX).collect();
        // With one word there is nothing to choose.
        let filters = if filters.len() > 1 { filters } else { Vec::new() };
        Table { id, title, head: head.to_vec(), filters, rows, left }
    }
}

/// A page as HTML.
///
/// # Errors
/// The template's, which is ours and tested.
fn render(page: &Page) -> Result<String, String> {
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
