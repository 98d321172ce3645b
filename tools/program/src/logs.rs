//! Log lines of programs: on standard error, as text for people or as JSON for collectors.

use std::ffi::OsStr;
use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people, in colour on a terminal unless NO_COLOR is set.
    #[default]
    Text,
    /// A JSON object on each line, for programs that collect logs.
    Json,
}

impl LogFormat {
    /// Starts to log what `RUST_LOG` asks for, by default warnings and errors.
    pub fn start(self) {
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
        let lines = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr);
        match self {
            Self::Text => {
                let no_color = std::env::var_os("NO_COLOR");
                let is_terminal = std::io::stderr().is_terminal();
                let ansi = is_in_colour(is_terminal, no_color.as_deref());
                lines.with_ansi(ansi).init();
            }
            Self::Json => lines.json().flatten_event(true).init(),
        }
    }

    /// Tells people what the program does now; collectors find it at the level `info`.
    pub fn say(self, text: &str) {
        match self {
            Self::Text => eprintln!("{text}"),
            Self::Json => tracing::info!("{text}"),
        }
    }

    /// Tells why the program ends.
    pub fn fail(self, error: &anyhow::Error) {
        match self {
            Self::Text => eprintln!("error: {error:#}"),
            Self::Json => tracing::error!("{error:#}"),
        }
    }

    /// Returns the word that chooses it on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

fn is_in_colour(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_of_those_who_want_them() {
        assert!(is_in_colour(true, None));
        assert!(is_in_colour(true, Some(OsStr::new(""))));
        assert!(!is_in_colour(true, Some(OsStr::new("1"))));
        assert!(!is_in_colour(false, None));
    }

    #[test]
    fn a_format_is_chosen_by_its_word() {
        for format in LogFormat::value_variants() {
            assert_eq!(LogFormat::from_str(format.word(), false), Ok(*format));
        }
    }
}
