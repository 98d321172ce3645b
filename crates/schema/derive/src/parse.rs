//! The declaration in the form that the other modules work with.

use proc_macro2::{Span, TokenStream};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Generics, Ident, Member, Result, Type};

use crate::attributes::{FieldAttributes, member_name, message_id};

/// The derive that was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `Message`: with an id.
    Message,
    /// `Schema`: part of other types.
    Nested,
    /// `State`: a row of columns.
    State,
}

impl Kind {
    /// The trait by which fields travel.
    pub(crate) fn carrier(self) -> Ident {
        let name = match self {
            Self::Message | Self::Nested => "Schema",
            Self::State => "Property",
        };
        Ident::new(name, Span::call_site())
    }
}

/// A struct or enum to be derived for.
pub(crate) struct Declaration {
    pub(crate) ident: Ident,
    pub(crate) generics: Generics,
    pub(crate) kind: Kind,
    pub(crate) id: Option<u16>,
    pub(crate) body: Body,
}

/// The contents of a declaration.
pub(crate) enum Body {
    Struct(Vec<FieldDeclaration>),
    Enum(Vec<VariantDeclaration>),
}

pub(crate) struct VariantDeclaration {
    pub(crate) ident: Ident,
    pub(crate) fields: Vec<FieldDeclaration>,
}

pub(crate) struct FieldDeclaration {
    /// Its name or position.
    pub(crate) member: Member,
    pub(crate) ty: Type,
    pub(crate) attributes: FieldAttributes,
}

impl Declaration {
    pub(crate) fn parse(input: &DeriveInput, kind: Kind) -> Result<Self> {
        check_generics(&input.generics, kind)?;
        let id = match kind {
            Kind::Message => Some(message_id(&input.attrs, &input.ident)?),
            Kind::Nested | Kind::State => None,
        };
        let body = match &input.data {
            Data::Struct(data) => Body::Struct(parse_fields(&data.fields, kind)?),
            Data::Enum(data) if data.variants.is_empty() => {
                let problem = "an enum without variants has no values to send";
                return Err(Error::new(input.ident.span(), problem));
            }
            Data::Enum(data) => {
                let variants = data.variants.iter().map(|variant| {
                    let fields = parse_fields(&variant.fields, kind)?;
                    Ok(VariantDeclaration {
                        ident: variant.ident.clone(),
                        fields,
                    })
                });
                Body::Enum(variants.collect::<Result<_>>()?)
            }
            Data::Union(data) => {
                let problem = "a union cannot travel: use an enum";
                return Err(Error::new(data.union_token.span(), problem));
            }
        };
        Ok(Self {
            ident: input.ident.clone(),
            generics: input.generics.clone(),
            kind,
            id,
            body,
        })
    }

    /// All fields of all variants.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &FieldDeclaration> {
        let (own, variants) = match &self.body {
            Body::Struct(fields) => (fields.as_slice(), [].as_slice()),
            Body::Enum(variants) => ([].as_slice(), variants.as_slice()),
        };
        own.iter()
            .chain(variants.iter().flat_map(|variant| &variant.fields))
    }
}

impl FieldDeclaration {
    /// The attributes in a message, as an expression.
    pub(crate) fn options(&self, home: &TokenStream) -> TokenStream {
        self.attributes.options(&self.ty, Kind::Nested, home)
    }

    /// The attributes in a state, as an expression.
    pub(crate) fn state_options(&self, home: &TokenStream) -> TokenStream {
        self.attributes.options(&self.ty, Kind::State, home)
    }
}

fn check_generics(generics: &Generics, kind: Kind) -> Result<()> {
    if let Some(lifetime) = generics.lifetimes().next() {
        let problem = "a type that borrows cannot be decoded: own the data (String, Vec)";
        return Err(Error::new(lifetime.span(), problem));
    }
    if kind == Kind::Message
        && let Some(parameter) = generics.params.first()
    {
        let problem = "a message has one id, so it cannot be generic: \
                       derive `Schema` and wrap it in a message of its own";
        return Err(Error::new(parameter.span(), problem));
    }
    let constant = generics
        .params
        .iter()
        .find(|param| matches!(param, GenericParam::Const(_)));
    match constant {
        Some(constant) => {
            let problem = "generic constants cannot be described: use a type parameter";
            Err(Error::new(constant.span(), problem))
        }
        None => Ok(()),
    }
}

fn parse_fields(fields: &Fields, kind: Kind) -> Result<Vec<FieldDeclaration>> {
    let parsed = fields.iter().zip(fields.members()).map(|(field, member)| {
        let attributes = FieldAttributes::parse(&field.attrs, kind)?;
        Ok(FieldDeclaration {
            member,
            ty: field.ty.clone(),
            attributes,
        })
    });
    let parsed: Vec<FieldDeclaration> = parsed.collect::<Result<_>>()?;
    for velocity in parsed
        .iter()
        .filter_map(|field| field.attributes.velocity())
    {
        if !parsed.iter().any(|other| other.member == *velocity) {
            let names: Vec<String> = parsed
                .iter()
                .map(|field| member_name(&field.member))
                .collect();
            let problem = format!(
                "there is no field of that name beside this one: there are {}",
                names.join(", ")
            );
            return Err(Error::new(velocity.span(), problem));
        }
    }
    Ok(parsed)
}
