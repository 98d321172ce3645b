//! Files: how long, how they begin, and what none of them may contain.

use muse_tidy::{File, code_only, functions, repository_files};

const FILE_LINES_MAX: usize = 1_000;
const FUNCTION_LINES_MAX: usize = 100;
/// Crates whose code has neither clocks nor sockets nor threads.
const CORES: [&str; 11] = [
    "wire",
    "schema",
    "netem",
    "transport",
    "rp",
    "relay",
    "relay-v1",
    "netcode",
    "lagcomp",
    "lockstep",
    "master-client",
];
/// Folders of code that speaks with strangers; simulations and benchmarks do not.
const FACING_THE_NETWORK: [&str; 14] = [
    "crates/wire/",
    "crates/schema/",
    "crates/transport/",
    "crates/relay/",
    "crates/netcode/",
    "crates/lagcomp/",
    "crates/lockstep/",
    "crates/master-client/",
    "crates/master/",
    "crates/drivers/",
    "crates/muse/",
    "legacy/",
    "game/biobot/",
    "tools/proxy/",
];
/// Crates that may contain unsafe code.
const MAY_BE_UNSAFE: [&str; 4] = [
    "crates/drivers/",
    "bindings/capi/",
    "fuzz/src/capi.rs",
    "fuzz/src/cost.rs",
];

fn rust_files() -> Vec<File> {
    repository_files()
        .into_iter()
        .filter(File::is_rust)
        .collect()
}

fn assert_none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// The places of `words` in `text`, as whole words.
fn places(file: &File, text: &str, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for word in words {
            let inside = |letter: char| letter.is_alphanumeric() || letter == '_';
            let whole = line.match_indices(word).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let after = line[at + word.len()..].chars().next();
                !before.is_some_and(inside) && !after.is_some_and(inside)
            });
            if whole {
                found.push(format!("{}:{}: {word}", file.path, index + 1));
            }
        }
    }
    found
}

#[test]
fn files_are_short_enough_to_read() {
    let long = |file: &File| {
        let lines = file.text.lines().count();
        (lines > FILE_LINES_MAX).then(|| format!("{}: {lines} lines", file.path))
    };
    let found = rust_files().iter().filter_map(long).collect();
    assert_none("files of more than 1,000 lines", found);
}

#[test]
fn functions_are_short_enough_to_read() {
    let mut found = Vec::new();
    for file in rust_files() {
        for function in functions(&code_only(&file.text)) {
            if function.lines > FUNCTION_LINES_MAX {
                let (name, line, lines) = (function.name, function.line, function.lines);
                found.push(format!("{}:{line}: {name} has {lines} lines", file.path));
            }
        }
    }
    assert_none("functions of more than 100 lines", found);
}

#[test]
fn every_module_says_what_it_is() {
    let silent = |file: &&File| {
        // What a compile-fail test compiles is quoted line by line, and a fuzz target is three lines.
        let exempt = file.path.contains("/tests/declarations/")
            || file.path.starts_with("fuzz/fuzz_targets/");
        let mut lines = file.text.lines().filter(|line| !line.starts_with("#!["));
        !exempt && !lines.next().is_some_and(|line| line.starts_with("//!"))
    };
    let found = rust_files()
        .iter()
        .filter(silent)
        .map(|file| file.path.clone())
        .collect();
    assert_none("files that do not open with //!", found);
}

#[test]
fn doc_comments_open_with_what_the_item_does() {
    let openings = ["What ", "Whether ", "How ", "Who ", "Where "];
    let mut found = Vec::new();
    for file in rust_files() {
        let mut inside = false;
        for (index, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            let text = line.strip_prefix("///").or(line.strip_prefix("//!"));
            let text = text.map(str::trim_start);
            let opens = |text: &str| openings.iter().any(|word| text.starts_with(word));
            if !inside && text.is_some_and(opens) {
                found.push(format!("{}:{}: {line}", file.path, index + 1));
            }
            inside = text.is_some();
        }
    }
    assert_none(
        "doc comments that open with a question instead of what the item does",
        found,
    );
}

#[test]
fn nothing_is_left_for_later() {
    let mut found = Vec::new();
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ];
    for file in repository_files() {
        // Published protocol files are as their authors published them.
        let is_foreign = file.path.ends_with(".lock") || file.path.ends_with(".proto");
        if is_foreign || file.path == "Cargo.toml" {
            continue;
        }
        found.extend(places(&file, &file.text, &marks));
        if file.is_rust() {
            let code = code_only(&file.text);
            found.extend(places(
                &file,
                &code,
                &[concat!("to", "do!"), concat!("unimple", "mented!")],
            ));
        }
    }
    assert_none("things left for later", found);
}

#[test]
fn unsafe_code_stays_in_the_drivers() {
    let mut found = Vec::new();
    for file in rust_files() {
        let counting = file.path.contains("/tests/") || file.path.starts_with("bench/");
        if counting
            || MAY_BE_UNSAFE
                .iter()
                .any(|folder| file.path.starts_with(folder))
        {
            continue;
        }
        found.extend(places(&file, &code_only(&file.text), &["unsafe"]));
    }
    assert_none("unsafe code outside the drivers", found);
}

#[test]
fn cores_have_no_clocks_threads_or_sockets() {
    let banned = [
        "std::time::Instant",
        "std::time::SystemTime",
        "SystemTime",
        "std::thread",
        "thread::spawn",
        "UdpSocket",
        "TcpStream",
        "TcpListener",
        "tokio",
        "async",
        "getrandom",
    ];
    let mut found = Vec::new();
    for file in rust_files() {
        let core = file
            .crate_folder()
            .is_some_and(|folder| CORES.contains(&folder));
        if core && file.path.contains("/src/") && !file.path.contains("/derive/") {
            found.extend(places(&file, &code_only(&file.text), &banned));
        }
    }
    assert_none("clocks, threads, sockets or async code in a core", found);
}

#[test]
fn no_unkeyed_map_has_keys_that_strangers_choose() {
    let foreign = [
        "String",
        "str",
        "IpAddr",
        "Ipv4Addr",
        "Ipv6Addr",
        "SocketAddr",
        "Vec",
        "u8",
    ];
    let mut found = Vec::new();
    for file in rust_files() {
        let facing = FACING_THE_NETWORK
            .iter()
            .any(|folder| file.path.starts_with(folder));
        if !facing || !file.path.contains("/src/") {
            continue;
        }
        let code = code_only(&file.text);
        for (index, line) in code.lines().enumerate() {
            let keys = ["FxHashMap<", "FxHashSet<"].map(|map| line.split(map).skip(1));
            for key in keys.into_iter().flatten().map(first_argument) {
                let mut words =
                    key.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
                // A parameter may be anything; what the program's own text says is nobody's choice.
                if !key.contains("'static")
                    && words.any(|word| foreign.contains(&word) || word.len() == 1)
                {
                    found.push(format!("{}:{}: {key}", file.path, index + 1));
                }
            }
        }
    }
    assert_none(
        "maps hashed without a secret, by keys that strangers choose (muse_wire::keyed, or a BTreeMap)",
        found,
    );
}

/// The first of the arguments that `text` begins with, up to the comma or bracket after it.
fn first_argument(text: &str) -> &str {
    let mut depth = 0;
    let end = text.find(|letter: char| {
        match letter {
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' => depth -= 1,
            _ => {}
        }
        depth < 0 || (depth == 0 && letter == ',')
    });
    text[..end.unwrap_or(text.len())].trim()
}

#[test]
fn no_path_of_a_machine_is_in_the_tree() {
    let paths = [
        concat!("/wo", "rk/"),
        concat!("/fa", "rm/"),
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
    ];
    let mut found = Vec::new();
    for file in repository_files() {
        for (index, line) in file.text.lines().enumerate() {
            if paths.iter().any(|path| line.contains(path)) {
                found.push(format!("{}:{}: {}", file.path, index + 1, line.trim()));
            }
        }
    }
    assert_none("paths of a machine", found);
}
