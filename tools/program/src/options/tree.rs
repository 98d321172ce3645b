//! The options of a tree of clap commands: their names in a file and in the environment, and the values that they take.

use std::ffi::{OsStr, OsString};

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, Error as ClapError, ErrorKind};
use clap::{Arg, ArgAction, Command};

/// An option that a file or the environment can set.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    /// The argument.
    pub(super) argument: &'a Arg,
    /// Its name, without the dashes.
    pub(super) name: &'a str,
}

/// The kind of value that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// None: it is there or not.
    Flag,
    /// One.
    One,
    /// Any number.
    List,
}

impl<'a> Setting<'a> {
    fn new(argument: &'a Arg) -> Option<Self> {
        let is_setting = matches!(
            argument.get_action(),
            ArgAction::Set | ArgAction::Append | ArgAction::SetTrue
        );
        let name = argument.get_long().filter(|name| *name != FILE_OPTION)?;
        let is_shown = !argument.is_hide_set();
        (is_setting && is_shown).then_some(Self { argument, name })
    }

    /// Returns the kind of value that it takes.
    pub(super) fn kind(self) -> Kind {
        match self.argument.get_action() {
            ArgAction::SetTrue => Kind::Flag,
            ArgAction::Append => Kind::List,
            _ => Kind::One,
        }
    }

    /// True if its value must not be shown.
    pub(super) fn is_secret(self) -> bool {
        self.argument.is_hide_env_values_set()
    }

    /// True if it names a file or a directory.
    pub(super) fn is_path(self) -> bool {
        self.argument.get_value_parser().type_id() == ValueParser::path_buf().type_id()
    }

    /// Says what is wrong with a value, without repeating it.
    pub(super) fn fault(self, value: &OsStr) -> Option<String> {
        let probe = Arg::new("value")
            .long("value")
            .value_parser(self.argument.get_value_parser().clone());
        let mut word = OsString::from("--value=");
        word.push(value);
        let command = Command::new("probe").no_binary_name(true).arg(probe);
        let fault = command.try_get_matches_from([word]).err()?;
        Some(explain(&fault))
    }

    /// Returns the words of the command line that stand for these values.
    pub(super) fn words(self, values: &[OsString]) -> Vec<OsString> {
        if self.kind() == Kind::Flag {
            return vec![format!("--{}", self.name).into()];
        }
        let word = |value: &OsString| {
            let mut word = OsString::from(format!("--{}=", self.name));
            word.push(value);
            word
        };
        values.iter().map(word).collect()
    }
}

/// Returns the options of `command` itself that can be set elsewhere than on the command line.
pub(super) fn settings(command: &Command) -> impl Iterator<Item = Setting<'_>> {
    command.get_arguments().filter_map(Setting::new)
}

/// Returns the subcommands of `command` that have a table in the file.
pub(super) fn tables(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|it| !it.is_hide_set())
}

/// True for a command that stands for one which is not built in: it takes any words, so nothing can be said about its table.
pub(super) fn takes_anything(command: &Command) -> bool {
    command
        .get_arguments()
        .any(|argument| argument.is_trailing_var_arg_set() && argument.is_hide_set())
}

/// Calls `visit` for each option of the tree with the names of the commands that lead to it.
pub(super) fn walk<'a>(command: &'a Command, visit: &mut impl FnMut(&[&'a str], Setting<'a>)) {
    fn descend<'a>(
        command: &'a Command,
        path: &mut Vec<&'a str>,
        visit: &mut impl FnMut(&[&'a str], Setting<'a>),
    ) {
        for setting in settings(command) {
            visit(path, setting);
        }
        for table in tables(command) {
            path.push(table.get_name());
            descend(table, path, visit);
            path.pop();
        }
    }
    descend(command, &mut Vec::new(), visit);
}

/// Finds the command that `path` leads to.
pub(super) fn find<'a>(command: &'a Command, path: &[String]) -> Option<&'a Command> {
    path.iter()
        .try_fold(command, |command, name| command.find_subcommand(name))
}

/// Returns the name in the environment of the option `name` of the command that `path` leads to: `MUSE_MASTER_DRAIN_SECONDS`.
pub(super) fn variable(program: &str, path: &[impl AsRef<str>], name: &str) -> String {
    let mut words = vec![program];
    words.extend(path.iter().map(AsRef::as_ref));
    words.push(name);
    words.join("_").to_uppercase().replace('-', "_")
}

/// Returns the name among `candidates` that is nearest to `name`, if one is near.
pub(super) fn nearest(name: &str, candidates: impl Iterator<Item = String>) -> Option<String> {
    candidates
        .map(|candidate| (strsim::jaro(name, &candidate), candidate))
        .filter(|(likeness, _)| *likeness > LIKENESS_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

fn explain(fault: &ClapError) -> String {
    if fault.kind() == ErrorKind::ValueValidation
        && let Some(source) = std::error::Error::source(fault)
    {
        return source.to_string();
    }
    match fault.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(valid)) => format!("it must be one of {}", valid.join(", ")),
        _ => "it is not valid".to_owned(),
    }
}

/// The option that names the file itself, which no file can set.
pub(super) const FILE_OPTION: &str = "config";
/// The likeness, by Jaro, from which on a name is proposed for another one; clap's own.
const LIKENESS_MIN: f64 = 0.7;
