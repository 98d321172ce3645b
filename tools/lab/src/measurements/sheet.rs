//! One thing that was measured: what, how, when, where, and what came out.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::report::{number, write_to};

/// A file of `bench/results`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    /// The place on the page; sheets of the same number stand in the order of their titles.
    pub order: u32,
    /// The subject of the measurement.
    pub title: String,
    /// The command that measures it again.
    pub commands: Vec<String>,
    /// When, as year-month-day.
    pub made: String,
    /// Where.
    pub machine: String,
    /// Notes about it, a paragraph each, in Markdown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub says: Vec<String>,
    /// The results, as people would write them down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
    /// The results, as a command's `--json` wrote them.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub results: Value,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Its rows, as many cells each.
    pub rows: Vec<Vec<String>>,
}

/// Why a text is no sheet.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SheetError {
    /// It is no JSON of a sheet.
    #[error("not the JSON of a sheet: {0}")]
    Json(#[from] serde_json::Error),
    /// A row has more or fewer cells than there are columns.
    #[error("a row of a table has {0} cells for {1} columns")]
    Row(usize, usize),
}

impl Sheet {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, SheetError> {
        let sheet: Self = serde_json::from_str(text)?;
        for table in &sheet.tables {
            let columns = table.columns.len();
            if let Some(row) = table.rows.iter().find(|row| row.len() != columns) {
                return Err(SheetError::Row(row.len(), columns));
            }
        }
        Ok(sheet)
    }

    /// Writes it.
    pub fn emit(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("texts and numbers can be written") + "\n"
    }

    /// Takes new results, made then and there. Tables that people wrote were about older ones, and go.
    pub fn renew(&mut self, results: Value, made: String, machine: String) {
        self.tables.clear();
        self.results = results;
        self.made = made;
        self.machine = machine;
    }

    /// Its part of the page.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n", self.title);
        for command in &self.commands {
            write_to(&mut text, format_args!("    {command}\n"));
        }
        let machine = match self.machine.as_str() {
            "" => String::new(),
            machine => format!(" {machine}."),
        };
        write_to(&mut text, format_args!("\nMade {}.{machine}\n", self.made));
        for paragraph in &self.says {
            write_to(&mut text, format_args!("\n{paragraph}\n"));
        }
        for table in self.tables.iter().chain(&tables_of(&self.results)) {
            write_to(&mut text, format_args!("\n{}", table.markdown()));
        }
        text
    }
}

impl Table {
    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = line(&self.columns);
        text.push_str(&line(&vec!["---".to_owned(); self.columns.len()]));
        for row in &self.rows {
            text.push_str(&line(row));
        }
        text
    }
}

/// Any JSON as tables: lists of objects become tables with a column for each name, everything else rows of name and value.
fn tables_of(results: &Value) -> Vec<Table> {
    let mut single = Table {
        columns: vec![String::new(), String::new()],
        rows: Vec::new(),
    };
    let mut lists = Vec::new();
    walk("", results, &mut single.rows, &mut lists);
    let mut tables = Vec::new();
    if !single.rows.is_empty() {
        tables.push(single);
    }
    tables.extend(lists);
    tables
}

fn walk(path: &str, value: &Value, rows: &mut Vec<Vec<String>>, lists: &mut Vec<Table>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = match path {
                    "" => words(name),
                    path => format!("{path}, {}", words(name)),
                };
                walk(&path, value, rows, lists);
            }
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_object) => {
            lists.push(list(path, items));
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(cell).collect();
            rows.push(vec![path.to_owned(), items.join(", ")]);
        }
        Value::Null => {}
        value => rows.push(vec![path.to_owned(), cell(value)]),
    }
}

/// A list of objects: a row each, a column for each name.
fn list(path: &str, items: &[Value]) -> Table {
    let flat: Vec<Vec<(String, String)>> = items.iter().map(flattened).collect();
    let mut names: Vec<String> = Vec::new();
    for (name, _) in flat.iter().flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let row = |fields: &Vec<(String, String)>| {
        let of = |name: &String| fields.iter().find(|(known, _)| known == name);
        let cells = names.iter();
        cells
            .map(|name| of(name).map(|(_, value)| value.clone()).unwrap_or_default())
            .collect()
    };
    let rows = flat.iter().map(row).collect();
    let mut columns = names;
    if let Some(first) = columns.first_mut().filter(|_| !path.is_empty()) {
        *first = format!("{path}: {first}");
    }
    Table { columns, rows }
}

fn flattened(item: &Value) -> Vec<(String, String)> {
    fn add(path: &str, fields: &Map<String, Value>, into: &mut Vec<(String, String)>) {
        for (name, value) in fields {
            let name = match path {
                "" => words(name),
                path => format!("{path}, {}", words(name)),
            };
            match value {
                Value::Object(fields) => add(&name, fields, into),
                value => into.push((name, cell(value))),
            }
        }
    }
    let mut fields = Vec::new();
    if let Value::Object(object) = item {
        add("", object, &mut fields);
    }
    fields
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.replace('|', "/").replace('\n', " "),
        Value::Number(value) => match (value.as_u64(), value.as_f64()) {
            (Some(whole), _) => whole.to_string(),
            (None, value) => number(value),
        },
        Value::Array(items) if items.len() > ITEMS_MAX => format!("{} values", items.len()),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        Value::Object(_) => value.to_string(),
    }
}

/// A field's name as people would write it.
fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// Longer lists in a cell are only counted.
const ITEMS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn any_results_become_tables() {
        let results = json!({
            "seed": 7,
            "server": { "cpu_us": 1.5, "left_out": null },
            "rows": [{ "name": "a", "p50_ms": 2.0 }, { "name": "b", "more": { "p99_ms": 3.25 } }],
        });
        let tables = tables_of(&results);
        assert_eq!(tables.len(), 2);
        assert_eq!(tables[0].rows[0], ["seed", "7"]);
        assert_eq!(tables[0].rows[1][0], "server, cpu us");
        assert_eq!(tables[1].columns, ["rows: name", "p50 ms", "more, p99 ms"]);
        assert_eq!(tables[1].rows[1], ["b", "", "3.250"]);
    }

    #[test]
    fn new_results_put_away_what_was_written_about_old_ones() {
        let text = r#"{"order": 2, "title": "T", "commands": ["c"], "made": "d", "machine": "m",
            "tables": [{"columns": ["a", "b"], "rows": [["1", "2"]]}]}"#;
        let mut sheet = Sheet::parse(text).expect("a sheet");
        assert!(sheet.markdown().contains("| 1 | 2 |"));
        sheet.renew(json!({ "x": 3 }), "today".into(), "here".into());
        let page = sheet.markdown();
        assert!(page.contains("| x | 3 |") && !page.contains("| 1 | 2 |"));
        assert!(page.contains("Made today. here."));
        assert_eq!(Sheet::parse(&sheet.emit()).expect("it reads itself"), sheet);
    }

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let text = r#"{"order": 2, "title": "T", "commands": [], "made": "", "machine": "",
            "tables": [{"columns": ["a", "b"], "rows": [["1"]]}]}"#;
        assert!(matches!(Sheet::parse(text), Err(SheetError::Row(1, 2))));
    }
}
