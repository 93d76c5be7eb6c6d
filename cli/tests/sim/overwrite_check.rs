//! Outputs never overwrite the inputs that they are computed from.

use super::*;

const TEAMS: &str = "examples/plan/teams.yaml";

#[test]
fn nothing_is_written_over_what_it_is_made_from() {
    let folder = folder("apart");
    let at = |name: &str| folder.join(name).display().to_string();
    for name in ["two.yaml", "other.yaml", "in/three.yaml"] {
        std::fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        std::fs::copy(root().join(TEAMS), folder.join(name)).unwrap();
    }
    let profile = "apiVersion: conductor.io/v1alpha1\nkind: SchedulingProfile\nmetadata: {name: p}\nspec: {preferNewest: true}\n";
    std::fs::write(folder.join("profile.yaml"), profile).unwrap();
    std::fs::write(folder.join("key"), "0123456789abcdef").unwrap();
    succeed(&run(&["sim", "import", TEAMS, "--out", &at("x.rec")]));
    let (two, other, rec, key, by) =
        (at("two.yaml"), at("other.yaml"), at("x.rec"), at("key"), at("profile.yaml"));
    let (within, around, three) = (at("in"), at("in/../two.yaml"), at("in/three.yaml"));
    let contents = || -> Vec<Vec<u8>> {
        [&two, &other, &three, &by, &key, &rec].map(|file| std::fs::read(file).unwrap()).into()
    };
    let before = contents();
    for (arguments, expected) in [
        (&["plan", &two, "--html", &two][..], "the input and --html are both"),
        (&["plan", &two, "--html", &around], "the input and --html are both"),
        (&["plan", &within, "--html", &three], "the input and --html are both"),
        (
            &["whatif", &two, "--lose", "resource/shared-mysql", "--html", &two],
            "the input and --html are both",
        ),
        (&["whatif", &two, "-f", &by, "--html", &by], "-f and --html are both"),
        (&["class-impact", &two, "-f", &other, "--html", &other], "-f and --html are both"),
        (&["compare", &two, "--with", &other, "--html", &other], "--with and --html are both"),
        (&["compare", &two, "--a", "built-in", "--b", &by, "--html", &by], "a profile and --html are both"),
        (&["replay", &rec, "--html", &rec], "the recording and --html are both"),
        (&["import", &two, "--out", &two, "--force"], "the input and --out are both"),
        (&["import", &rec, "--out", &rec, "--force"], "the input and --out are both"),
        (
            &["import", &two, "--pseudonym-key", &key, "--out", &key, "--force"],
            "--pseudonym-key and --out are both",
        ),
        (
            &["record", "--pseudonym-key", &key, "--out", &key, "--force"],
            "--pseudonym-key and --out are both",
        ),
    ] {
        let reported = refused(&run(&[&["sim"], arguments].concat()));
        assert!(
            reported.contains(expected) && reported.contains("give each a file of its own"),
            "{arguments:?}\n{reported}"
        );
    }
    assert!(contents() == before, "every file is as it was");
}

#[test]
fn a_page_beside_the_input_is_written() {
    let folder = folder("beside");
    std::fs::copy(root().join(TEAMS), folder.join("two.yaml")).unwrap();
    let page = folder.join("two.html");
    succeed(&run(&["sim", "plan", folder.to_str().unwrap(), "--html", page.to_str().unwrap()]));
    assert!(page.exists());
}

#[test]
fn standard_input_is_not_asked_twice() {
    let input = documents(&[claim("x", "")]);
    let reported = refused(&run_with(&["sim", "plan", "-", "--double-run"], &input));
    assert!(reported.contains("which standard input does not allow"), "{reported}");
}
