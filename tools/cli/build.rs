//! Puts the page of the game into the program if `MUSE_PAGE` names its directory, as `scripts/dist.sh` does.
//!
//! Without that variable the page inside is an empty directory, so that nobody needs node and npm to compile the program, and `muse up` looks for the
//! page that `make page` has built.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=MUSE_PAGE");
    let wanted = env::var_os("MUSE_PAGE").filter(|directory| !directory.is_empty());
    let inside = match wanted {
        Some(directory) => {
            let directory = PathBuf::from(directory).canonicalize()?;
            if !directory.join("index.html").is_file() {
                return Err(format!("MUSE_PAGE: no index.html in {}", directory.display()).into());
            }
            println!("cargo::rerun-if-changed={}", directory.display());
            directory
        }
        None => {
            // Not in a program with a page, which must not depend on the place where it was built.
            let sources = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
            let built = sources.join("../../game/web/dist");
            println!("cargo::rustc-env=MUSE_PAGE_BUILT={}", built.display());
            let none = PathBuf::from(env::var("OUT_DIR")?).join("no-page");
            fs::create_dir_all(&none)?;
            none
        }
    };
    println!("cargo::rustc-env=MUSE_PAGE_INSIDE={}", inside.display());
    Ok(())
}
