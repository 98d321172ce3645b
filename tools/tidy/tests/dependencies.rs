//! Dependencies: which crate may use which, where versions are declared, which licences are taken.

use std::collections::BTreeSet;
use std::process::Command;

use muse_tidy::{File, repository_files, repository_root};
use serde_json::Value;

/// The crates of ours that each crate may use, as the table in `ARCHITECTURE.md` says; `*` stands for everything.
const DIRECTIONS: [(&str, &[&str]); 30] = [
    ("muse-wire", &[]),
    ("muse-schema-derive", &[]),
    ("muse-schema", &["muse-wire", "muse-schema-derive"]),
    ("muse-netem", &["muse-wire"]),
    ("muse-transport", &["muse-wire", "muse-schema"]),
    ("muse-rp", &["muse-wire"]),
    ("muse-rp-driver", &["muse-wire", "muse-rp", "muse-drivers"]),
    ("muse-relay", &["muse-wire", "muse-transport"]),
    ("muse-relay-v1", &["muse-wire"]),
    (
        "muse-stream",
        &["muse-wire", "muse-relay-v1", "muse-drivers"],
    ),
    ("muse-netcode", &["muse-wire", "muse-schema"]),
    (
        "muse-lagcomp",
        &["muse-wire", "muse-schema", "muse-netcode"],
    ),
    ("muse-lockstep", &["muse-wire", "muse-schema"]),
    ("muse-master-client", &["muse-wire"]),
    (
        "muse-master",
        &[
            "muse-wire",
            "muse-transport",
            "muse-relay",
            "muse-master-client",
            "muse-drivers",
        ],
    ),
    (
        "muse-drivers",
        &[
            "muse-wire",
            "muse-transport",
            "muse-relay",
            "muse-master-client",
        ],
    ),
    (
        "muse-net",
        &[
            "muse-wire",
            "muse-schema",
            "muse-transport",
            "muse-netcode",
            "muse-lagcomp",
            "muse-lockstep",
            "muse-master-client",
            "muse-drivers",
        ],
    ),
    ("muse-bevy", &["muse-net"]),
    ("muse-capi", &["muse-net"]),
    ("muse-typescript", &["muse-net"]),
    (
        "muse-biobot-web",
        &["muse-net", "muse-netem", "muse-biobot"],
    ),
    ("muse-relay-web", &["muse-net"]),
    ("muse-bench-workload", &[]),
    ("muse-tidy", &[]),
    (
        "muse-program",
        &[
            "muse-wire",
            "muse-relay",
            "muse-relay-v1",
            "muse-stream",
            "muse-drivers",
        ],
    ),
    (
        "muse-proxy",
        &["muse-wire", "muse-netem", "muse-drivers", "muse-program"],
    ),
    (
        "muse-bench",
        &[
            "muse-wire",
            "muse-schema",
            "muse-netem",
            "muse-transport",
            "muse-relay",
            "muse-relay-v1",
            "muse-netcode",
            "muse-lockstep",
            "muse-master-client",
            "muse-master",
            "muse-drivers",
            "muse-net",
            "muse-program",
            "muse-proxy",
            "muse-bench-workload",
            "muse-biobot",
        ],
    ),
    ("muse-lab", &["*"]),
    ("muse-cli", &["*"]),
    ("muse-biobot", &["muse-net", "muse-netem"]),
];
/// Crates that a crate's tests and examples may use besides: the virtual network, sockets, and types to send.
const IN_TESTS: [&str; 3] = ["muse-netem", "muse-drivers", "muse-schema"];
/// Licences that may be linked into a game; the same as in `deny.toml`.
const LICENCES: [&str; 11] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
];

/// Returns cargo's metadata of the workspace; with `all`, of everything it can be built from.
fn metadata(all: bool) -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command
        .current_dir(repository_root())
        .args(["metadata", "--format-version", "1"]);
    command.arg(if all { "--all-features" } else { "--no-deps" });
    let output = command.output().expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo writes JSON")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn crates_use_only_what_lies_below_them() {
    let metadata = metadata(false);
    let mut wrong = Vec::new();
    for package in array(&metadata["packages"]) {
        let name = package["name"].as_str().expect("packages have names");
        let Some((_, allowed)) = DIRECTIONS.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!("{name} has no line in the table of directions"));
            continue;
        };
        for dependency in array(&package["dependencies"]) {
            let used = dependency["name"]
                .as_str()
                .expect("dependencies have names");
            let ours = DIRECTIONS.iter().any(|(known, _)| *known == used);
            let in_tests = dependency["kind"].as_str() == Some("dev") && IN_TESTS.contains(&used);
            if ours
                && !in_tests
                && !allowed.contains(&"*")
                && !allowed.contains(&used)
                && used != name
            {
                wrong.push(format!("{name} uses {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "directions:\n  {}", wrong.join("\n  "));
}

/// Without optional features a game compiles no geometry and no relay, and `make play` no older protocols.
#[test]
fn nobody_compiles_what_is_not_asked_for() {
    for (package, left_out) in [
        ("muse-net", &["parry3d", "muse-lagcomp", "muse-relay"][..]),
        ("muse-bevy", &["parry3d", "muse-lagcomp", "muse-relay"]),
        ("muse-cli", &["muse-rp", "muse-relay-v1", "muse-stream"]),
    ] {
        let used = dependencies(package);
        assert!(used.contains("muse-transport"), "{package}: {used:?}");
        for name in left_out {
            assert!(!used.contains(*name), "{package} compiles {name}");
        }
    }
}

/// Returns everything that a package is built from with its default features.
fn dependencies(package: &str) -> BTreeSet<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .current_dir(repository_root())
        .args(["tree", "--edges", "normal", "--prefix", "none", "--package"])
        .arg(package)
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn versions_are_declared_once() {
    let manifest = |file: &&File| {
        let apart = [
            "bench/peers/",
            "bindings/bevy/window/",
            "bindings/capi/header/",
            "fuzz/",
            "game/web/bindgen/",
        ]
        .iter()
        .any(|folder| file.path.starts_with(folder));
        file.path.ends_with("/Cargo.toml") && !apart
    };
    let files = repository_files();
    let mut wrong = Vec::new();
    for file in files.iter().filter(manifest) {
        let mut in_dependencies = false;
        for line in file.text.lines() {
            if line.starts_with('[') {
                in_dependencies = line.contains("dependencies");
            } else if in_dependencies && line.contains('=') && !line.starts_with('#') {
                let inherits =
                    line.contains("workspace = true") || line.contains(".workspace=true");
                if !inherits {
                    wrong.push(format!("{}: {line}", file.path));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "not `workspace = true`:\n  {}",
        wrong.join("\n  ")
    );
}

#[test]
fn licences_are_permissive() {
    let metadata = metadata(true);
    let mut wrong = BTreeSet::new();
    for package in array(&metadata["packages"]) {
        let licence = package["license"]
            .as_str()
            .unwrap_or("none")
            .replace('/', " OR ");
        let plain = licence.replace(['(', ')'], "");
        // Every part that is joined by AND must offer a choice that we take.
        let accepted = plain.split(" AND ").all(|part| {
            part.split(" OR ")
                .any(|choice| LICENCES.contains(&choice.trim()))
        });
        if !accepted {
            wrong.insert(format!(
                "{} {}: {licence}",
                package["name"], package["version"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "licences:\n  {}",
        wrong.into_iter().collect::<Vec<_>>().join("\n  ")
    );
}

/// `rand` comes by way of others and is never used by us; `deny.toml` names those others, all of them and none besides.
#[test]
fn randomness_comes_from_elsewhere_by_known_ways_only() {
    let metadata = metadata(true);
    let uses_rand = |node: &&Value| array(&node["deps"]).iter().any(|it| it["name"] == "rand");
    let nodes = array(&metadata["resolve"]["nodes"]).iter();
    let users: BTreeSet<&str> = nodes
        .filter(uses_rand)
        .filter_map(|node| node["id"].as_str())
        .collect();
    let is_user = |package: &&Value| package["id"].as_str().is_some_and(|id| users.contains(id));
    let packages = array(&metadata["packages"]).iter().filter(is_user);
    let used: BTreeSet<&str> = packages
        .filter_map(|package| package["name"].as_str())
        .collect();
    let path = repository_root().join("deny.toml");
    let deny = std::fs::read_to_string(path).expect("deny.toml is there");
    let line = deny.lines().find(|line| line.contains(r#"crate = "rand""#));
    let (_, named) = line
        .and_then(|line| line.split_once("wrappers = ["))
        .expect("a list");
    let (named, _) = named.split_once(']').expect("a list");
    let named = named.split(',').map(|name| name.trim().trim_matches('"'));
    assert_eq!(used, named.collect());
}

#[test]
fn everything_comes_from_the_registry() {
    let metadata = metadata(true);
    let elsewhere = |package: &&Value| {
        let source = package["source"].as_str();
        source.is_some_and(|source| {
            !source.starts_with("registry+") && !source.starts_with("sparse+")
        })
    };
    let found: Vec<&Value> = array(&metadata["packages"])
        .iter()
        .filter(elsewhere)
        .map(|package| &package["id"])
        .collect();
    assert!(found.is_empty(), "not from a registry: {found:?}");
}
