//! A verdict as Markdown for a review comment, within the size limit of comments: failures first, then a count of the
//! lines that do not fit.

use super::document::Verdict;
use std::fmt::Write;

/// Maximum length: GitHub takes 65,536 characters, GitLab more.
pub const MARKDOWN_MAX: usize = 60_000;

/// Formats the verdict as Markdown.
pub fn markdown(verdict: &Verdict) -> String {
    let mut text = String::new();
    let name = if verdict.suite.is_empty() { "Gate" } else { &verdict.suite };
    let result = match (verdict.passed, verdict.inconclusive) {
        (true, _) => "passed",
        (false, true) => "inconclusive: there is no baseline yet",
        (false, false) => "failed",
    };
    let mark = if verdict.passed { "✅" } else { "❌" };
    let s = verdict.summary;
    let _ = writeln!(text, "### {mark} {}: {result}\n", escape(name));
    let _ = writeln!(
        text,
        "{} claims: {} bound, {} provision, {} pending, {} lost\n",
        s.claims, s.bound, s.provision, s.pending, s.lost
    );
    let mut blocks: Vec<String> = Vec::new();
    for judged in verdict.judged.iter().filter(|j| !j.passed) {
        let mut block = format!("**{}**\n\n", escape(&judged.name));
        for why in &judged.failures {
            let _ = writeln!(block, "- {}", escape(why));
        }
        if judged.more > 0 {
            let _ = writeln!(block, "- and {} more", judged.more);
        }
        blocks.push(block + "\n");
    }
    let changes = verdict.difference.iter().flat_map(|d| d.claims.iter().chain(&d.resources));
    let rows: Vec<String> = changes
        .map(|c| {
            let cell = |text: &Option<String>| escape(text.as_deref().unwrap_or("-"));
            format!(
                "| {} | {} | {} | {} |\n",
                escape(&c.name),
                cell(&c.before),
                cell(&c.after),
                cell(&c.cause)
            )
        })
        .collect();
    if !rows.is_empty() {
        blocks.push("| changed | before | after | why |\n|---|---|---|---|\n".to_owned());
        blocks.extend(rows);
        blocks.push("\n".to_owned());
    }
    let good: Vec<&str> = verdict.judged.iter().filter(|j| j.passed).map(|j| j.name.as_str()).collect();
    if !good.is_empty() {
        blocks.push(format!("<details><summary>{} passed</summary>\n\n", good.len()));
        blocks.extend(good.iter().map(|name| format!("- {}\n", escape(name))));
        blocks.push("\n</details>\n".to_owned());
    }
    let mut left = 0;
    for block in blocks {
        if left == 0 && text.len() + block.len() <= MARKDOWN_MAX {
            text.push_str(&block);
        } else {
            left += 1;
        }
    }
    if left > 0 {
        let _ = writeln!(text, "\n{left} more lines do not fit here; `-o json` prints all.");
    }
    text
}

/// Escapes Markdown, tables included.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' => escaped.extend(['\\', c]),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '@' => escaped.push_str("&#64;"),
            '\n' | '\r' => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}
