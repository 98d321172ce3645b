//! Finds ENet's C library where the system keeps it, without which `peer-enet` says that it is missing.

use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(have_enet)");
    println!("cargo::rerun-if-changed=build.rs");
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let folders = [
        format!("/usr/lib/{architecture}-linux-gnu"),
        "/usr/lib64".to_owned(),
        "/usr/lib".to_owned(),
        "/usr/local/lib".to_owned(),
    ];
    for folder in &folders {
        let library = Path::new(folder).join("libenet.so");
        println!("cargo::rerun-if-changed={}", library.display());
        if library.exists() {
            println!("cargo::rustc-cfg=have_enet");
            println!("cargo::rustc-link-arg-bin=peer-enet=-L{folder}");
            println!("cargo::rustc-link-arg-bin=peer-enet=-lenet");
            return;
        }
    }
}
