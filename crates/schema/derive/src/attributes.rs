//! `#[message(...)]` and `#[field(...)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, ExprRange, ExprUnary, Ident, Lit, Member, RangeLimits, Result,
    Token, UnOp,
};

use crate::parse::Kind;

/// The id in `#[message(id = N)]`.
pub(crate) fn message_id(attributes: &[Attribute], type_name: &syn::Ident) -> Result<u16> {
    let mut id = None;
    for attribute in attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("message"))
    {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("id") {
                return Err(meta.error("unknown attribute: write `#[message(id = N)]`"));
            }
            let literal: syn::LitInt = meta.value()?.parse()?;
            let value = literal.base10_parse::<u16>().map_err(|_| {
                Error::new(literal.span(), "a message id is a number from 0 to 65535")
            })?;
            match id.replace(value) {
                None => Ok(()),
                Some(_) => Err(meta.error("a message has one id only")),
            }
        })?;
    }
    id.ok_or_else(|| {
        let problem = format!(
            "message `{type_name}` has no id: write `#[message(id = N)]` above it, \
             with a number from 0 to 65535 that no other message of the game has"
        );
        Error::new(type_name.span(), problem)
    })
}

/// `#[field(...)]` of one field.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    fixed: bool,
    max: Option<Expr>,
    range: Option<ExprRange>,
    step: Option<Expr>,
    /// With the bits, if it has any.
    angle: Option<Option<Expr>>,
    rotation: Option<Expr>,
    /// With the count, if it has any.
    bits: Option<Option<Expr>>,
    predict: Option<Ident>,
    velocity: Option<Member>,
    interpolate: Option<Ident>,
    tolerance: Option<Expr>,
    /// Position of the attributes in the source, if there are any.
    span: Option<Span>,
}

impl FieldAttributes {
    pub(crate) fn parse(attributes: &[Attribute], kind: Kind) -> Result<Self> {
        let mut parsed = Self::default();
        for attribute in attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("field"))
        {
            parsed.span = Some(attribute.path().span());
            attribute.parse_nested_meta(|meta| {
                let known = parsed.parse_size(&meta)? || parsed.parse_movement(&meta, kind)?;
                if known {
                    return Ok(());
                }
                let known = match kind {
                    Kind::State => {
                        "unknown attribute: there are `range = MIN..=MAX`, `step = STEP`, `angle = BITS`, \
                         `rotation = BITS`, `bits`, `max = N`, `predict = ORDER`, `velocity = FIELD`, \
                         `interpolate = WAY` and `tolerance = DISTANCE`"
                    }
                    Kind::Message | Kind::Nested => {
                        "unknown attribute: there are `fixed`, `max = N`, `range = MIN..=MAX`, \
                         `step = STEP`, `angle = BITS`, `rotation = BITS` and `bits`"
                    }
                };
                Err(meta.error(known))
            })?;
        }
        parsed.check()?;
        Ok(parsed)
    }

    /// Reads the attributes that decide how a value becomes bits.
    fn parse_size(&mut self, meta: &ParseNestedMeta<'_>) -> Result<bool> {
        let optional = |meta: &ParseNestedMeta<'_>| match meta.input.peek(Token![=]) {
            true => meta.value()?.parse().map(Some),
            false => Ok(None),
        };
        match name(meta).as_str() {
            "fixed" => self.fixed = true,
            "max" => self.max = Some(meta.value()?.parse()?),
            "range" => self.range = Some(closed_range(meta.value()?.parse()?)?),
            "step" => self.step = Some(meta.value()?.parse()?),
            "angle" => self.angle = Some(optional(meta)?),
            "rotation" => {
                if !meta.input.peek(Token![=]) {
                    return Err(
                        meta.error("write `rotation = BITS`, the bits of each of three parts")
                    );
                }
                self.rotation = Some(meta.value()?.parse()?);
            }
            "bits" => self.bits = Some(optional(meta)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the attributes of a state about the time between its ticks. Types inside messages may be states as well, so they
    /// ignore them; on a message itself they are an error.
    fn parse_movement(&mut self, meta: &ParseNestedMeta<'_>, kind: Kind) -> Result<bool> {
        match name(meta).as_str() {
            "predict" => self.predict = Some(one_of(meta, &["hold", "linear", "quadratic"])?),
            "interpolate" => {
                let ways = ["none", "linear", "hermite", "angle", "rotation"];
                self.interpolate = Some(one_of(meta, &ways)?);
            }
            "velocity" => self.velocity = Some(meta.value()?.parse()?),
            "tolerance" => self.tolerance = Some(meta.value()?.parse()?),
            _ => return Ok(false),
        }
        match kind {
            Kind::Message => Err(meta.error("this is for states: derive `State`")),
            Kind::Nested | Kind::State => Ok(true),
        }
    }

    /// Returns the position of the attributes in the source, if there are any.
    pub(crate) fn span(&self) -> Option<Span> {
        self.span
    }

    /// The field that is the velocity of this one.
    pub(crate) fn velocity(&self) -> Option<&Member> {
        self.velocity.as_ref()
    }

    /// True if it is interpolated along a curve.
    pub(crate) fn is_hermite(&self) -> bool {
        self.interpolate
            .as_ref()
            .is_some_and(|way| way == "hermite")
    }

    /// True if it is extrapolated by its velocity beyond the last state.
    pub(crate) fn moves(&self) -> bool {
        self.interpolate
            .as_ref()
            .is_none_or(|way| way == "linear" || way == "hermite")
    }

    /// An expression of type `Options` for a field of this type.
    pub(crate) fn options(&self, ty: &syn::Type, kind: Kind, home: &TokenStream) -> TokenStream {
        let span = self.span.unwrap_or_else(Span::call_site);
        let mut options = quote_spanned!(span=> #home::Options::NONE);
        if self.fixed {
            options = quote_spanned!(span=> #options.fixed());
        }
        if let Some(max) = &self.max {
            options = quote_spanned!(span=> #options.max(#max));
        }
        if let Some(bits) = &self.rotation {
            options = quote_spanned!(span=> #options.rotation(#bits));
        }
        let carrier = kind.carrier();
        options = match &self.bits {
            None => options,
            Some(Some(count)) => quote_spanned!(span=> #options.bits(#count)),
            Some(None) => {
                quote_spanned!(span=> #options.bits(<#ty as #home::#carrier>::TYPE.bits_all()))
            }
        };
        options = self.range_options(options, span);
        match kind {
            Kind::State => self.movement_options(options, span, home),
            Kind::Message | Kind::Nested => options,
        }
    }

    fn range_options(&self, options: TokenStream, span: Span) -> TokenStream {
        let ends = self
            .range
            .as_ref()
            .map(|ExprRange { start, end, .. }| (quote!(#start), quote!(#end)));
        if let Some(bits) = &self.angle {
            let pi = quote_spanned!(span=> ::core::f64::consts::PI);
            let (start, end) = ends.unwrap_or((quote!(-#pi), pi));
            let step = &self.step;
            return match bits {
                Some(bits) => {
                    quote!(#options.angle(#bits, (#start) as f64, (#end) as f64))
                }
                None => quote!(#options.angle_step((#step) as f64, (#start) as f64, (#end) as f64)),
            };
        }
        match (ends, &self.step) {
            (Some((start, end)), Some(step)) => {
                quote!(#options.float_range((#start) as f64, (#end) as f64, (#step) as f64))
            }
            (Some((start, end)), None) => {
                quote!(#options.integer_range((#start) as i128, (#end) as i128))
            }
            (None, _) => options,
        }
    }

    fn movement_options(
        &self,
        mut options: TokenStream,
        span: Span,
        home: &TokenStream,
    ) -> TokenStream {
        if let Some(order) = &self.predict {
            let order = capitalized(order);
            options = quote_spanned!(span=> #options.predict(#home::Predict::#order));
        }
        if let Some(field) = &self.velocity {
            let name = member_name(field);
            options = quote_spanned!(span=> #options.velocity(#name));
        }
        if let Some(way) = &self.interpolate {
            let way = capitalized(way);
            options = quote_spanned!(span=> #options.interpolate(#home::Interpolate::#way));
        }
        if let Some(tolerance) = &self.tolerance {
            options = quote!(#options.tolerance((#tolerance) as f64));
        }
        options
    }

    /// Finds the mistakes that literals show; the rest is found by `Options::check` when constants are evaluated.
    fn check(&self) -> Result<()> {
        if let Some(way) = &self.interpolate
            && self.is_hermite()
            && self.velocity.is_none()
        {
            let problem =
                "a curve needs the velocity: add `velocity = FIELD`, a field of the same struct";
            return Err(Error::new(way.span(), problem));
        }
        if let Some(bits) = &self.angle {
            return match (bits, &self.step, self.span) {
                (Some(_), Some(step), _) => Err(Error::new(
                    step.span(),
                    "write either `angle = BITS` or `angle, step = STEP`",
                )),
                (None, None, Some(span)) => Err(Error::new(
                    span,
                    "an angle needs its steps: write `angle = BITS` or `angle, step = STEP`",
                )),
                _ => Ok(()),
            };
        }
        let Some(range) = &self.range else {
            return match &self.step {
                Some(step) => Err(Error::new(
                    step.span(),
                    "a step needs a range: `range = MIN..=MAX, step = STEP`",
                )),
                None => Ok(()),
            };
        };
        let (start, end) = (range.start.as_deref(), range.end.as_deref());
        let floats = [start, end].into_iter().flatten().any(is_float_literal);
        if floats && self.step.is_none() {
            let problem = "a range of floats needs a step: `range = MIN..=MAX, step = STEP`";
            return Err(Error::new(range.span(), problem));
        }
        if let (Some(start), Some(end)) = (start.and_then(number), end.and_then(number))
            && start > end
        {
            return Err(Error::new(
                range.span(),
                "the range is empty: write `MIN..=MAX`",
            ));
        }
        match &self.step {
            Some(step) if number(step).is_some_and(|step| step <= 0.0) => {
                Err(Error::new(step.span(), "the step must be above zero"))
            }
            _ => Ok(()),
        }
    }
}

/// The name of an attribute.
fn name(meta: &ParseNestedMeta<'_>) -> String {
    meta.path
        .get_ident()
        .map(Ident::to_string)
        .unwrap_or_default()
}

/// The word after `=`, which must be one of these.
fn one_of(meta: &ParseNestedMeta<'_>, words: &[&str]) -> Result<Ident> {
    let word: Ident = meta.value()?.parse()?;
    if words.iter().any(|known| word == known) {
        return Ok(word);
    }
    let problem = format!("write one of: {}", words.join(", "));
    Err(Error::new(word.span(), problem))
}

/// `linear` as `Linear`.
fn capitalized(word: &Ident) -> Ident {
    let text = word.to_string();
    let (first, rest) = text.split_at(1);
    Ident::new(&format!("{}{rest}", first.to_uppercase()), word.span())
}

/// The name of a field, or its position.
pub(crate) fn member_name(member: &Member) -> String {
    match member {
        Member::Named(ident) => ident.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

/// A range with both ends, the last included.
fn closed_range(expression: Expr) -> Result<ExprRange> {
    let problem = "a range is written `MIN..=MAX`";
    match expression {
        Expr::Range(range)
            if matches!(range.limits, RangeLimits::Closed(_))
                && range.start.is_some()
                && range.end.is_some() =>
        {
            Ok(range)
        }
        other => Err(Error::new(other.span(), problem)),
    }
}

/// The value of a literal number, with or without a minus.
fn number(expression: &Expr) -> Option<f64> {
    match expression {
        Expr::Lit(ExprLit {
            lit: Lit::Int(literal),
            ..
        }) => literal.base10_parse().ok(),
        Expr::Lit(ExprLit {
            lit: Lit::Float(literal),
            ..
        }) => literal.base10_parse().ok(),
        Expr::Unary(ExprUnary {
            op: UnOp::Neg(_),
            expr,
            ..
        }) => number(expr).map(|value| -value),
        _ => None,
    }
}

fn is_float_literal(expression: &Expr) -> bool {
    match expression {
        Expr::Lit(ExprLit {
            lit: Lit::Float(_), ..
        }) => true,
        Expr::Unary(ExprUnary { expr, .. }) => is_float_literal(expr),
        _ => false,
    }
}
