//! Derive macros of `muse-schema`, which re-exports and documents them.
//!
//! A declaration is parsed and checked in `parse` and `attributes`, so that mistakes are reported where they stand; then
//! `encode` and `state` write the code that carries values and `describe` the data that describes the type.

use proc_macro::TokenStream;
use quote::quote;
use syn::{DeriveInput, parse_macro_input};

mod attributes;
mod describe;
mod encode;
mod home;
mod parse;
mod state;

use parse::{Declaration, Kind};

/// Makes a type a message: `#[message(id = N)]` above the type, `#[field(...)]` above fields. See the documentation of
/// the crate `muse-schema`.
#[proc_macro_derive(Message, attributes(message, field))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    derive(parse_macro_input!(input as DeriveInput), Kind::Message)
}

/// Makes a type part of messages: `#[field(...)]` above fields. See the documentation of the crate `muse-schema`.
#[proc_macro_derive(Schema, attributes(field))]
pub fn derive_schema(input: TokenStream) -> TokenStream {
    derive(parse_macro_input!(input as DeriveInput), Kind::Nested)
}

/// Makes a type a state, a row of columns: `#[field(...)]` above fields. See the documentation of the crate
/// `muse-schema`.
#[proc_macro_derive(State, attributes(field))]
pub fn derive_state(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    match Declaration::parse(&input, Kind::State) {
        Ok(declaration) => state::state_impl(&declaration, &home::path()).into(),
        Err(error) => error.into_compile_error().into(),
    }
}

fn derive(input: DeriveInput, kind: Kind) -> TokenStream {
    let declaration = match Declaration::parse(&input, kind) {
        Ok(declaration) => declaration,
        Err(error) => return error.into_compile_error().into(),
    };
    let home = home::path();
    let schema = encode::schema_impl(&declaration, &home);
    let message = declaration.id.map(|id| {
        let ident = &declaration.ident;
        quote! {
            #[automatically_derived]
            impl #home::Message for #ident {
                const ID: u16 = #id;
            }
        }
    });
    quote! { #schema #message }.into()
}
