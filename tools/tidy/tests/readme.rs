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
fn the_programs_of_the_start_pages_are_the_examples_that_are_tested() {
    let pages = [
        ("start-messages", "chat"),
        ("start-game", "tag"),
        ("start-friend", "friend"),
        ("start-rollback", "sumo"),
        ("start-master", "race"),
    ];
    for (page, example) in pages {
        let shown = program(&read(&format!("docs/guide/{page}.md")), "```rust\n");
        // A test that runs parts of an example needs to see them; a reader does not.
        let tested = read(&format!("crates/muse/examples/{example}.rs")).replace("pub(crate) ", "");
        assert_eq!(
            shown, tested,
            "{page}.md shows another program than {example}.rs"
        );
        assert!(tested.lines().count() <= 120, "{example}.rs is short");
    }
}

#[test]
fn contributors_are_told_how_many_targets_are_fuzzed_and_for_how_long() {
    let page = read("CONTRIBUTING.md");
    let script = read("scripts/fuzz-smoke.sh");
    let (_, case) = script.split_once("case $1 in").expect("times by target");
    let (patterns, _) = case.split_once(')').expect("the first case");
    let is_strangers = |name: &str| {
        patterns
            .split('|')
            .any(|pattern| match pattern.trim().strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == pattern.trim(),
            })
    };
    let folder = repository_root().join("fuzz/fuzz_targets");
    let files = std::fs::read_dir(folder).expect("the folder is there");
    let names: Vec<String> = files
        .map(|file| file.expect("it can be read").path())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    let strangers = names.iter().filter(|name| is_strangers(name)).count();
    for counted in [
        format!("for each of {} targets", names.len()),
        format!("each of the {} fuzz targets", names.len()),
        format!("each of those {strangers} among them"),
    ] {
        assert!(page.contains(&counted), "CONTRIBUTING.md: {counted:?}");
    }
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
            if target.contains("://") {
                continue;
            }
            let (path, place) = target.split_once('#').unwrap_or((target, ""));
            let page = match path {
                "" => repository_root().join(&file.path),
                path => repository_root().join(folder).join(path),
            };
            let leads = page.exists() && (place.is_empty() || has_place(&page, place));
            if !leads {
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

/// True if a page has a heading that is linked to by this name. Places in other files are not looked for.
fn has_place(page: &std::path::Path, place: &str) -> bool {
    if page.extension().is_none_or(|extension| extension != "md") {
        return true;
    }
    let text = std::fs::read_to_string(page).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.into_iter().any(|heading| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let name: String = words
            .chars()
            .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter))
            .map(|letter| if letter == ' ' { '-' } else { letter })
            .collect();
        name == place
    })
}
