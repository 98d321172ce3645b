//! The report opened in a browser: its script runs, its plots are there by day and by night, nothing is written over an edge.

use std::path::{Path, PathBuf};
use std::process::Command;

use muse_lab::grid::{Plan, Run};
use muse_lab::recording::Recording;
use muse_lab::report;

#[test]
fn the_report_is_whole_in_a_browser() {
    let Some(browser) = browser() else {
        eprintln!("no Chromium here: not opened");
        return;
    };
    let plan = Plan::quick().with_seconds(9);
    let run = Run::make(&plan, &Recording::shipped(), 1, 2);
    let folder = &Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab-report");
    std::fs::create_dir_all(folder).expect("a folder");
    let page = folder.join("index.html");
    let html =
        report::html(&run, None).replace("</body>", &format!("<script>{LOOK}</script></body>"));
    std::fs::write(&page, html).expect("it is written");

    let dom = open(&browser, folder, &page, &["--dump-dom"]);
    let dom = String::from_utf8_lossy(&dom);
    let root = dom
        .lines()
        .find(|line| line.contains("<html"))
        .unwrap_or_default();
    assert!(
        root.contains("data-ready=\"13\""),
        "the script has not run: {root}"
    );
    assert!(
        root.contains("data-wrong=\"\""),
        "something is out of place: {root}"
    );
    assert!(dom.contains("40 of 40 cases"), "the table is not counted");

    let shots = ["light", "dark"].map(|mode| {
        let shot = folder.join(format!("{mode}.png"));
        let scheme = format!(
            "--blink-settings=preferredColorScheme={}",
            u8::from(mode == "light")
        );
        let to = format!("--screenshot={}", shot.display());
        open(&browser, folder, &page, &[&scheme, &to]);
        std::fs::read(shot).expect("a picture was taken")
    });
    for shot in &shots {
        assert!(shot.starts_with(b"\x89PNG") && shot.len() > 50_000);
    }
    assert_ne!(shots[0], shots[1], "day and night look alike");
}

fn open(browser: &Path, folder: &Path, page: &Path, more: &[&str]) -> Vec<u8> {
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ])
        .args(["--window-size=1500,2400", "--virtual-time-budget=5000"])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn browser() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file())
}

/// Looks for what is written over an edge or missing (a sentence, axes with units, a legend, data), and sorts the table by a figure.
const LOOK: &str = r##"
const wrong = [];
for (const svg of document.querySelectorAll("figure svg")) {
  const box = svg.getBoundingClientRect();
  if (box.width < 300 || box.height < 150) wrong.push("small plot");
  const texts = [...svg.querySelectorAll("text")].map((text) => text.textContent.trim());
  const name = texts[0];
  if (!texts.slice(1, 6).some((text) => text.endsWith("."))) wrong.push(name + ": no sentence");
  if (texts.filter((text) => /\(.+\)$|^ticks|^kbit|a minute$/.test(text)).length < 2) wrong.push(name + ": no units");
  const lines = [...svg.querySelectorAll("polyline")].filter((line) => line.points.length > 1 && line.getBBox().width > 1);
  const uses = new Map();
  for (const line of lines) uses.set(line.getAttribute("stroke"), (uses.get(line.getAttribute("stroke")) ?? 0) + 1);
  ["#828A94", "#22262C", "#E4E7EB"].forEach((colour) => uses.delete(colour));
  // A colour stands in the legend and in the data.
  if (uses.size < 2 || [...uses.values()].some((count) => count < 2)) wrong.push(name + ": no data or no legend");
  for (const text of svg.querySelectorAll("text")) {
    const at = text.getBoundingClientRect();
    if (at.left < box.left - 1 || at.right > box.right + 1 || at.top < box.top - 1 || at.bottom > box.bottom + 1) wrong.push(text.textContent.trim());
  }
}
document.querySelectorAll("#cases th button")[4].click();
const figures = [...document.querySelectorAll("#cases tbody tr")].map((row) => Number(row.cells[4].textContent));
if (figures.some((figure, at) => at > 0 && figure < figures[at - 1])) wrong.push("not sorted");
document.documentElement.dataset.wrong = wrong.join(" | ");
"##;
