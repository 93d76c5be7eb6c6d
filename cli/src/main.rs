//! The one binary, `conductor`: it reads arguments, calls the libraries and prints. Nothing is decided here.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 done, 2 usage or input
//! error; 1 is kept for gates. A reader that goes away, as `head` does, ends the program quietly.

mod args;
mod crds;
mod output;
mod sim;
mod table;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = args::Arguments::parse();
    let done = match arguments.command {
        args::Command::Crds(arguments) => crds::print(&arguments),
        args::Command::Sim { command: args::Simulate::Plan(arguments) } => sim::plan(&arguments),
        args::Command::Sim { command: args::Simulate::Explain(arguments) } => sim::explain(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}
