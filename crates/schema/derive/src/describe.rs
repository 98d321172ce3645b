//! The constant that describes the type.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Member;
use syn::ext::IdentExt;

use crate::parse::{Body, Declaration, FieldDeclaration};

/// An expression of type `Type`.
pub(crate) fn type_constant(declaration: &Declaration, home: &TokenStream) -> TokenStream {
    let name = declaration.ident.unraw().to_string();
    match &declaration.body {
        Body::Struct(fields) => {
            let fields = field_list(fields, home);
            quote!(#home::Type::Struct { name: #name, fields: #fields })
        }
        Body::Enum(variants) => {
            let variants = variants.iter().map(|variant| {
                let name = variant.ident.unraw().to_string();
                let fields = field_list(&variant.fields, home);
                quote!(#home::Variant { name: #name, fields: #fields })
            });
            quote!(#home::Type::Enum { name: #name, variants: &[#(#variants),*] })
        }
    }
}

fn field_list(fields: &[FieldDeclaration], home: &TokenStream) -> TokenStream {
    let fields = fields.iter().map(|field| {
        let name = match &field.member {
            Member::Named(ident) => ident.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        let ty = &field.ty;
        let options = field.attributes.options(home);
        quote!(#home::Field { name: #name, ty: <#ty as #home::Schema>::TYPE, options: #options })
    });
    quote!(&[#(#fields),*])
}
