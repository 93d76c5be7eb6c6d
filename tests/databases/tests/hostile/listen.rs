//! A server's own log of statements, read back; and statements split as a server splits them.

use conductor_sql_plan::sql::Dialect;

/// The statements in a server's log, each as it stands there.
pub fn heard(dialect: Dialect, log: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_statement = false;
    for line in log.trim_end_matches('\n').split('\n') {
        let begun = match dialect {
            Dialect::Postgresql => line.split_once("LOG:  statement: ").map(|(_, text)| text),
            Dialect::Mariadb | Dialect::Mysql => line.split_once(" Query\t").map(|(_, text)| text),
        };
        match begun {
            Some(text) => {
                found.push(text.to_owned());
                is_statement = true;
            }
            None if is_statement && is_rest(dialect, line) => {
                if let Some(last) = found.last_mut() {
                    last.push('\n');
                    last.push_str(line.strip_prefix('\t').unwrap_or(line));
                }
            }
            None => is_statement = false,
        }
    }
    if dialect == Dialect::Postgresql {
        found.retain(|text| !text.starts_with("SELECT 1"));
    }
    found
}

/// Whether a line goes on with the statement before it.
fn is_rest(dialect: Dialect, line: &str) -> bool {
    match dialect {
        Dialect::Postgresql => line.starts_with('\t'),
        Dialect::Mariadb | Dialect::Mysql => {
            !["Connect\t", "Quit\t", "Init DB\t", "Prepare\t", "Reset"].iter().any(|verb| line.contains(verb))
        }
    }
}

/// Statements with everything in quotes, and every number, taken out: what is left is structure.
///
/// # Errors
/// A quote is not closed.
pub fn structure(dialect: Dialect, text: &str) -> Result<String, String> {
    let mut left = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_open = c == '\'' || c == '"' || (c == '`' && dialect != Dialect::Postgresql);
        match c {
            c if c.is_ascii_digit() && left.ends_with('#') => {}
            c if c.is_ascii_digit() => left.push('#'),
            c if !is_open => left.push(c),
            c => {
                let escapes = c == '\'' && (dialect != Dialect::Postgresql || left.ends_with('E'));
                skip_quoted(&mut chars, c, escapes)
                    .ok_or_else(|| format!("a quote is not closed: {text}"))?;
                left.push('?');
            }
        }
    }
    Ok(left.replace(" E?", "?"))
}

fn skip_quoted(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    quote: char,
    escapes: bool,
) -> Option<()> {
    loop {
        match chars.next()? {
            '\\' if escapes => drop(chars.next()),
            end if end == quote && chars.peek() == Some(&quote) => drop(chars.next()),
            end if end == quote => return Some(()),
            _ => {}
        }
    }
}
