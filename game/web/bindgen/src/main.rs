//! `biobot-bindgen INPUT.wasm OUTPUT-DIRECTORY NAME`: writes `NAME.js`, `NAME.d.ts` and `NAME_bg.wasm`, for Workers and pages that load modules.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, name] = arguments.as_slice() else {
        eprintln!("usage: biobot-bindgen INPUT.wasm OUTPUT-DIRECTORY NAME");
        return ExitCode::from(2);
    };
    match generate(input, output, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("biobot-bindgen: {input}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn generate(input: &str, output: &str, name: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(input)
        .out_name(name)
        .typescript(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .web(true)?;
    bindgen.generate(output)?;
    Ok(())
}
