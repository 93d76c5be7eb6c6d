//! The loader on real files: directories, names, links and errors about missing files.

use conductor_simulator::load::{LoadError, LoadFailure, LoadOptions, load};
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/load").join(name)
}

fn error(name: &str) -> (LoadError, String) {
    let error = load(&[fixture(name)], &LoadOptions::default()).expect_err("the fixture is broken");
    let shown = error.to_string().replace(&*fixture("").to_string_lossy(), "");
    (error, shown)
}

#[test]
fn reads_a_directory_to_its_leaves_and_skips_hidden_and_other_files() {
    let loaded = load(&[fixture("tree")], &LoadOptions::default()).expect("the tree is good");
    let found: Vec<_> = loaded
        .objects
        .iter()
        .map(|loaded| {
            let name = loaded.object.metadata.name.as_deref().unwrap_or_default();
            let source = Path::new(&*loaded.source).file_name().expect("a file").to_string_lossy();
            format!("{name} from {source}:{}", loaded.line)
        })
        .collect();
    assert_eq!(found, ["first from a.yaml:1", "packed from c.yml.gz:1", "second from b.json:1"]);
    assert!(loaded.problems.is_empty() && loaded.ignored.is_empty());
}

#[test]
fn a_path_given_twice_changes_nothing() {
    let once = load(&[fixture("tree")], &LoadOptions::default()).expect("the tree is good");
    let paths = [fixture("tree/sub"), fixture("tree/a.yaml"), fixture("tree"), fixture("tree/a.yaml")];
    let twice = load(&paths, &LoadOptions::default()).expect("the tree is good");
    assert_eq!(once, twice);
}

#[test]
fn errors_name_the_file_the_line_and_the_fix() {
    assert_eq!(
        error("broken.json").1,
        "broken.json:2:13: not valid JSON: expected ident; fix the line or leave the file out"
    );
    assert_eq!(
        error("missing.yaml").1,
        "missing.yaml: no such file or directory; check the path, or use `-` for standard input"
    );
    assert!(matches!(error("nothing").0.failure, LoadFailure::NoManifests));
    assert_eq!(error("broken.json").0.line, Some(2));
    assert_eq!(error("missing.yaml").0.line, None);
}
