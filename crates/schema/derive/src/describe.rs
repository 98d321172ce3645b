//! The constant that describes the type.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;

use crate::attributes::member_name;
use crate::parse::{Body, Declaration, FieldDeclaration, Kind};

/// An expression of type `Type`.
pub(crate) fn type_constant(declaration: &Declaration, home: &TokenStream) -> TokenStream {
    let name = declaration.ident.unraw().to_string();
    match &declaration.body {
        Body::Struct(fields) => {
            let fields = field_list(fields, declaration.kind, home);
            quote!(#home::Type::Struct { name: #name, fields: #fields })
        }
        Body::Enum(variants) => {
            let variants = variants.iter().map(|variant| {
                let name = variant.ident.unraw().to_string();
                let fields = field_list(&variant.fields, declaration.kind, home);
                quote!(#home::Variant { name: #name, fields: #fields })
            });
            quote!(#home::Type::Enum { name: #name, variants: &[#(#variants),*] })
        }
    }
}

fn field_list(fields: &[FieldDeclaration], kind: Kind, home: &TokenStream) -> TokenStream {
    let carrier = kind.carrier();
    let fields = fields.iter().map(|field| {
        let name = member_name(&field.member);
        let ty = &field.ty;
        let options = field.attributes.options(ty, kind, home);
        quote!(#home::Field { name: #name, ty: <#ty as #home::#carrier>::TYPE, options: #options })
    });
    quote!(&[#(#fields),*])
}
