//! The one binary, `conductor`: it reads arguments, calls the libraries and prints. It decides nothing.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 done; 2 usage or input error; 1 for
//! simulations that find changes, gates that fail, differences, and a running controller that cannot continue; 3 and 4
//! are the simulator's. A reader that closes the pipe, as `head` does, ends the program quietly.

mod abandon;
mod adapters;
mod args;
mod cluster;
mod crds;
mod databases;
mod demo;
mod diff;
mod explain;
mod fields;
mod get;
mod grant;
mod import;
mod output;
mod readable;
#[cfg(test)]
mod reference;
mod run;
mod sanitize;
mod servers;
mod sim;
mod table;
mod up;

use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = args::Arguments::parse();
    let done = match arguments.command {
        args::Command::Up(arguments) => up::up(&arguments),
        args::Command::Demo => demo::demo(),
        args::Command::Run(arguments) => run::run(&arguments),
        args::Command::Rotate(arguments) => databases::rotate(&arguments),
        args::Command::Undelete(arguments) => databases::undelete(&arguments),
        args::Command::Get(arguments) => get::get(&arguments),
        args::Command::Explain { what: args::ExplainWhat::Claim(arguments) } => explain::claim(&arguments),
        args::Command::Import(arguments) => import::import(&arguments),
        args::Command::Abandon(arguments) => abandon::abandon(&arguments),
        args::Command::Diff { what: args::DiffWhat::Class(arguments) } => {
            return exit(diff::class(&arguments));
        }
        args::Command::Crds(arguments) => crds::print(&arguments),
        args::Command::Grant(arguments) => grant::print(&arguments),
        args::Command::Servers(arguments) => servers::print(&arguments),
        args::Command::Sim { command } => return exit(sim::run(&command)),
    };
    exit(done.map(|()| 0))
}

fn exit(done: anyhow::Result<u8>) -> ExitCode {
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::diagnostic(&format!("error: {error:#}"));
            ExitCode::from(code(&error))
        }
    }
}

/// 1 if a running controller cannot continue and a restart may help; 2 if a restart would not help.
fn code(error: &anyhow::Error) -> u8 {
    use conductor_controller::Error;
    if error.is::<demo::Unexpected>() {
        return 1;
    }
    match error.downcast_ref::<Error>() {
        Some(Error::LeaseLost { .. } | Error::PartEnded { .. }) => 1,
        Some(Error::Listen { .. } | Error::List { .. } | Error::Refused { .. }) | None => 2,
    }
}
