//! The page on which every benchmark writes what it measured. Each owns one section and leaves the others as they
//! are, so that measuring one thing again does not lose the rest. What is measured, and how, is not known here.

use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

/// A section of the page, in the order in which people read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The engine alone.
    Engine,
    /// The simulator on a large cluster.
    Simulator,
    /// The engine beside the peers' own matching code.
    Peers,
    /// Everything, on a real API server.
    Live,
    /// The embedded API beside the real one.
    Apis,
}

impl Section {
    const ALL: [Section; 5] =
        [Section::Engine, Section::Simulator, Section::Peers, Section::Live, Section::Apis];

    fn name(self) -> &'static str {
        match self {
            Section::Engine => "engine",
            Section::Simulator => "simulator",
            Section::Peers => "peers",
            Section::Live => "live",
            Section::Apis => "apis",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Section::Engine => "The engine alone",
            Section::Simulator => "The simulator",
            Section::Peers => "Beside the peers' own code",
            Section::Live => "End to end on a real API server",
            Section::Apis => "The embedded API beside the real one",
        }
    }

    fn bounds(self) -> (String, String) {
        let name = self.name();
        (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->\n"))
    }
}

/// Writes one section of the page anew: the command that measures it, the machine and the day, then `text`.
///
/// # Errors
/// When the page cannot be read or written.
pub fn write(page: &Path, section: Section, command: &str, text: &str) -> io::Result<()> {
    let old = match fs::read_to_string(page) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let body = format!("Measured by `{command}` on {day}. {}\n\n{}\n", machine(), text.trim_end());
    fs::write(page, replace(&old, section, &body))
}

/// The page with one section replaced.
fn replace(old: &str, section: Section, body: &str) -> String {
    let mut page = String::from(
        "# Benchmarks\n\nEvery section is written by the command that it names; the figures of a section come from one run.\n",
    );
    for each in Section::ALL {
        let kept = find(old, each);
        let body = if each == section { Some(body) } else { kept };
        if let Some(body) = body {
            let ((begin, end), title) = (each.bounds(), each.title());
            let _ = write!(page, "\n## {title}\n\n{begin}{body}{end}");
        }
    }
    page
}

fn find(page: &str, section: Section) -> Option<&str> {
    let (begin, end) = section.bounds();
    let (_, rest) = page.split_once(&begin)?;
    Some(rest.split_once(&end)?.0)
}

/// The machine, and how busy it was.
pub fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    format!("Machine: {cores} cores, {model}, load average {load}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_the_others_stay() {
        let one = replace("", Section::Live, "slow\n");
        let two = replace(&one, Section::Engine, "fast\n");
        let three = replace(&two, Section::Live, "faster\n");
        assert_eq!(find(&three, Section::Live), Some("faster\n"));
        assert_eq!(find(&three, Section::Engine), Some("fast\n"));
        assert_eq!(find(&three, Section::Peers), None);
        assert!(three.find("The engine alone") < three.find("End to end"));
    }
}
