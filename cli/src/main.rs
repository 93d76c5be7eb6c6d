//! The one binary, `conductor`: it reads arguments, calls the libraries and prints. Nothing is decided here.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 done, 2 usage or input
//! error; 1 is kept for gates, and for a controller that was running and cannot go on. A reader that goes away,
//! as `head` does, ends the program quietly.

mod adapters;
mod args;
mod cluster;
mod crds;
mod databases;
mod explain;
mod get;
mod output;
mod run;
mod servers;
mod sim;
mod table;

use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = args::Arguments::parse();
    let done = match arguments.command {
        args::Command::Run(arguments) => run::run(&arguments),
        args::Command::Rotate(arguments) => databases::rotate(&arguments),
        args::Command::Undelete(arguments) => databases::undelete(&arguments),
        args::Command::Get(arguments) => get::get(&arguments),
        args::Command::Explain { what: args::ExplainWhat::Claim(arguments) } => explain::claim(&arguments),
        args::Command::Crds(arguments) => crds::print(&arguments),
        args::Command::Servers(arguments) => servers::print(&arguments),
        args::Command::Sim { command: args::Simulate::Plan(arguments) } => sim::plan(&arguments),
        args::Command::Sim { command: args::Simulate::Explain(arguments) } => sim::explain(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("error: {error:#}"));
            ExitCode::from(code(&error))
        }
    }
}

/// 1 where a controller that ran cannot go on and may be started again; 2 where it would not help.
fn code(error: &anyhow::Error) -> u8 {
    use conductor::live::Error;
    match error.downcast_ref::<Error>() {
        Some(Error::LeaseLost { .. } | Error::PartEnded { .. }) => 1,
        Some(Error::Listen { .. } | Error::List { .. } | Error::Connect(_)) | None => 2,
    }
}
