//! `muse lab measurements`: docs/measurements.md, from the results that are kept.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::measurements::{Sheet, page};
use anyhow::{Context, bail};
use clap::Args;

use super::files;

#[derive(Args)]
#[command(
    after_help = "Example: muse lab measurements\nExample: muse bench connections --json out.json; muse lab measurements --add connections=out.json\n\nEach file of bench/results is a sheet: title, commands, when and where it was made, what to know, and the results as tables or as a\ncommand's --json wrote them. --add puts new results into a sheet, with today's date and this machine."
)]
pub(super) struct Arguments {
    /// New results for a sheet: its name in the folder, and what a command's --json wrote. A sheet that is not there is made.
    #[arg(long, value_name = "NAME=FILE")]
    add: Vec<String>,
    /// The folder of sheets.
    #[arg(long, value_name = "FOLDER", default_value = "bench/results")]
    results: PathBuf,
    /// The grid to write down: a run.json, or the folder that holds one.
    #[arg(long, value_name = "RUN", default_value = "lab/grids/whole.json")]
    run: PathBuf,
    /// The page to write.
    #[arg(long, value_name = "FILE", default_value = "docs/measurements.md")]
    page: PathBuf,
    /// Exit with 3 if the page is not what it would be, and leave it.
    #[arg(long)]
    check: bool,
}

impl Arguments {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let run = super::compare::read(&self.run)?;
        for addition in &self.add {
            self.renew(addition)?;
        }
        let sheets = files::list(&self.results, "json")?;
        let sheets: anyhow::Result<Vec<Sheet>> = sheets.iter().map(|path| read(path)).collect();
        let page = page(&sheets?, &run);
        let path = self.page.display();
        if self.check {
            let there = std::fs::read_to_string(&self.page).unwrap_or_default();
            if there != page {
                println!("{path} is not what `muse lab measurements` would write");
            }
            return Ok(super::exit(there == page));
        }
        files::write(&self.page, page)?;
        println!("{path}");
        Ok(ExitCode::SUCCESS)
    }

    /// Puts new results into a sheet.
    fn renew(&self, addition: &str) -> anyhow::Result<()> {
        let Some((name, file)) = addition.split_once('=') else {
            bail!("--add takes NAME=FILE, not {addition:?}");
        };
        let text = files::read(Path::new(file))?;
        let results = serde_json::from_str(&text).with_context(|| format!("{file} is no JSON"))?;
        let path = self.results.join(format!("{name}.json"));
        let mut sheet = match path.exists() {
            true => read(&path)?,
            false => Sheet {
                order: LAST,
                title: name.replace(['-', '_'], " "),
                commands: vec![format!("muse bench {name}")],
                ..Sheet::default()
            },
        };
        sheet.renew(results, today(), machine());
        files::write_into(&self.results, &format!("{name}.json"), &sheet.emit())
    }
}

fn read(path: &Path) -> anyhow::Result<Sheet> {
    Sheet::parse(&files::read(path)?).with_context(|| path.display().to_string())
}

/// The processor and how many cores of it.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": "));
    let model = model.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    let word = if cores == 1 { "core" } else { "cores" };
    format!("{cores} {word} of {model}, {}", std::env::consts::OS)
}

/// Year, month and day, by the civil calendar.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = since.map_or(0, |since| since.as_secs() / 86_400);
    date(days)
}

/// The date so many days after the first of January 1970, counted in years that begin in March.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let day = day - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

/// The place of sheets that have none of their own.
const LAST: u32 = 900;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        for (days, text) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_772, "2026-11-15"),
            (20_819, "2027-01-01"),
        ] {
            assert_eq!(date(days), text);
        }
    }
}
