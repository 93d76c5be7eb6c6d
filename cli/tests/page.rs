//! The pages in a real browser: the search finds, the filters choose, nothing complains, nothing is requested from the
//! network. The page is given a script that plays a reader and writes down what it sees; Chromium prints the result.
//! Without Chromium the test says so and checks the page as text only.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page(name: &str, arguments: &[&str], codes: &[i32]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let file = folder.join(format!("{name}.html"));
    let done = Command::new(env!("CARGO_BIN_EXE_conductor"))
        .args(arguments)
        .arg("--html")
        .arg(&file)
        .current_dir(root())
        .output()
        .expect("conductor starts");
    let code = done.status.code().unwrap_or(-1);
    assert!(codes.contains(&code), "{code}: {}", String::from_utf8_lossy(&done.stderr));
    file
}

fn find_browser() -> Option<&'static str> {
    let known = ["chromium", "chromium-browser", "google-chrome"];
    known
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success()))
}

/// A desktop screen and a mobile one, which shows rows as cards.
const SCREENS: [u32; 2] = [1280, 500];

/// Plays a reader on the page, on a screen of some width, and returns what it saw.
fn read(browser: &str, page: &Path, width: u32, reader: &str) -> Value {
    let text = std::fs::read_to_string(page).expect("the page is there");
    let script = format!(
        "<script>window.complaints=[];addEventListener('error',e=>complaints.push(e.message));\
         addEventListener('securitypolicyviolation',e=>complaints.push('requests '+e.blockedURI));</script>{text}\
         <script>addEventListener('load',()=>{{const seen={{}};{reader};\
         seen.complaints=complaints;seen.requests=performance.getEntriesByType('resource').map(e=>e.name);\
         const out=document.createElement('pre');out.id='seen';out.textContent=JSON.stringify(seen);\
         document.body.append(out)}});</script>"
    );
    let played = page.with_extension("played.html");
    std::fs::write(&played, script).expect("it is written");
    let profile = page.with_extension("profile");
    let done = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--window-size={width},800"))
        .arg(format!("file://{}", played.display()))
        .output()
        .expect("the browser starts");
    let dom = String::from_utf8_lossy(&done.stdout).into_owned();
    let begin =
        dom.find("<pre id=\"seen\">").unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&done.stderr)));
    let rest = &dom[begin + "<pre id=\"seen\">".len()..];
    let json = rest[..rest.find("</pre>").expect("it ends")].replace("&quot;", "\"").replace("&lt;", "<");
    serde_json::from_str(&json.replace("&gt;", ">").replace("&amp;", "&")).expect("what was seen is JSON")
}

#[test]
fn a_plans_page_is_searched_and_filtered_without_a_word_to_the_network() {
    let page = page("plan", &["sim", "plan", "examples/plan/teams.yaml"], &[0]);
    let text = std::fs::read_to_string(&page).expect("the page is there");
    assert!(
        !text.contains("http://")
            || text.matches("http://").count() == text.matches("http://www.w3.org/2000/svg").count()
    );
    assert!(!text.contains("https://") && text.contains("default-src 'none'"));
    let Some(browser) = find_browser() else {
        return println!("no browser: the page was checked as text only (apt-get install chromium)");
    };
    for width in SCREENS {
        // What is shown counts, and not what is marked: a style may show a row that is hidden.
        let seen = read(browser, &page, width, "
            const rows=()=>[...document.querySelectorAll('table[data-table=claims] tbody tr')].filter(r=>r.getClientRects().length).length;
            seen.narrow=matchMedia('(max-width:640px)').matches;
            seen.all=rows();
            const field=document.querySelector('input[data-search=claims]');
            field.value='Reports/Warehouse';field.dispatchEvent(new Event('input'));seen.searched=rows();
            field.value='nothing like it';field.dispatchEvent(new Event('input'));seen.none=rows();
            seen.reported=document.querySelector('table[data-table=claims]').nextElementSibling.getClientRects().length;
            field.value='';field.dispatchEvent(new Event('input'));
            const button=document.querySelector('button[data-filter=claims][data-label-filter=Pending]');
            button.click();seen.pending=rows();seen.pressed=button.getAttribute('aria-pressed');button.click();seen.again=rows();
            seen.charts=document.querySelectorAll('svg').length;
            seen.explained=document.querySelectorAll('details li').length");
        assert_eq!((&seen["narrow"], &seen["all"]), (&(width < 640).into(), &8.into()), "{width}");
        assert_eq!(
            (&seen["searched"], &seen["none"], &seen["reported"]),
            (&1.into(), &0.into(), &1.into()),
            "{width}"
        );
        assert_eq!(
            (&seen["pending"], &seen["pressed"], &seen["again"]),
            (&3.into(), &"true".into(), &8.into())
        );
        assert!(seen["charts"].as_u64() >= Some(3) && seen["explained"].as_u64() >= Some(3), "{seen}");
        assert_eq!((&seen["complaints"], &seen["requests"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    }
}

#[test]
fn a_what_ifs_page_shows_only_what_changes_with_its_rule() {
    let arguments = ["sim", "whatif", "examples/plan/teams.yaml", "--lose", "resource/shared-mysql"];
    let page = page("whatif", &arguments, &[1]);
    let Some(browser) = find_browser() else {
        return println!("no browser: the page was created and not checked (apt-get install chromium)");
    };
    let seen = read(
        browser,
        &page,
        SCREENS[0],
        "
        const rows=[...document.querySelectorAll('table[data-table=changes] tbody tr')];
        seen.claims=rows.map(r=>r.cells[0].textContent);
        seen.from=rows[0].querySelector('.from').textContent;seen.to=rows[0].querySelector('.to').textContent;
        seen.rules=rows.map(r=>r.querySelector('.rule').textContent);
        seen.verdict=document.getElementById('verdict').textContent",
    );
    assert_eq!(seen["claims"], serde_json::json!(["blog/comments", "shop/sessions"]));
    assert_eq!((&seen["from"], &seen["to"]), (&"shared-mysql".into(), &"Pending".into()));
    assert_eq!(seen["rules"], serde_json::json!(["Gone", "Gone"]));
    assert_eq!(seen["verdict"], "2 claims and 1 resources change");
    assert_eq!((&seen["complaints"], &seen["requests"]), (&Value::Array(vec![]), &Value::Array(vec![])));
}
