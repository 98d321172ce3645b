//! `#[message(...)]` and `#[field(...)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, ExprRange, ExprUnary, Lit, RangeLimits, Result, UnOp};

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
    /// Where they stand, if anywhere.
    span: Option<Span>,
}

impl FieldAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut parsed = Self::default();
        for attribute in attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("field"))
        {
            parsed.span = Some(attribute.path().span());
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("fixed") {
                    parsed.fixed = true;
                } else if meta.path.is_ident("max") {
                    parsed.max = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("range") {
                    parsed.range = Some(closed_range(meta.value()?.parse()?)?);
                } else if meta.path.is_ident("step") {
                    parsed.step = Some(meta.value()?.parse()?);
                } else {
                    let known = "unknown attribute: there are `fixed`, `max = N`, \
                                 `range = MIN..=MAX` and `step = STEP`";
                    return Err(meta.error(known));
                }
                Ok(())
            })?;
        }
        parsed.check()?;
        Ok(parsed)
    }

    /// Where the attributes stand, if there are any.
    pub(crate) fn span(&self) -> Option<Span> {
        self.span
    }

    /// An expression of type `Options`.
    pub(crate) fn options(&self, home: &TokenStream) -> TokenStream {
        let span = self.span.unwrap_or_else(Span::call_site);
        let mut options = quote_spanned!(span=> #home::Options::NONE);
        if self.fixed {
            options = quote_spanned!(span=> #options.fixed());
        }
        if let Some(max) = &self.max {
            options = quote_spanned!(span=> #options.max(#max));
        }
        match (&self.range, &self.step) {
            (Some(ExprRange { start, end, .. }), Some(step)) => {
                quote!(#options.float_range((#start) as f64, (#end) as f64, (#step) as f64))
            }
            (Some(ExprRange { start, end, .. }), None) => {
                quote!(#options.integer_range((#start) as i128, (#end) as i128))
            }
            (None, _) => options,
        }
    }

    /// Finds the mistakes that literals show; the rest is found by `Options::check` when constants are evaluated.
    fn check(&self) -> Result<()> {
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
