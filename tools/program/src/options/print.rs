//! All options of a command as a file, each with where its value is from.

use std::ffi::OsStr;
use std::fmt::Write;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use super::tree::{self, Kind, Setting};
use super::{Found, Line};

/// Prints the options of the commands that `matches` names, the root's included.
pub(super) fn print(root: &Command, matches: &ArgMatches, line: &Line) -> String {
    let mut text = String::new();
    let mut path: Vec<String> = Vec::new();
    let mut level = Some(matches);
    while let Some(matches) = level {
        if let Some(command) = tree::find(root, &path) {
            print_table(&mut text, command, &path, matches, &line.inserted);
        }
        level = matches.subcommand().map(|(name, inner)| {
            path.push(name.to_owned());
            inner
        });
    }
    text
}

fn print_table(
    text: &mut String,
    command: &Command,
    path: &[String],
    matches: &ArgMatches,
    inserted: &[Found],
) {
    let mut lines = String::new();
    for setting in tree::settings(command) {
        let found = inserted
            .iter()
            .find(|it| it.path == path && it.name == setting.name);
        let (value, origin) = print_value(setting, matches, found);
        let line = match value {
            Some(value) => format!("{} = {value} # {origin}", setting.name),
            None => format!("# {} is not set", setting.name),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{line}");
    }
    if lines.is_empty() {
        return;
    }
    if !path.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}[{}]", path.join("."));
    }
    text.push_str(&lines);
}

/// Returns an option's value as a file has it, unless it has none, and where it is from.
fn print_value(
    setting: Setting<'_>,
    matches: &ArgMatches,
    found: Option<&Found>,
) -> (Option<String>, String) {
    let id = setting.argument.get_id().as_str();
    let source = matches.value_source(id);
    let origin = match (found, source) {
        (Some(found), _) => found.origin.to_string(),
        (None, Some(ValueSource::CommandLine)) => "command line".to_owned(),
        (None, _) => "default".to_owned(),
    };
    if setting.kind() == Kind::Flag {
        return (Some(matches.get_flag(id).to_string()), origin);
    }
    let is_default = source != Some(ValueSource::CommandLine);
    let raw = matches.get_raw(id).into_iter().flatten();
    let values: Vec<String> = raw
        .map(|value| {
            let is_hidden = setting.is_secret() && !is_default;
            match is_hidden {
                true => quoted(&masked(setting, value)),
                false => scalar(&value.to_string_lossy()),
            }
        })
        .collect();
    let value = match (setting.kind(), values.as_slice()) {
        (_, []) => None,
        (Kind::List, values) => Some(format!("[{}]", values.join(", "))),
        (_, values) => Some(values.join(", ")),
    };
    (value, origin)
}

/// Hides what must not be shown of a secret: everything but the address of a URL, or a file's name.
fn masked(setting: Setting<'_>, value: &OsStr) -> String {
    let value = value.to_string_lossy();
    let Some((scheme, rest)) = value.split_once("://") else {
        return match setting.is_path() {
            true => value.into_owned(),
            false => MASK.to_owned(),
        };
    };
    // A password may have any letter in it, and may stand behind a question mark: only what is surely none of it is shown.
    let mut parts = rest.split('@');
    match (parts.next(), parts.next(), parts.next()) {
        _ if rest.contains('?') => format!("{scheme}://{MASK}"),
        (Some(_), None, _) => value.into_owned(),
        (Some(_), Some(place), None) => format!("{scheme}://{MASK}@{place}"),
        _ => format!("{scheme}://{MASK}"),
    }
}

fn scalar(value: &str) -> String {
    let is_number = value
        .parse::<i64>()
        .is_ok_and(|number| number.to_string() == value);
    match is_number {
        true => value.to_owned(),
        false => quoted(value),
    }
}

/// Returns a string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

const MASK: &str = "***";
