//! An administrator's own adapters: the files of a folder, which replace or extend the built-in ones. The engine parses
//! them; this file only reads the files.

use anyhow::{Context, Result};
use conductor::template::Adapters;
use std::path::{Path, PathBuf};

/// Extensions of adapter files; the folder may contain others.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// The built-in adapters, with the folder's over them.
///
/// # Errors
/// The folder or a file cannot be read, or a field of a file is invalid.
pub fn read(folder: &Path) -> Result<Adapters> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("--adapters {}", folder.display()))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.with_context(|| format!("--adapters {}", folder.display()))?;
    paths.retain(|path| is_adapter(path));
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        files.push((std::fs::read_to_string(&path).with_context(|| name.clone())?, name));
    }
    let own = Adapters::read(files.iter().map(|(text, name)| (name.as_str(), text.as_str())))?;
    Ok(Adapters::clone(&Adapters::builtin()).with(own))
}

/// Mounted ConfigMaps have hidden folders beside their files.
fn is_adapter(path: &Path) -> bool {
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    ENDINGS.contains(&text(path.extension()).as_str()) && !text(path.file_name()).starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::model::PartKind;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("it can be created");
        for (file, text) in files {
            std::fs::write(folder.path().join(file), text).expect("it can be written");
        }
        folder
    }

    #[test]
    fn an_administrators_adapters_replace_built_in_ones() {
        let own = "name: Ours\ngroup: postgresql.cnpg.io\nkind: Cluster\nready: object.status.ours\n";
        let new = "{name: New, group: example.org, kind: Box, ready: object.status.up}";
        let files = folder(&[("a.yaml", own), ("b.json", new), ("notes.txt", "x"), (".c.yaml", "x")]);
        let adapters = read(files.path()).expect("they can be used");
        let name = |group: &str, kind: &str| {
            adapters.find(&PartKind::new(format!("{group}/v1"), kind)).map(|adapter| adapter.name.clone())
        };
        assert_eq!(name("postgresql.cnpg.io", "Cluster").as_deref(), Some("Ours"));
        assert_eq!(name("example.org", "Box").as_deref(), Some("New"));
        assert_eq!(name("acid.zalan.do", "postgresql").as_deref(), Some("Zalando PostgreSQL"));
    }

    #[test]
    fn an_invalid_adapter_is_reported_with_file_and_field() {
        let good = "name: A\ngroup: a.org\nkind: A\n";
        for (text, message) in [
            ("name: A\nkind: A\n", "b.yaml: group: `` is missing: name the kind's API group"),
            ("name: A\ngroup: 7\nkind: A\n", "b.yaml: group: `` is neither a string nor a list of strings"),
            ("name: A\ngroup: b.org\n", "b.yaml: kind: `` is missing: name it"),
            (&format!("{good}redy: x\n"), "b.yaml: redy: `` is not known: use one of name, group, kind"),
            (&format!("{good}ready: true\n"), "b.yaml: ready: `` is not a string: write it in quotes"),
            (&format!("{good}ready: objct.x\n"), "b.yaml: ready: `objct.x` names objct, which is not known"),
            (
                &format!("{good}connection: {{password: x}}\n"),
                "b.yaml: connection.password: `` is in clear text",
            ),
            (&format!("{good}connection: {{a: '${{secret.a}}'}}\n"), "b.yaml: connection.a: `a` uses secret"),
            (good, "b.yaml: kind: `A.a.org` has two adapters: keep one"),
            ("{", "b.yaml: "),
            ("[]", "b.yaml: adapter: `` is not a map"),
        ] {
            let files = folder(&[("a.yaml", good), ("b.yaml", text)]);
            let error = format!("{:#}", read(files.path()).expect_err("it must not work"));
            assert!(error.contains(message), "{text:?}: {error}");
        }
        let error = format!("{:#}", read(Path::new("/nowhere")).expect_err("it must not work"));
        assert!(error.starts_with("--adapters /nowhere: "), "{error}");
    }
}
