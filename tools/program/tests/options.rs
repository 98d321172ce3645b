//! Options from a file and from the environment: which one counts, what is refused, and what is printed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use muse_program::options::{Faults, Layers};
use tempfile::NamedTempFile;

#[derive(Debug, Parser)]
#[command(name = "muse")]
struct Program {
    #[arg(long, global = true)]
    config: Option<PathBuf>,
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    log_format: Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    Master(Master),
    Relay(Relay),
    Bench(Bench),
    Store(Store),
    Absent(Absent),
    Config,
    #[command(hide = true)]
    Role {
        #[arg(long)]
        size: Option<u8>,
    },
}

#[derive(Args, Debug)]
struct Master {
    #[arg(long, hide_env_values = true, default_value = "muse.db")]
    database: PathBuf,
    #[arg(long, hide_env_values = true)]
    token: Option<String>,
    #[arg(long, default_value_t = 600)]
    drain_seconds: u64,
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    players: u8,
    #[arg(long = "origin")]
    origins: Vec<String>,
    #[arg(long, requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    #[arg(long, requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    #[arg(long)]
    loss: Option<f64>,
}

#[derive(Args, Debug)]
struct Relay {
    address: String,
    #[arg(long, conflicts_with = "master_keys")]
    open: bool,
    #[arg(long = "master-key")]
    master_keys: Vec<String>,
    #[arg(long)]
    room: Option<String>,
    #[arg(long, required_unless_present = "open")]
    who: Option<String>,
}

#[derive(Args, Debug)]
struct Bench {
    #[arg(long)]
    bars: bool,
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
struct Store {
    #[arg(long)]
    size: Option<u8>,
    #[command(subcommand)]
    command: Option<StoreCommand>,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    Simulate {
        #[arg(long)]
        seed: Option<u8>,
    },
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    Master {
        #[arg(long, default_value_t = 5)]
        sessions: u32,
    },
}

#[derive(Args, Debug)]
struct Absent {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<String>,
}

fn layers(environment: &[(&str, &str)]) -> Layers {
    let pair = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
    Layers::new::<Program>(environment.iter().map(pair))
        .reserved(&["MUSE_MASTER", "MUSE_MASTER_CA"])
        .exempt(&["config"])
}

fn file(text: &str) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("written");
    file
}

/// Reads a command line with a file of this text.
fn parse(text: &str, environment: &[(&str, &str)], line: &str) -> Result<Program, String> {
    let file = file(text);
    let words = line_with(file.path(), line);
    let parsed = layers(environment).parse::<Program>(words);
    parsed.map_err(|faults| faults.to_string().replace(&path(&file), "muse.toml"))
}

fn line_with(file: &Path, line: &str) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["muse".into(), "--config".into(), file.into()];
    words.extend(line.split_whitespace().map(OsString::from));
    words
}

fn path(file: &NamedTempFile) -> String {
    file.path().display().to_string()
}

fn master(parsed: Result<Program, String>) -> Master {
    match parsed.expect("valid").command {
        Command::Master(master) => master,
        other => unreachable!("asked for the master, not {other:?}"),
    }
}

fn relay(parsed: Result<Program, String>) -> Relay {
    match parsed.expect("valid").command {
        Command::Relay(relay) => relay,
        other => unreachable!("asked for the relay, not {other:?}"),
    }
}

fn faults(text: &str) -> String {
    parse(text, &[], "master").expect_err("refused")
}

#[test]
fn the_command_line_beats_the_environment_which_beats_the_file() {
    let text = "[master]\ndrain-seconds = 1\n";
    let variable = [("MUSE_MASTER_DRAIN_SECONDS", "2")];
    assert_eq!(master(parse("", &[], "master")).drain_seconds, 600);
    assert_eq!(master(parse(text, &[], "master")).drain_seconds, 1);
    assert_eq!(master(parse(text, &variable, "master")).drain_seconds, 2);
    let typed = master(parse(text, &variable, "master --drain-seconds 3"));
    assert_eq!(typed.drain_seconds, 3);
}

#[test]
fn a_variable_names_the_file_and_the_command_line_names_another_one() {
    let (named, other) = (
        file("[master]\nplayers = 3\n"),
        file("[master]\nplayers = 4\n"),
    );
    let layers = layers(&[("MUSE_CONFIG", &path(&named))]);
    let players = |words: Vec<OsString>| {
        let parsed = layers.parse::<Program>(words);
        master(parsed.map_err(|faults| faults.to_string())).players
    };
    assert_eq!(players(vec!["muse".into(), "master".into()]), 3);
    assert_eq!(players(line_with(other.path(), "master")), 4);
    let mut behind = vec!["muse".into(), "master".into(), "--config".into()];
    behind.push(other.path().into());
    assert_eq!(players(behind), 4);
}

#[test]
fn every_kind_of_value_can_be_in_a_file() {
    let text = "log-format = \"json\"\n[master]\ndatabase = \"/srv/game data/muse.db\"\nloss = 0.25\n\
        origin = [\"https://a.example\", \"https://b.example\"]\nplayers = 0x10\n[relay]\nopen = true\nroom = \"-x\"\n";
    let parsed = parse(text, &[], "master").expect("valid");
    assert_eq!(parsed.log_format, Format::Json);
    let master = master(Ok(parsed));
    assert_eq!(master.database, PathBuf::from("/srv/game data/muse.db"));
    assert_eq!(master.loss, Some(0.25));
    assert_eq!(master.players, 16);
    assert_eq!(master.origins, ["https://a.example", "https://b.example"]);
    let relay = relay(parse(text, &[], "relay 127.0.0.1:0"));
    assert!(relay.open);
    assert_eq!(relay.room.as_deref(), Some("-x"));
    assert_eq!(relay.address, "127.0.0.1:0");
}

#[test]
fn every_kind_of_value_can_be_in_the_environment() {
    let environment = [
        ("MUSE_LOG_FORMAT", "json"),
        ("MUSE_MASTER_DATABASE", "/srv/game data/muse.db"),
        ("MUSE_MASTER_ORIGIN", "https://a.example, https://b.example"),
        ("MUSE_MASTER_PLAYERS", ""),
        ("MUSE_RELAY_OPEN", "true"),
    ];
    let parsed = parse("", &environment, "master").expect("valid");
    assert_eq!(parsed.log_format, Format::Json);
    let master = master(Ok(parsed));
    assert_eq!(master.database, PathBuf::from("/srv/game data/muse.db"));
    assert_eq!(master.origins, ["https://a.example", "https://b.example"]);
    assert_eq!(master.players, 2, "an empty variable is as none");
    assert!(relay(parse("", &environment, "relay 127.0.0.1:0")).open);
}

#[test]
fn a_list_on_the_command_line_replaces_that_of_the_file() {
    let text = "[master]\norigin = [\"https://a.example\", \"https://b.example\"]\n";
    let typed = master(parse(text, &[], "master --origin https://c.example"));
    assert_eq!(typed.origins, ["https://c.example"]);
}

#[test]
fn a_flag_of_the_file_is_lowered_by_the_environment() {
    let text = "[relay]\nopen = true\nwho = \"me\"\n";
    let lowered = [("MUSE_RELAY_OPEN", "false")];
    assert!(!relay(parse(text, &lowered, "relay 127.0.0.1:0")).open);
}

#[test]
fn commands_inside_of_commands_have_tables_inside_of_tables() {
    let text = "[bench]\nbars = true\n[bench.master]\nsessions = 9\n[master]\nplayers = 7\n";
    let parsed = parse(text, &[], "bench master").expect("valid");
    let Command::Bench(Bench {
        bars,
        command: BenchCommand::Master { sessions },
    }) = parsed.command
    else {
        unreachable!("asked for the benchmark");
    };
    assert!(bars);
    assert_eq!(sessions, 9);
    let typed = parse(text, &[], "bench master --sessions 3").expect("valid");
    let Command::Bench(Bench {
        command: BenchCommand::Master { sessions },
        ..
    }) = typed.command
    else {
        unreachable!("asked for the benchmark");
    };
    assert_eq!(sessions, 3);
}

#[test]
fn options_that_a_command_inside_excludes_are_left_out() {
    let text = "[store]\nsize = 3\n[store.simulate]\nseed = 4\n";
    let store = |line| match parse(text, &[], line).expect("valid").command {
        Command::Store(store) => store,
        other => unreachable!("asked for the store, not {other:?}"),
    };
    let inside = store("store simulate");
    assert_eq!(inside.size, None);
    assert!(matches!(
        inside.command,
        Some(StoreCommand::Simulate { seed: Some(4) })
    ));
    assert_eq!(store("store").size, Some(3));
}

#[test]
fn what_is_typed_turns_off_what_it_excludes() {
    let text = "[relay]\nmaster-key = [\"aa\"]\nwho = \"me\"\n";
    let relay = relay(parse(text, &[], "relay 127.0.0.1:0 --open"));
    assert!(relay.open && relay.master_keys.is_empty());
    let both = format!("{text}open = true\n");
    let fault = parse(&both, &[], "relay 127.0.0.1:0").expect_err("they exclude each other");
    assert!(fault.contains("cannot be used with"), "{fault}");
    assert!(fault.contains("--open is from muse.toml:4"), "{fault}");
}

#[test]
fn options_that_need_each_other_may_come_from_two_places() {
    let text = "[master]\ntls-key = \"key.pem\"\n";
    let both = master(parse(text, &[], "master --tls-cert cert.pem"));
    assert_eq!(both.tls_key, Some(PathBuf::from("key.pem")));
    let fault = parse(text, &[], "master").expect_err("the certificate is missing");
    assert!(fault.contains("--tls-cert"), "{fault}");
}

#[test]
fn a_file_may_hold_what_is_required() {
    let held = relay(parse(
        "[relay]\nwho = \"me\"\n",
        &[],
        "relay 127.0.0.1:0 --room x",
    ));
    assert_eq!(held.who.as_deref(), Some("me"));
    assert_eq!(held.room.as_deref(), Some("x"));
}

#[test]
fn unknown_keys_name_the_file_the_line_and_the_nearest_key() {
    assert_eq!(
        faults("\n[master]\ndrain-s = 5\n"),
        "error: muse.toml:3: master.drain-s: `muse master` has no such option; is drain-seconds meant?"
    );
    assert_eq!(
        faults("[mastre]\nplayers = 5\n"),
        "error: muse.toml:1: mastre: `muse` has no such option; is master meant?"
    );
    assert_eq!(
        faults("[relay]\nsessions = 5\n"),
        "error: muse.toml:2: relay.sessions: `muse relay` has no such option; is it meant for [bench.master]?"
    );
    assert_eq!(
        faults("master = 5\n"),
        "error: muse.toml:1: master: `muse master` is a command: write [master]"
    );
}

#[test]
fn wrong_values_name_the_file_the_line_and_the_key() {
    assert_eq!(
        faults("[master]\nplayers = 65\n"),
        "error: muse.toml:2: master.players: 65 is not in 1..=64"
    );
    assert_eq!(
        faults("log-format = \"xml\"\n"),
        "error: muse.toml:1: log-format: it must be one of text, json"
    );
    assert_eq!(
        faults("[relay]\nopen = 1\n"),
        "error: muse.toml:2: relay.open: it must be true or false"
    );
    assert_eq!(
        faults("[master]\nplayers = [1, 2]\n"),
        "error: muse.toml:2: master.players: it takes one value, not a list"
    );
    assert_eq!(
        faults("[master]\ndatabase = 2026-01-01\n"),
        "error: muse.toml:2: master.database: it must be a string or a number, not a datetime"
    );
    assert_eq!(
        faults("[master]\nplayers = 3\nplayers = 4\n"),
        "error: muse.toml:3: duplicate key"
    );
    assert_eq!(
        faults("config = \"other.toml\"\n").split(';').next(),
        Some("error: muse.toml:1: config: `muse config` is a command: write [config]")
    );
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let fault = parse(
        "[master]\nplayers = 65\n[bench.master]\nrate = 1\n",
        &[("MUSE_MASTER_PLAYER", "3")],
        "master",
    )
    .expect_err("refused");
    assert_eq!(
        fault,
        "error: MUSE_MASTER_PLAYER in the environment: no option has this name; is MUSE_MASTER_PLAYERS meant?\n\
         error: muse.toml:2: master.players: 65 is not in 1..=64\n\
         error: muse.toml:4: bench.master.rate: `muse bench master` has no such option"
    );
}

#[test]
fn a_variable_without_its_command_is_refused() {
    let fault = parse("", &[("MUSE_DATABASE", "postgres://db/muse")], "master");
    assert_eq!(
        fault.expect_err("refused"),
        "error: MUSE_DATABASE in the environment: no option has this name; is MUSE_MASTER_DATABASE meant?"
    );
}

#[test]
fn variables_of_other_things_are_left_alone() {
    let others = [
        ("MUSE_MASTER", "http://127.0.0.1:1"),
        ("MUSE_MASTER_CA", "ca.pem"),
        ("MUSE_MASTER_SERVICE_HOST", "10.0.0.1"),
        ("MUSE_MASTER_PORT", "tcp://10.0.0.1:7777"),
        ("MUSE_ABSENT_SIZE", "3"),
        ("MUSE_ROLE_SIZE", "3"),
        ("MUSE_SEEDS", "3"),
    ];
    assert_eq!(master(parse("", &others, "master")).players, 2);
}

#[test]
fn tables_of_what_is_not_built_in_are_left_alone() {
    let text = "[absent]\nanything = 1\n[absent.inside]\nmore = 2\n";
    assert_eq!(master(parse(text, &[], "master")).players, 2);
    assert!(parse("[role]\nsize = 1\n", &[], "master").is_err());
}

#[test]
fn a_missing_file_and_one_that_is_no_toml_are_refused() {
    let words = line_with(Path::new("no-such-file.toml"), "master");
    let fault = layers(&[]).parse::<Program>(words).expect_err("missing");
    assert!(fault.to_string().contains("cannot read no-such-file.toml"));
    let fault = faults("[master]\nplayers = = 3\n");
    assert!(fault.starts_with("error: muse.toml:2: "), "{fault}");
    let fault = faults(&format!("#{}", "x".repeat(1 << 20)));
    assert!(fault.contains("more than 1048576 bytes"), "{fault}");
    let fault = faults(&format!("[master]\norigin = {}", "[".repeat(10_000)));
    assert!(fault.starts_with("error: muse.toml:2: "), "{fault}");
}

#[test]
fn commands_that_check_run_whatever_the_file_says() {
    assert!(parse("[master]\nplayers = 65\n", &[], "config").is_ok());
}

#[test]
fn a_wrong_command_line_is_told_as_ever() {
    let fault = parse("[master]\nplayers = 3\n", &[], "master --playerz 4").expect_err("wrong");
    assert!(
        fault.contains("'--playerz'") && fault.contains("--players"),
        "{fault}"
    );
    let help = parse("", &[], "master --help").expect_err("help");
    assert!(help.contains("Usage: muse master"), "{help}");
}

#[test]
fn checking_counts_what_is_set() {
    let file = file("[master]\nplayers = 3\ndrain-seconds = 4\n");
    let layers = layers(&[("MUSE_MASTER_ORIGIN", "https://a.example")]);
    let checked = layers.check(Some(file.path())).expect("valid");
    assert_eq!((checked.in_file, checked.in_environment), (2, 1));
    assert_eq!(checked.file.as_deref(), Some(file.path()));
    assert_eq!(layers.check(None).expect("valid").file, None);
}

#[test]
fn printing_says_of_each_value_where_it_is_from() {
    let text = "[master]\nplayers = 3\norigin = [\"https://\\\"a\\\".example\"]\ndatabase = \"postgres://me:pa@ss@db/muse\"\n";
    let (file, environment) = (file(text), [("MUSE_MASTER_TOKEN", "hunter2")]);
    let words = line_with(file.path(), "master --drain-seconds 5");
    let printed = layers(&environment).print(words).expect("valid");
    assert_eq!(
        printed.replace(&path(&file), "muse.toml"),
        "log-format = \"text\" # default\n\
         \n\
         [master]\n\
         database = \"postgres://***\" # muse.toml:4\n\
         token = \"***\" # MUSE_MASTER_TOKEN in the environment\n\
         drain-seconds = 5 # command line\n\
         players = 3 # muse.toml:2\n\
         origin = [\"https://\\\"a\\\".example\"] # muse.toml:3\n\
         # tls-cert is not set\n\
         # tls-key is not set\n\
         # loss is not set\n"
    );
}

#[test]
fn what_is_printed_can_be_read_as_a_file() {
    let environment = [("MUSE_MASTER_PLAYERS", "5"), ("MUSE_RELAY_OPEN", "true")];
    let values = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.split(" # ").next());
        lines.flatten().map(str::to_owned).collect()
    };
    for line in [
        "master --origin https://a.example",
        "relay 127.0.0.1:0",
        "bench master",
    ] {
        let print = |text: &str, environment: &[(&str, &str)]| {
            let file = file(text);
            let printed = layers(environment).print(line_with(file.path(), line));
            printed.map_err(|faults: Faults| faults.to_string())
        };
        let printed = print("", &environment).expect("valid");
        let again = print(&printed, &[]).expect("valid");
        assert_eq!(values(&printed), values(&again));
    }
}

#[test]
fn secrets_are_hidden_but_not_what_they_lead_to() {
    let printed = |database: &str| {
        let file = file(&format!("[master]\ndatabase = \"{database}\"\n"));
        let printed = layers(&[]).print(line_with(file.path(), "master"));
        let printed = printed.expect("valid");
        let line = printed.lines().find(|it| it.starts_with("database"));
        let value = line.and_then(|line| line.split('"').nth(1));
        value.expect("a value").to_owned()
    };
    assert_eq!(printed("/srv/muse.db"), "/srv/muse.db");
    assert_eq!(printed("postgres://db/muse"), "postgres://db/muse");
    assert_eq!(
        printed("postgres://me:secret@db/muse"),
        "postgres://***@db/muse"
    );
    assert_eq!(printed("postgres://me:sec@ret@db/muse"), "postgres://***");
    assert_eq!(
        printed("postgres://db/muse?password=secret"),
        "postgres://***"
    );
    assert_eq!(printed("postgres://me:sec?ret@db/muse"), "postgres://***");
}
