//! Turns the published definitions of Agones into the types of the server that its tests speak to; without their feature it does nothing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "agones-tests")]
    definitions();
}

#[cfg(feature = "agones-tests")]
fn definitions() {
    const FOLDER: &str = "../../tests/agones/proto";
    println!("cargo::rerun-if-changed={FOLDER}");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let files = ["sdk.proto", "allocation.proto"].map(|file| format!("{FOLDER}/{file}"));
    tonic_build::configure()
        .build_client(false)
        .file_descriptor_set_path(out.join("agones.bin"))
        .compile_protos(&files, &[FOLDER.to_owned()])
        .expect("protoc compiles what is published");
}
