//! The reference of the command line: `docs/reference/cli.md` is the help of every command, as the program prints it.

use crate::args::Arguments;
use clap::{Command, CommandFactory};
use std::path::Path;

/// Wide enough for the examples, narrow enough for a page.
const WIDTH: usize = 100;
const HEADER: &str = "# Command line

Generated from `--help` by `make references`. Do not edit.
";

fn render() -> String {
    let mut program = Arguments::command().term_width(WIDTH);
    program.build();
    let mut page = HEADER.to_owned();
    add(&program, &mut page);
    page
}

/// Adds a command, then those below it.
fn add(command: &Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let help = command.clone().term_width(WIDTH).render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!("\n## {name}\n\n```\n{}\n```\n", lines.join("\n").trim_end()));
    let below = command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help");
    below.for_each(|command| add(command, page));
}

#[test]
fn the_reference_is_what_help_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/cli.md");
    let page = render();
    if std::env::var_os("UPDATE_REFERENCES").is_some() {
        std::fs::write(&path, &page).expect("docs/reference can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/reference/cli.md is stale: run `make references`");
}
