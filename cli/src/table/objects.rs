//! Objects of a cluster, one per row, with messages in the last column. Nothing is cut and no word is broken: on a terminal
//! the last column wraps at spaces; if that leaves it too narrow, the least important columns are dropped, then the message
//! moves to its own lines. Without a terminal each row is one line, for grep and awk.

use crate::{output, sanitize};
use std::io::{self, Write};

/// Spaces between two columns.
const GAP: usize = 2;
/// Least width in which a message is readable.
const MESSAGE_MIN: usize = 40;
/// Indent of a message on its own lines.
const INDENT: usize = 4;

/// A column: its header, and the order in which a narrow terminal drops it; 0 always stays.
pub type Column = (&'static str, u8);

/// Writes the table at the width of the terminal.
pub fn write(out: &mut impl Write, columns: &[Column], rows: &[Vec<String>]) -> io::Result<()> {
    out.write_all(text(columns, rows, terminal_width(), output::is_colourful()).as_bytes())
}

/// The width of the terminal, if there is one. Some terminals do not know their width and report 0.
fn terminal_width() -> Option<usize> {
    comfy_table::Table::new().width().filter(|width| *width > 0).map(usize::from)
}

fn text(columns: &[Column], rows: &[Vec<String>], width: Option<usize>, bold: bool) -> String {
    let clean = |row: &Vec<String>| row.iter().map(|cell| sanitize::line(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(clean).collect();
    let last = columns.len().saturating_sub(1);
    let widest = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| count(cell));
        cells.chain([count(columns[at].0)]).max().unwrap_or_default()
    };
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let before = |shown: &[usize]| -> usize {
        shown.iter().filter(|at| **at != last).map(|at| widest(*at) + GAP).sum()
    };
    let needed = widest(last).min(MESSAGE_MIN);
    let fits = |shown: &[usize]| width.is_none_or(|width| before(shown) + needed <= width);
    let mut droppable: Vec<usize> =
        shown.iter().copied().filter(|at| *at != last && columns[*at].1 > 0).collect();
    droppable.sort_by_key(|at| columns[*at].1);
    for at in droppable {
        if !fits(&shown) {
            shown.retain(|kept| *kept != at);
        }
    }
    let stacked = !fits(&shown);
    let room = width
        .map(|width| if stacked { width - INDENT.min(width) } else { width - before(&shown).min(width) });
    let mut text = String::new();
    let header: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    for (at, row) in [&header].into_iter().chain(&rows).enumerate() {
        let is_header = at == 0;
        let cell = |at: &usize| row.get(*at).map_or("", String::as_str);
        let mut line: String = shown
            .iter()
            .filter(|at| **at != last)
            .map(|at| format!("{:<1$}", cell(at), widest(*at) + GAP))
            .collect();
        let message = wrap(cell(&last), room);
        let indent = if stacked { INDENT } else { before(&shown) };
        for (at, part) in message.iter().enumerate() {
            if at > 0 || stacked {
                line = format!("{}\n{:indent$}", line.trim_end(), "");
            }
            line.push_str(part);
        }
        let line = line.trim_end();
        text.push_str(&if is_header && bold {
            format!("\u{1b}[1m{line}\u{1b}[0m\n")
        } else {
            format!("{line}\n")
        });
    }
    text
}

fn count(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a text at spaces into lines of at most `room` characters; a longer word has its own line.
fn wrap(text: &str, room: Option<usize>) -> Vec<String> {
    let Some(room) = room.filter(|room| count(text) > *room) else { return vec![text.to_owned()] };
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if count(line) + 1 + count(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 6] =
        [("CLAIM", 0), ("PHASE", 0), ("RESOURCE", 3), ("CLASS", 2), ("AGE", 1), ("MESSAGE", 0)];
    const MESSAGE: &str = "NoMatch: 0/214 resources fit: 120 class, 71 version, 23 capacity; 0/1 classes fit: 1 class \
                       (class local-postgresql has no template to make one from), and conductor.io/a-word-that-is-long";

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 6]| cells.map(str::to_owned).to_vec();
        vec![
            row(["team/warehouse", "Pending", "-", "local-postgresql", "3m", MESSAGE]),
            row([
                "team/db",
                "Bound",
                "local-postgresql-0d5be2a1-4f3c-4a5b-9a55-1de0a6d2c8e1",
                "-",
                "3m",
                "-",
            ]),
        ]
    }

    #[test]
    fn tables_fit_the_screen_and_break_no_word_or_reason() {
        for width in 40..200 {
            let text = text(&COLUMNS, &rows(), Some(width), false);
            let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(whole.contains(MESSAGE), "at {width}:\n{text}");
            // The one word that is longer than the screen keeps its line.
            let wide = text.lines().find(|line| count(line) > width && !line.contains("a-word-that-is-long"));
            assert_eq!(wide, None, "at {width}:\n{text}");
        }
    }

    #[test]
    fn a_narrow_screen_shows_what_matters_most() {
        let header =
            |width| text(&COLUMNS, &rows(), width, false).lines().next().unwrap_or_default().to_owned();
        let words = |width| header(width).split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        assert_eq!(words(Some(180)), "CLAIM PHASE RESOURCE CLASS AGE MESSAGE");
        assert_eq!(words(Some(140)), "CLAIM PHASE RESOURCE CLASS MESSAGE");
        assert_eq!(words(Some(80)), "CLAIM PHASE MESSAGE");
    }

    #[test]
    fn without_a_terminal_each_row_is_one_line() {
        let text = text(&COLUMNS, &rows(), None, false);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.lines().any(|line| line.ends_with(MESSAGE)), "{text}");
    }

    #[test]
    fn only_the_header_is_bold_and_control_characters_are_shown() {
        let rows = vec![vec!["a\u{1b}[2J".to_owned(), "b".to_owned()]];
        let text = text(&[("NAME", 0), ("MESSAGE", 0)], &rows, None, true);
        assert!(text.starts_with("\u{1b}[1mNAME"), "{text:?}");
        assert_eq!(text.matches('\u{1b}').count(), 2, "{text:?}");
    }
}
