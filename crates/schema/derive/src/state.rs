//! The code that turns states into rows and back, blends and compares them.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;
use syn::spanned::Spanned;

use crate::describe;
use crate::encode::{local, pattern, with_bounds};
use crate::parse::{Body, Declaration, FieldDeclaration, Kind, VariantDeclaration};

/// `impl State for ...`, and the checks of attributes.
pub(crate) fn state_impl(declaration: &Declaration, home: &TokenStream) -> TokenStream {
    let ident = &declaration.ident;
    let generics = with_bounds(&declaration.generics, &Kind::State.carrier(), home);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let constant = describe::type_constant(declaration, home);
    let Bodies {
        store,
        load,
        blend,
        differs,
        distance,
    } = match &declaration.body {
        Body::Struct(fields) => struct_bodies(fields, home),
        Body::Enum(variants) => enum_bodies(variants, &declaration.ident, home),
    };
    let checks = checks(declaration, home);
    let span = ident.span();
    let width = quote_spanned!(span=> <Self as #home::State>::TYPE.check_width(););
    // A constant of a generic type is evaluated where the type is used, any other at once.
    let (at_once, where_used) = match declaration.generics.params.is_empty() {
        true => {
            let width = quote_spanned!(span=> <#ident as #home::State>::TYPE.check_width(););
            (quote!(const _: () = { #({ #checks })* #width };), quote!())
        }
        false => (quote!(), quote!(const { #({ #checks })* #width })),
    };
    quote! {
        #at_once

        #[automatically_derived]
        impl #impl_generics #home::State for #ident #type_generics #where_clause {
            const TYPE: #home::Type = #constant;

            #[inline]
            fn store(&self, row: &mut #home::RowWriter<'_>) {
                #where_used
                let _ = &row;
                #store
            }

            #[inline]
            fn load(
                row: &mut #home::RowReader<'_>,
            ) -> ::core::result::Result<Self, #home::DecodeError> {
                let _ = &row;
                #load
            }

            fn blend(&self, to: &Self, blend: #home::Blend) -> Self {
                #blend
            }

            fn differs(&self, other: &Self) -> bool {
                #differs
            }

            fn distance(&self, other: &Self) -> f32 {
                #distance
            }
        }
    }
}

/// Statements that stop the compiler when an attribute is missing or does not fit its field.
fn checks(declaration: &Declaration, home: &TokenStream) -> Vec<TokenStream> {
    let groups: Vec<&[FieldDeclaration]> = match &declaration.body {
        Body::Struct(fields) => vec![fields],
        Body::Enum(variants) => variants
            .iter()
            .map(|variant| variant.fields.as_slice())
            .collect(),
    };
    let checks = groups.into_iter().flat_map(|fields| {
        fields.iter().map(|field| {
            let span = field.attributes.span().unwrap_or_else(|| field.ty.span());
            let (ty, options) = (&field.ty, field.state_options(home));
            let derivative = derivative(field, fields).map(|other| {
                let (ty, options) = (&other.ty, other.state_options(home));
                quote_spanned!(span=> (&<#ty as #home::Property>::TYPE, &#options))
            });
            let derivative = match derivative {
                None => quote_spanned!(span=> ::core::option::Option::None),
                Some(pair) => quote_spanned!(span=> ::core::option::Option::Some(#pair)),
            };
            // A name of its own, so that every token of the call points at the attribute.
            quote_spanned! {span=>
                const MUSE_FIELD_OPTIONS: #home::Options = #options;
                MUSE_FIELD_OPTIONS.check_state(&<#ty as #home::Property>::TYPE, #derivative);
            }
        })
    });
    checks.collect()
}

/// The field that a field names as its velocity.
fn derivative<'a>(
    field: &FieldDeclaration,
    fields: &'a [FieldDeclaration],
) -> Option<&'a FieldDeclaration> {
    let name = field.attributes.velocity()?;
    fields.iter().find(|other| other.member == *name)
}

/// Bodies of the methods of `State`.
struct Bodies {
    store: TokenStream,
    load: TokenStream,
    blend: TokenStream,
    differs: TokenStream,
    distance: TokenStream,
}

fn struct_bodies(fields: &[FieldDeclaration], home: &TokenStream) -> Bodies {
    let (pattern, other) = (pattern(fields, local), pattern(fields, local_other));
    let (store, load) = (store_fields(fields, home), load_fields(fields, home));
    let (blend, differs) = (blend_fields(fields, home), differs_fields(fields, home));
    let distance = distance_fields(fields, home);
    Bodies {
        store: quote! {
            let Self #pattern = self;
            #store
        },
        load: quote!(::core::result::Result::Ok(Self #load)),
        blend: quote! {
            let _ = (to, blend);
            let (Self #pattern, Self #other) = (self, to);
            Self #blend
        },
        differs: quote! {
            let (Self #pattern, Self #other) = (self, other);
            #differs
        },
        distance: quote! {
            let (Self #pattern, Self #other) = (self, other);
            let _ = (self, other);
            #distance
        },
    }
}

fn enum_bodies(variants: &[VariantDeclaration], name: &Ident, home: &TokenStream) -> Bodies {
    let name = name.to_string();
    let single = variants.len() == 1;
    let last = variants.len() as i32 - 1;
    let (mut stores, mut loads, mut blends, mut differences) = (vec![], vec![], vec![], vec![]);
    let mut distances = vec![];
    for (position, variant) in variants.iter().enumerate() {
        let (ident, fields) = (&variant.ident, &variant.fields);
        let tag = position as i32;
        let (own, other) = (pattern(fields, local), pattern(fields, local_other));
        // The columns of the other variants do not exist, and are passed.
        let before = width(&variants[..position], home);
        let after = width(&variants[position + 1..], home);
        let put_tag = (!single).then(|| quote!(row.put(#tag);));
        let (store, load) = (store_fields(fields, home), load_fields(fields, home));
        let (blend, differs) = (blend_fields(fields, home), differs_fields(fields, home));
        stores.push(quote! {
            Self::#ident #own => {
                #put_tag
                row.skip(const { #before });
                #store
                row.skip(const { #after });
            }
        });
        loads.push(quote! {
            #tag => {
                row.skip(const { #before })?;
                let value = Self::#ident #load;
                row.skip(const { #after })?;
                ::core::result::Result::Ok(value)
            }
        });
        blends.push(quote!((Self::#ident #own, Self::#ident #other) => Self::#ident #blend,));
        differences.push(quote!((Self::#ident #own, Self::#ident #other) => #differs,));
        let distance = distance_fields(fields, home);
        distances.push(quote!((Self::#ident #own, Self::#ident #other) => { #distance }));
    }
    let tag = match single {
        true => quote!(0_i32),
        false => quote!(row.take_within(0, #last)?),
    };
    let (blend_others, differ_others, distant_others) = match single {
        true => (quote!(), quote!(), quote!()),
        false => (
            quote!(_ => ::core::clone::Clone::clone(blend.step(self, to)),),
            quote!(_ => true,),
            quote!(_ => 0.0,),
        ),
    };
    Bodies {
        store: quote!(match self { #(#stores)* }),
        load: quote! {
            match #tag {
                #(#loads)*
                tag => ::core::result::Result::Err(
                    #home::DecodeError::UnknownVariant { name: #name, tag: tag as u64 },
                ),
            }
        },
        blend: quote! {
            let _ = &blend;
            match (self, to) { #(#blends)* #blend_others }
        },
        differs: quote!(match (self, other) { #(#differences)* #differ_others }),
        distance: quote!(match (self, other) { #(#distances)* #distant_others }),
    }
}

fn store_fields(fields: &[FieldDeclaration], home: &TokenStream) -> TokenStream {
    let statements = fields.iter().enumerate().map(|(index, field)| {
        let (ty, name, options) = (&field.ty, local(index), field.state_options(home));
        // Errors about the type point at the type.
        quote_spanned! {ty.span()=>
            <#ty as #home::Property>::store(#name, const { &#options }, row);
        }
    });
    quote!(#(#statements)*)
}

/// `{ name: <load>, ... }`; Rust evaluates it in the order of writing.
fn load_fields(fields: &[FieldDeclaration], home: &TokenStream) -> TokenStream {
    let values = fields.iter().map(|field| {
        let (member, ty, options) = (&field.member, &field.ty, field.state_options(home));
        quote!(#member: <#ty as #home::Property>::load(const { &#options }, row)?)
    });
    quote!({ #(#values),* })
}

fn blend_fields(fields: &[FieldDeclaration], home: &TokenStream) -> TokenStream {
    let values = fields.iter().enumerate().map(|(index, field)| {
        let (member, ty, options) = (&field.member, &field.ty, field.state_options(home));
        let (from, to) = (local(index), local_other(index));
        let straight =
            quote!(<#ty as #home::Property>::blend(#from, #to, const { &#options }, blend));
        let derivative = field
            .attributes
            .velocity()
            .filter(|_| field.attributes.moves())
            .and_then(|name| fields.iter().position(|other| other.member == *name));
        let Some(derivative) = derivative else {
            return quote!(#member: #straight);
        };
        let (first, second) = (local(derivative), local_other(derivative));
        // A velocity of another type is an error there.
        let velocities = quote_spanned!(fields[derivative].ty.span()=> (#first, #second));
        let curved = quote! {
            <#ty as #home::Property>::hermite(
                #from, #to, #velocities, const { &#options }, blend,
            )
        };
        if field.attributes.is_hermite() {
            return quote!(#member: #curved);
        }
        quote!(#member: if blend.is_beyond() { #curved } else { #straight })
    });
    quote!({ #(#values),* })
}

fn differs_fields(fields: &[FieldDeclaration], home: &TokenStream) -> TokenStream {
    let comparisons = fields.iter().enumerate().map(|(index, field)| {
        let (ty, options) = (&field.ty, field.state_options(home));
        let (one, other) = (local(index), local_other(index));
        quote!(|| <#ty as #home::Property>::differs(#one, #other, const { &#options }))
    });
    quote!(false #(#comparisons)*)
}

/// The distance of the fields that name a velocity, for these say where something is; of all fields where none does.
fn distance_fields(fields: &[FieldDeclaration], home: &TokenStream) -> TokenStream {
    let any_moves = fields
        .iter()
        .any(|field| field.attributes.velocity().is_some());
    let squares = fields.iter().enumerate().map(|(index, field)| {
        let (ty, options) = (&field.ty, field.state_options(home));
        let (one, other) = (local(index), local_other(index));
        match any_moves && field.attributes.velocity().is_none() {
            true => quote!(+ { let _ = (#one, #other); 0.0 }),
            false => {
                quote!(+ <#ty as #home::Property>::distance_squared(#one, #other, const { &#options }))
            }
        }
    });
    quote!(f32::sqrt(0.0 #(#squares)*))
}

/// Number of columns that all fields of these variants have, as an expression.
fn width(variants: &[VariantDeclaration], home: &TokenStream) -> TokenStream {
    let widths = variants
        .iter()
        .flat_map(|variant| &variant.fields)
        .map(|field| {
            let (ty, options) = (&field.ty, field.state_options(home));
            quote!(+ <#ty as #home::Property>::TYPE.width(&#options))
        });
    quote!(0_usize #(#widths)*)
}

fn local_other(index: usize) -> Ident {
    format_ident!("other_{index}")
}
