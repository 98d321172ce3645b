//! The first page: its program is the one that the library's documentation compiles and runs.

use muse_tidy::{repository_files, repository_root};

fn read(path: &str) -> String {
    std::fs::read_to_string(repository_root().join(path)).expect("the file is there")
}

/// The first block of code after `opening`.
fn program(text: &str, opening: &str) -> String {
    let (_, after) = text.split_once(opening).expect("a block of code");
    let (code, _) = after.split_once("```").expect("its end");
    code.to_owned()
}

#[test]
fn the_program_is_the_one_that_is_tested() {
    let library: String = read("crates/muse/src/lib.rs")
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)))
        .collect();
    let tested = program(&library, "```\n");
    assert!(tested.lines().count() <= 40, "a newcomer reads 40 lines");
    assert_eq!(program(&read("README.md"), "```rust\n"), tested);
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for file in repository_files() {
        if !file.path.ends_with(".md") {
            continue;
        }
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for part in file.text.split("](").skip(1) {
            let target = part.split(')').next().unwrap_or_default();
            let outside = target.contains("://") || target.starts_with('#');
            let path = target.split('#').next().unwrap_or_default();
            if !outside && !repository_root().join(folder).join(path).exists() {
                broken.push(format!("{}: {target}", file.path));
            }
        }
    }
    assert!(
        broken.is_empty(),
        "broken links:\n  {}",
        broken.join("\n  ")
    );
}
