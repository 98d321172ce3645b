//! Every input of every corpus, as a plain test: nothing that must hold breaks, and none costs more than it may.

use std::fs;
use std::path::{Path, PathBuf};

use muse_fuzz::cost::counts_steps;
use muse_fuzz::{Cost, TARGETS};

#[test]
fn every_input_holds_and_costs_no_more_than_it_may() {
    assert!(
        counts_steps(),
        "there are no counters: run this in fuzz/, without RUSTFLAGS"
    );
    for target in TARGETS {
        let inputs = inputs(target.name);
        assert!(!inputs.is_empty(), "{} has no corpus", target.name);
        assert!(inputs.len() <= INPUTS_MAX, "{}: minimise", target.name);
        for input in &inputs {
            let data = fs::read(input).expect("a file of the corpus");
            println!("{}", input.display());
            let Cost { steps, .. } = target.run(&data);
            assert!(steps > 0, "nothing was counted");
        }
    }
}

#[test]
fn corpora_are_small_and_belong_to_targets() {
    let mut bytes = 0;
    for folder in fs::read_dir(corpus()).expect("there is a corpus").flatten() {
        let name = folder.file_name();
        let known = TARGETS.iter().any(|target| *target.name == name);
        assert!(known, "{} has no target", name.display());
        for input in fs::read_dir(folder.path()).expect("a folder").flatten() {
            bytes += input.metadata().expect("a file").len();
        }
    }
    assert!(bytes <= BYTES_MAX, "the corpora have {bytes} bytes");
}

fn inputs(name: &str) -> Vec<PathBuf> {
    let folder = fs::read_dir(corpus().join(name)).into_iter().flatten();
    let mut inputs: Vec<PathBuf> = folder.flatten().map(|input| input.path()).collect();
    inputs.sort();
    inputs
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Inputs of one target.
const INPUTS_MAX: usize = 150;
/// All corpora together.
const BYTES_MAX: u64 = 2_000_000;
