//! The path by which generated code finds the traits: games depend on the facade `muse-net` or on `muse-bevy`, our own crates on `muse-schema`.

use proc_macro2::TokenStream;
use quote::quote;

/// The path of `muse-schema` in the crate being compiled.
pub(crate) fn path() -> TokenStream {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .and_then(|folder| {
            std::fs::read_to_string(std::path::Path::new(&folder).join("Cargo.toml")).ok()
        })
        .unwrap_or_default();
    // A facade only if `muse-schema` itself is not there.
    if depends_on(&manifest, "muse-schema") {
        quote!(::muse_schema)
    } else if depends_on(&manifest, "muse-net") {
        quote!(::muse::schema)
    } else if depends_on(&manifest, "muse-bevy") {
        quote!(::muse_bevy::muse::schema)
    } else {
        quote!(::muse_schema)
    }
}

/// True if a manifest names a dependency, in any of the usual forms.
fn depends_on(manifest: &str, package: &str) -> bool {
    manifest.lines().map(str::trim).any(|line| {
        let key = line.split(['=', '#']).next().unwrap_or_default().trim();
        let header = key.trim_start_matches('[').trim_end_matches(']');
        let is_entry = key.split('.').next() == Some(package);
        let is_table = key.starts_with('[') && header.ends_with(&format!("dependencies.{package}"));
        is_entry || is_table
    })
}

#[cfg(test)]
mod tests {
    use super::depends_on;

    #[test]
    fn dependencies_are_found_in_every_form() {
        for line in [
            "muse-net = \"0.1\"",
            "  muse-net={ path = \"..\" }",
            "muse-net.workspace = true",
            "[dependencies.muse-net]",
            "[target.'cfg(unix)'.dependencies.muse-net]",
        ] {
            assert!(
                depends_on(&format!("[package]\n{line}\n"), "muse-net"),
                "{line}"
            );
        }
        for line in [
            "name = \"muse-net\"",
            "# muse-net = 1",
            "muse-network = \"1\"",
            "[muse-net]",
        ] {
            assert!(!depends_on(line, "muse-net"), "{line}");
        }
    }
}
