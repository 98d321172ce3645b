//! The code that carries values: writing, reading and the smallest size.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Generics, Ident, parse_quote};

use crate::describe;
use crate::parse::{Body, Declaration, FieldDeclaration};

/// `impl Schema for ...`, and the checks of attributes.
pub(crate) fn schema_impl(declaration: &Declaration, home: &TokenStream) -> TokenStream {
    let ident = &declaration.ident;
    let generics = with_bounds(&declaration.generics, &declaration.kind.carrier(), home);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let constant = describe::type_constant(declaration, home);
    let (write, read, bits_min) = match &declaration.body {
        Body::Struct(fields) => struct_bodies(fields, home),
        Body::Enum(_) => enum_bodies(declaration, home),
    };
    let checks = checks(declaration, home);
    // A constant of a generic type is evaluated where the type is used, any other at once.
    let (at_once, where_used) = match declaration.generics.params.is_empty() {
        true => (quote!(const _: () = { #({ #checks })* };), quote!()),
        false => (quote!(), quote!(const { #({ #checks })* })),
    };
    quote! {
        #at_once

        #[automatically_derived]
        impl #impl_generics #home::Schema for #ident #type_generics #where_clause {
            const TYPE: #home::Type = #constant;

            fn bits_min(_: &#home::Options) -> u64 {
                #where_used
                #bits_min
            }

            fn write(
                &self,
                _: &#home::Options,
                writer: &mut #home::BitWriter<'_>,
            ) -> ::core::result::Result<(), #home::EncodeError> {
                #write
            }

            fn read(
                _: &#home::Options,
                reader: &mut #home::BitReader<'_>,
            ) -> ::core::result::Result<Self, #home::DecodeError> {
                #read
            }
        }
    }
}

/// Each type parameter has to travel, too.
pub(crate) fn with_bounds(generics: &Generics, carrier: &Ident, home: &TokenStream) -> Generics {
    let mut generics = generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(#home::#carrier));
    }
    generics
}

/// Statements that stop the compiler when an attribute does not fit its field.
fn checks(declaration: &Declaration, home: &TokenStream) -> Vec<TokenStream> {
    let with_attributes = declaration.fields().filter_map(|field| {
        let span = field.attributes.span()?;
        let (ty, options) = (&field.ty, field.options(home));
        // A name of its own, so that every token of the call points at the attribute.
        Some(quote_spanned! {span=>
            const MUSE_FIELD_OPTIONS: #home::Options = #options;
            MUSE_FIELD_OPTIONS.check(
                <#ty as #home::Schema>::LEAF,
                <#ty as #home::Schema>::TAKES_MAX,
                &<#ty as #home::Schema>::TYPE,
            );
        })
    });
    with_attributes.collect()
}

/// Bodies of `write`, `read` and `bits_min`.
type Bodies = (TokenStream, TokenStream, TokenStream);

fn struct_bodies(fields: &[FieldDeclaration], home: &TokenStream) -> Bodies {
    let pattern = pattern(fields, local);
    let (write, read) = (write_fields(fields, home), read_fields(fields, home));
    let write = quote! {
        let _ = &writer;
        let Self #pattern = self;
        #write
        ::core::result::Result::Ok(())
    };
    let read = quote! {
        let _ = &reader;
        ::core::result::Result::Ok(Self #read)
    };
    (write, read, bits_min_of(fields, home))
}

fn enum_bodies(declaration: &Declaration, home: &TokenStream) -> Bodies {
    let Body::Enum(variants) = &declaration.body else {
        return Bodies::default();
    };
    let last = variants.len() as u64 - 1;
    let name = declaration.ident.to_string();
    let arms = variants.iter().zip(0u64..).map(|(variant, tag)| {
        let (ident, pattern) = (&variant.ident, pattern(&variant.fields, local));
        let (write, read) = (
            write_fields(&variant.fields, home),
            read_fields(&variant.fields, home),
        );
        let write = quote! {
            Self::#ident #pattern => {
                writer.ranged_u64(#tag, 0, #last)?;
                #write
            }
        };
        (
            write,
            quote!(#tag => ::core::result::Result::Ok(Self::#ident #read),),
        )
    });
    let (write_arms, read_arms): (Vec<_>, Vec<_>) = arms.unzip();
    let sizes = variants
        .iter()
        .map(|variant| bits_min_of(&variant.fields, home));
    let write = quote! {
        match self { #(#write_arms)* }
        ::core::result::Result::Ok(())
    };
    let read = quote! {
        // All tags of so many bits, so that an unknown variant can be named.
        match reader.bits(#home::bits_for(#last))? {
            #(#read_arms)*
            tag => ::core::result::Result::Err(
                #home::DecodeError::UnknownVariant { name: #name, tag },
            ),
        }
    };
    let bits_min = quote! {
        let least = u64::MAX;
        #(let least = ::core::cmp::Ord::min(least, { #sizes });)*
        least.saturating_add(u64::from(#home::bits_for(#last)))
    };
    (write, read, bits_min)
}

/// `{ name: field_0, 1: field_1 }`, which fits structs and variants of every form.
pub(crate) fn pattern(fields: &[FieldDeclaration], name: fn(usize) -> Ident) -> TokenStream {
    let members = fields.iter().map(|field| &field.member);
    let names = (0..fields.len()).map(name);
    quote!({ #(#members: #names),* })
}

fn write_fields(fields: &[FieldDeclaration], home: &TokenStream) -> TokenStream {
    let statements = fields.iter().enumerate().map(|(index, field)| {
        let (ty, name, options) = (&field.ty, local(index), field.options(home));
        // Errors about the type point at the type.
        quote_spanned! {ty.span()=>
            <#ty as #home::Schema>::write(#name, const { &#options }, writer)?;
        }
    });
    quote!(#(#statements)*)
}

/// `{ name: <read>, ... }`; Rust evaluates it in the order of writing.
fn read_fields(fields: &[FieldDeclaration], home: &TokenStream) -> TokenStream {
    let values = fields.iter().map(|field| {
        let (member, ty, options) = (&field.member, &field.ty, field.options(home));
        quote!(#member: <#ty as #home::Schema>::read(const { &#options }, reader)?)
    });
    quote!({ #(#values),* })
}

fn bits_min_of(fields: &[FieldDeclaration], home: &TokenStream) -> TokenStream {
    let sizes = fields.iter().map(|field| {
        let (ty, options) = (&field.ty, field.options(home));
        quote!(.saturating_add(<#ty as #home::Schema>::bits_min(const { &#options })))
    });
    quote!(0u64 #(#sizes)*)
}

pub(crate) fn local(index: usize) -> Ident {
    format_ident!("field_{index}")
}
