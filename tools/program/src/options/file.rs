//! A file with options: a TOML table for each command, with a key for each option.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Read;
use std::path::Path;

use clap::Command;
use toml::de::{DeInteger, DeTable, DeValue};

use super::tree::{self, Kind, Setting};
use super::{Found, Origin};

/// Reads a file whose tables are those of `command`: what it sets, and all that is wrong with it.
pub(super) fn read(file: &Path, command: &Command) -> (Vec<Found>, Vec<String>) {
    let text = match text(file) {
        Ok(text) => text,
        Err(fault) => return (Vec::new(), vec![fault]),
    };
    let mut reader = Reader {
        file,
        text: &text,
        command,
        path: Vec::new(),
        found: Vec::new(),
        faults: Vec::new(),
    };
    match DeTable::parse(&text) {
        Ok(table) => reader.read_table(table.get_ref(), command),
        Err(fault) => {
            let at = fault.span().map_or(0, |span| span.start);
            reader.fault(at, fault.message());
        }
    }
    reader.faults.sort_by_key(|(line, _)| *line);
    let name = |(line, fault)| format!("{}:{line}: {fault}", file.display());
    (reader.found, reader.faults.into_iter().map(name).collect())
}

fn text(file: &Path) -> Result<String, String> {
    let fault = |reason: &dyn Display| format!("cannot read {}: {reason}", file.display());
    let opened = std::fs::File::open(file).map_err(|error| fault(&error))?;
    let mut text = String::new();
    let mut bounded = opened.take(FILE_BYTES_MAX + 1);
    bounded
        .read_to_string(&mut text)
        .map_err(|error| fault(&error))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(fault(&format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
    command: &'a Command,
    path: Vec<String>,
    found: Vec<Found>,
    /// Lines, and what is wrong there.
    faults: Vec<(usize, String)>,
}

impl Reader<'_> {
    fn read_table(&mut self, table: &DeTable<'_>, command: &Command) {
        for (key, value) in table {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            let setting = tree::settings(command).find(|it| it.name == name);
            let inner = tree::tables(command).find(|it| it.get_name() == name);
            match (setting, inner, value.get_ref()) {
                (Some(setting), _, value) => self.read_value(at, setting, value),
                (None, Some(inner), _) if tree::takes_anything(inner) => {}
                (None, Some(inner), DeValue::Table(table)) => {
                    self.path.push(name.to_owned());
                    self.read_table(table, inner);
                    self.path.pop();
                }
                (None, Some(_), _) => {
                    let line = self.program_and_path().join(" ");
                    self.key_fault(
                        at,
                        name,
                        &format!("`{line} {name}` is a command: write [{name}]"),
                    );
                }
                (None, None, _) => self.unknown(at, name, command),
            }
        }
    }

    fn read_value(&mut self, at: usize, setting: Setting<'_>, value: &DeValue<'_>) {
        let values = match (setting.kind(), value) {
            (Kind::Flag, DeValue::Boolean(true)) => Ok(vec![OsString::new()]),
            (Kind::Flag, DeValue::Boolean(false)) => Ok(Vec::new()),
            (Kind::Flag, _) => Err("it must be true or false".to_owned()),
            (Kind::List, DeValue::Array(elements)) => {
                let scalars = elements.iter().map(|element| scalar(element.get_ref()));
                scalars.collect()
            }
            (Kind::One, DeValue::Array(_)) => Err("it takes one value, not a list".to_owned()),
            (Kind::One | Kind::List, value) => scalar(value).map(|value| vec![value]),
        };
        let values = match values {
            Ok(values) => values,
            Err(fault) => return self.key_fault(at, setting.name, &fault),
        };
        if setting.kind() != Kind::Flag
            && let Some(fault) = values.iter().find_map(|value| setting.fault(value))
        {
            return self.key_fault(at, setting.name, &fault);
        }
        self.found.push(Found {
            path: self.path.clone(),
            name: setting.name.to_owned(),
            values,
            origin: Origin::File {
                file: self.file.to_owned(),
                line: self.line(at),
            },
        });
    }

    fn unknown(&mut self, at: usize, name: &str, command: &Command) {
        let line = self.program_and_path().join(" ");
        let keys = tree::settings(command).map(|it| it.name.to_owned());
        let keys = keys.chain(tree::tables(command).map(|it| it.get_name().to_owned()));
        let mut fault = format!("`{line}` has no such option");
        if let Some(nearest) = tree::nearest(name, keys) {
            fault += &format!("; is {nearest} meant?");
        } else if let Some(table) = self.table_with(name) {
            fault += &format!("; is it meant for [{table}]?");
        }
        self.key_fault(at, name, &fault);
    }

    /// Finds a table that the option belongs to, for those who put it into another one.
    fn table_with(&self, name: &str) -> Option<String> {
        let mut found = None;
        tree::walk(self.command, &mut |path, setting| {
            if setting.name == name && !path.is_empty() && found.is_none() {
                found = Some(path.join("."));
            }
        });
        found
    }

    fn program_and_path(&self) -> Vec<&str> {
        let path = self.path.iter().map(String::as_str);
        std::iter::once(self.command.get_name())
            .chain(path)
            .collect()
    }

    fn key_fault(&mut self, at: usize, name: &str, fault: &str) {
        let mut key = self.path.clone();
        key.push(name.to_owned());
        self.fault(at, &format!("{}: {fault}", key.join(".")));
    }

    fn fault(&mut self, at: usize, fault: &str) {
        self.faults.push((self.line(at), fault.to_owned()));
    }

    fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().iter().take(at);
        before.filter(|byte| **byte == b'\n').count() + 1
    }
}

/// Returns a single value as it would be typed.
fn scalar(value: &DeValue<'_>) -> Result<OsString, String> {
    match value {
        DeValue::String(text) => Ok(OsString::from(text.as_ref())),
        DeValue::Integer(number) => integer(number),
        DeValue::Float(number) => Ok(OsString::from(number.as_str())),
        DeValue::Boolean(value) => Ok(OsString::from(value.to_string())),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => Err(format!(
            "it must be a string or a number, not {}",
            with_article(value.type_str())
        )),
    }
}

fn integer(number: &DeInteger<'_>) -> Result<OsString, String> {
    i128::from_str_radix(number.as_str(), number.radix())
        .map(|number| number.to_string().into())
        .map_err(|_| "the number is too large".to_owned())
}

fn with_article(kind: &str) -> String {
    let article = if kind.starts_with('a') { "an" } else { "a" };
    format!("{article} {kind}")
}

/// Most bytes of a file that are read.
const FILE_BYTES_MAX: u64 = 1 << 20;
