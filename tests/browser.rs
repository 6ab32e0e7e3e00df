//! The HTML report in a real browser. Skipped, and said so, where no Chromium is installed.

mod support;

use ncclog::report::{Format, Options, write};
use ncclog::rules::Analysis;
use std::path::PathBuf;
use std::process::Command;
use support::{cluster, empty, tcp_fallback};

/// Chromium, if it is there.
fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).flat_map(|dir| names.map(|n| dir.join(n))).find(|p| p.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: no Chromium on the PATH; install Debian's package `chromium` to run this test");
    }
    found
}

/// What the page became, and what the console said.
fn load(browser: &PathBuf, page: &str, hash: &str) -> (String, String) {
    load_at(browser, page, hash, 1280)
}

/// [`load`] in a window of so many pixels.
fn load_at(browser: &PathBuf, page: &str, hash: &str, width: u32) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.html");
    std::fs::write(&file, page).expect("written");
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--enable-logging=stderr", "--log-level=0", "--virtual-time-budget=3000", "--dump-dom"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}{hash}", file.display()))
        .output()
        .expect("the browser starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let console = String::from_utf8_lossy(&output.stderr).lines().filter(|l| l.contains("CONSOLE")).collect::<Vec<_>>().join("\n");
    (String::from_utf8_lossy(&output.stdout).into_owned(), console)
}

fn page(analysis: &Analysis) -> String {
    let mut out = Vec::new();
    write(Format::Html, analysis, &mut out, &Options::default()).expect("a vector takes all");
    String::from_utf8(out).expect("UTF-8")
}

/// The opening tag of an element.
fn tag<'a>(dom: &'a str, mark: &str) -> &'a str {
    let at = dom.find(mark).unwrap_or_else(|| panic!("no {mark}"));
    let start = dom[..at].rfind('<').unwrap_or(0);
    &dom[start..at + dom[at..].find('>').unwrap_or(0)]
}

#[test]
fn opens_without_error_and_draws() {
    let Some(browser) = browser() else { return };
    for analysis in [tcp_fallback(), cluster(4096)] {
        let (dom, console) = load(&browser, &page(&analysis), "");
        assert_eq!(console, "");
        assert!(dom.contains("class=\"ladder\"") && dom.contains("class=\"matrix\""));
        assert!(!tag(&dom, "id=\"filter\"").contains("hidden"), "the script ran");
    }
    let (dom, console) = load(&browser, &page(&empty()), "");
    assert!(console.is_empty() && dom.contains("INCONCLUSIVE"));
}

#[test]
fn the_filter_filters() {
    let Some(browser) = browser() else { return };
    let page = page(&cluster(64));
    let (dom, console) = load(&browser, &page, "#r=21");
    assert_eq!(console, "");
    assert!(dom.contains("1 of 64 ranks"));
    assert!(!tag(&dom, "id=\"r21\"").contains("off") && tag(&dom, "id=\"r20\"").contains("off"));
    assert!(!tag(&dom, "id=\"f1\"").contains("off"), "finding 1 is about rank 21");
    let (dom, _) = load(&browser, &page, "#r=node003,40-41");
    assert!(dom.contains("10 of 64 ranks"));
    assert!(tag(&dom, "id=\"f1\"").contains("off"));
    let (dom, _) = load(&browser, &page, "#q=out+of+memory");
    assert!(dom.contains("1 of 64 ranks") && !tag(&dom, "id=\"r21\"").contains("off"));
}

#[test]
fn a_phone_shows_all_within_its_width() {
    let Some(browser) = browser() else { return };
    let measure = "<script>document.body.dataset.over = document.documentElement.scrollWidth - document.documentElement.clientWidth</script></body>";
    for analysis in [tcp_fallback(), cluster(64), empty()] {
        let (dom, _) = load_at(&browser, &page(&analysis).replace("</body>", measure), "", 390);
        assert!(dom.contains("data-over=\"0\""), "{}", tag(&dom, "data-over"));
    }
}

#[test]
fn a_log_runs_no_script() {
    let Some(browser) = browser() else { return };
    let evil = "</pre></title><script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">\u{202e}\u{1b}[2J";
    let mut analysis = tcp_fallback();
    let finding = &mut analysis.findings[0];
    finding.title = evil.to_owned();
    finding.why = evil.to_owned();
    finding.evidence[0].text = evil.to_owned();
    finding.fixes[0].commands.push(evil.to_owned());
    analysis.job.ranks[0].host = Some(evil.to_owned());
    analysis.job.transports[0].via = evil.to_owned();
    let (dom, console) = load(&browser, &page(&analysis), "");
    assert_eq!(console, "");
    assert!(dom.contains("document.title=") && !dom.contains("<title>pwned") && !dom.contains("<img"), "it is text");
}
