//! Options from a file and from the environment, for every program that reads its command line with clap.
//!
//! An option has one name: `--drain-seconds` of `muse master` is `drain-seconds` in the table `[master]` of the file and `MUSE_MASTER_DRAIN_SECONDS` in the
//! environment. The command line beats the environment, which beats the file. [`Layers`] knows all of this from the tree of commands alone. It inserts what
//! the file and the environment set into the command line, right behind the command that it belongs to, so that ranges, requirements and conflicts
//! hold for it as for everything that is typed.

mod environment;
mod file;
mod print;
mod tree;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use tree::{Kind, Setting};

/// The places from which a program's options come, besides their defaults: the command line, the environment, a file.
///
/// ```
/// use clap::Parser;
/// use muse_program::options::Layers;
///
/// #[derive(Parser)]
/// #[command(name = "muse")]
/// struct Program {
///     /// The file.
///     #[arg(long, global = true)]
///     config: Option<std::path::PathBuf>,
///     /// Seconds to wait.
///     #[arg(long, default_value_t = 5)]
///     drain_seconds: u64,
/// }
///
/// let environment = [("MUSE_DRAIN_SECONDS".into(), "60".into())];
/// let layers = Layers::new::<Program>(environment);
/// assert_eq!(layers.parse::<Program>(["muse"])?.drain_seconds, 60);
/// assert_eq!(layers.parse::<Program>(["muse", "--drain-seconds", "7"])?.drain_seconds, 7);
/// # Ok::<(), muse_program::options::Faults>(())
/// ```
pub struct Layers {
    command: Command,
    environment: Vec<(OsString, OsString)>,
    reserved: &'static [&'static str],
    exempt: &'static [&'static str],
}

impl Layers {
    /// Sets out the layers of the program `P` over the variables of `environment`. Its option `--config` names the file.
    pub fn new<P: clap::CommandFactory>(
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        Self {
            command: P::command(),
            environment: environment.into_iter().collect(),
            reserved: &[],
            exempt: &[],
        }
    }

    /// Names variables that look like options but are something else. By default there are none.
    pub fn reserved(mut self, variables: &'static [&'static str]) -> Self {
        self.reserved = variables;
        self
    }

    /// Names commands that run whatever the file and the environment say, for example those that check them. By default there are none.
    pub fn exempt(mut self, commands: &'static [&'static str]) -> Self {
        self.exempt = commands;
        self
    }

    /// Reads a command line, the first word of which is the program's name, completed by the file and the environment.
    pub fn parse<P: clap::Parser>(
        &self,
        words: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<P, Faults> {
        let line = self.complete(words.into_iter().map(Into::into).collect())?;
        P::try_parse_from(&line.words).map_err(|error| line.fault(error))
    }

    /// Checks `file`, or the one that would be read: every key and every value, of all commands, and the environment.
    pub fn check(&self, file: Option<&Path>) -> Result<Checked, Faults> {
        let file = match file {
            Some(file) => Some(file.to_owned()),
            None => self.file(None),
        };
        let found = self.found(file.as_deref())?;
        let of_file = |found: &&Found| matches!(found.origin, Origin::File { .. });
        let in_file = found.iter().filter(of_file).count();
        Ok(Checked {
            file,
            in_file,
            in_environment: found.len() - in_file,
        })
    }

    /// Prints as a file all options of the command in `words`, which is a command line with the program's name, each with where its value is from.
    pub fn print(&self, words: Vec<OsString>) -> Result<String, Faults> {
        let line = self.complete(words)?;
        let matches = self
            .matches(&line.words)
            .map_err(|error| line.fault(error))?;
        Ok(print::print(&self.command, &matches, &line))
    }

    /// Returns the option's name in the environment for each of the program's options, with the commands that lead to it and the option's own name.
    pub fn variables(&self) -> Vec<(Vec<String>, String, String)> {
        let mut variables = Vec::new();
        tree::walk(&self.command, &mut |path, setting| {
            let variable = tree::variable(self.command.get_name(), path, setting.name);
            let path = path.iter().map(|&it| it.to_owned()).collect();
            variables.push((path, setting.name.to_owned(), variable));
        });
        variables
    }

    /// Inserts into a command line what the file and the environment set.
    fn complete(&self, words: Vec<OsString>) -> Result<Line, Faults> {
        let matches = self.matches(&words).map_err(Faults::of_clap)?;
        let path = path(&matches);
        let first = path.first().map(String::as_str);
        if first.is_some_and(|first| self.exempt.contains(&first)) {
            let inserted = Vec::new();
            return Ok(Line { words, inserted });
        }
        let named = matches.get_one::<PathBuf>(tree::FILE_OPTION);
        let found = self.found(self.file(named).as_deref())?;
        let mut line = Line {
            words: Vec::new(),
            inserted: Vec::new(),
        };
        let mut ends = self.ends(&words, path.len());
        ends.push(words.len());
        let mut level = Some(&matches);
        let mut from = 0;
        for (depth, to) in ends.into_iter().enumerate() {
            // The words of a level end with the name of the next one, and what is inserted stands at its front.
            let (command, matches) = tree::find(&self.command, &path[..depth])
                .zip(level)
                .unwrap_or((&self.command, &matches));
            let front = if depth == 0 { words.len().min(1) } else { 0 };
            line.words.extend_from_slice(&words[from..from + front]);
            // Some commands have either options or a command inside.
            let is_excluded =
                command.is_args_conflicts_with_subcommands_set() && depth < path.len();
            let chosen = match is_excluded {
                true => Vec::new(),
                false => choose(command, matches, &path[..depth], &found),
            };
            for chosen in chosen {
                let setting = tree::settings(command).find(|it| it.name == chosen.name);
                let inserted = setting.map(|it| it.words(&chosen.values));
                line.words.extend(inserted.unwrap_or_default());
                line.inserted.push(chosen);
            }
            line.words.extend_from_slice(&words[from + front..to]);
            from = to;
            level = matches.subcommand().map(|(_, inner)| inner);
        }
        Ok(line)
    }

    /// Reads a command line for the options that are on it. What is missing may be in the file.
    fn matches(&self, words: &[OsString]) -> Result<ArgMatches, clap::Error> {
        let strict = self.command.clone().try_get_matches_from(words);
        match strict {
            Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
                let lenient = self.command.clone().ignore_errors(true);
                lenient.try_get_matches_from(words)
            }
            outcome => outcome,
        }
    }

    /// Returns for each command of the path the number of words up to its name, counting the name.
    fn ends(&self, words: &[OsString], depth: usize) -> Vec<usize> {
        let mut ends = Vec::new();
        let lenient = self.command.clone().ignore_errors(true);
        for end in 1..=words.len() {
            if ends.len() == depth {
                break;
            }
            let beginning = lenient.clone().try_get_matches_from(&words[..end]);
            if beginning.is_ok_and(|matches| path(&matches).len() > ends.len()) {
                ends.push(end);
            }
        }
        ends
    }

    /// Returns the file to read: the one that is named, on the command line or in the environment, or the one that lies in the working directory.
    fn file(&self, named: Option<&PathBuf>) -> Option<PathBuf> {
        if let Some(named) = named {
            return Some(named.clone());
        }
        let program = self.command.get_name();
        let variable = tree::variable(program, &[] as &[&str], tree::FILE_OPTION);
        let mut variables = self.environment.iter();
        if let Some((_, file)) = variables.find(|(name, _)| *name == *variable)
            && !file.is_empty()
        {
            return Some(file.into());
        }
        let beside = PathBuf::from(format!("{program}.toml"));
        beside.is_file().then_some(beside)
    }

    /// Reads what the environment and a file set. Earlier ones beat later ones.
    fn found(&self, file: Option<&Path>) -> Result<Vec<Found>, Faults> {
        let (mut found, mut faults) =
            environment::read(&self.environment, &self.command, self.reserved);
        if let Some(file) = file {
            let (in_file, faults_of_file) = file::read(file, &self.command);
            found.extend(in_file);
            faults.extend(faults_of_file);
        }
        match faults.is_empty() {
            true => Ok(found),
            false => Err(Faults::Settings(faults)),
        }
    }
}

/// Everything that is wrong with the options of a program.
#[derive(Debug)]
pub enum Faults {
    /// The command line, or what it is together with the file and the environment: clap's message, and where the options in it are from.
    Line(Box<clap::Error>, Vec<String>),
    /// The file or the environment, a fault each.
    Settings(Vec<String>),
}

impl Faults {
    fn of_clap(error: clap::Error) -> Self {
        Self::Line(Box::new(error), Vec::new())
    }

    /// Prints the faults, or the help that was asked for, and ends the program.
    pub fn exit(&self) -> ! {
        match self {
            Self::Line(error, notes) => {
                // Nobody is left to be told if the message cannot be written.
                let _ = error.print();
                for note in notes {
                    eprintln!("{note}");
                }
                std::process::exit(error.exit_code())
            }
            Self::Settings(_) => {
                eprintln!("{self}");
                std::process::exit(EXIT_USAGE)
            }
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = match self {
            Self::Line(error, notes) => std::iter::once(error.to_string())
                .chain(notes.iter().cloned())
                .collect(),
            Self::Settings(faults) => {
                let lines = faults.iter().map(|fault| format!("error: {fault}"));
                lines.collect()
            }
        };
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Faults {}

/// A file and an environment without faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// Options that the file sets.
    pub in_file: usize,
    /// Options that the environment sets.
    pub in_environment: usize,
}

/// An option that the file or the environment sets.
#[derive(Clone, Debug)]
struct Found {
    path: Vec<String>,
    name: String,
    /// Its values, one after the other; an empty list is a flag that is not raised.
    values: Vec<OsString>,
    origin: Origin,
}

/// The place that sets an option.
#[derive(Clone, Debug)]
enum Origin {
    Environment(String),
    File { file: PathBuf, line: usize },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(variable) => write!(f, "{variable} in the environment"),
            Self::File { file, line } => write!(f, "{}:{line}", file.display()),
        }
    }
}

/// A command line that the file and the environment have completed.
struct Line {
    words: Vec<OsString>,
    inserted: Vec<Found>,
}

impl Line {
    /// Adds to clap's message the places of those options in it that nobody typed.
    fn fault(&self, error: clap::Error) -> Faults {
        let mut named = Vec::new();
        for (kind, value) in error.context() {
            match (kind, value) {
                (ContextKind::InvalidArg | ContextKind::PriorArg, ContextValue::String(text)) => {
                    named.push(text.clone());
                }
                (ContextKind::InvalidArg | ContextKind::PriorArg, ContextValue::Strings(texts)) => {
                    named.extend(texts.iter().cloned());
                }
                _ => {}
            }
        }
        let is_named = |found: &&Found| {
            let option = format!("--{}", found.name);
            named
                .iter()
                .any(|text| text.split([' ', '=']).next() == Some(&option))
        };
        let note = |found: &Found| format!("--{} is from {}", found.name, found.origin);
        let notes = self.inserted.iter().filter(is_named).map(note).collect();
        Faults::Line(Box::new(error), notes)
    }
}

/// Returns the names of the commands on a command line.
fn path(matches: &ArgMatches) -> Vec<String> {
    let mut path = Vec::new();
    let mut level = matches;
    while let Some((name, inner)) = level.subcommand() {
        path.push(name.to_owned());
        level = inner;
    }
    path
}

/// Chooses what to insert for one command: what nobody typed, and what does not exclude something of a higher layer.
fn choose(command: &Command, matches: &ArgMatches, path: &[String], found: &[Found]) -> Vec<Found> {
    let is_typed = |setting: Setting<'_>| {
        let id = setting.argument.get_id().as_str();
        matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let mut chosen: Vec<Found> = Vec::new();
    for found in found.iter().filter(|it| it.path == path) {
        let Some(setting) = tree::settings(command).find(|it| it.name == found.name) else {
            continue;
        };
        let is_chosen = chosen.iter().any(|it| it.name == found.name);
        let excluded = tree::settings(command).any(|other| {
            let rival = chosen.iter().find(|it| it.name == other.name);
            let is_higher = rival.is_some_and(|it| it.is_set() && it.is_above(found));
            (is_typed(other) || is_higher) && excludes(command, setting, other)
        });
        let is_open = !is_typed(setting) && !is_chosen;
        let is_excluded = excluded && found.is_set();
        if is_open && !is_excluded {
            chosen.push(found.clone());
        }
    }
    chosen.retain(|it| it.is_set() || !is_flag(command, &it.name));
    chosen
}

impl Found {
    fn is_set(&self) -> bool {
        !self.values.is_empty()
    }

    fn is_above(&self, other: &Self) -> bool {
        let of_environment = |origin: &Origin| matches!(origin, Origin::Environment(_));
        of_environment(&self.origin) && !of_environment(&other.origin)
    }
}

fn is_flag(command: &Command, name: &str) -> bool {
    tree::settings(command).any(|it| it.name == name && it.kind() == Kind::Flag)
}

/// True if the two options cannot be used together.
fn excludes(command: &Command, one: Setting<'_>, other: Setting<'_>) -> bool {
    let (one, other) = (one.argument, other.argument);
    let names = |from, to: &clap::Arg| {
        let rivals = command.get_arg_conflicts_with(from);
        rivals.iter().any(|rival| rival.get_id() == to.get_id())
    };
    names(one, other) || names(other, one)
}

/// Exit code after wrong options, as clap's.
const EXIT_USAGE: i32 = 2;
