//! The setters of option types.

/// Writes the setters of an option type, one for each field: it takes the options, sets the field of its name, and returns them. With `const` in front of
/// the type they can be called in constants.
///
/// ```
/// #[derive(Default)]
/// pub struct Limits {
///     rooms: usize,
///     guests: Option<usize>,
/// }
///
/// muse_wire::setters! { Limits:
///     /// Sets how many rooms there may be.
///     rooms: usize = rooms.max(1),
///     /// Sets how many guests there may be.
///     guests: Option<usize>,
/// }
///
/// let limits = Limits::default().rooms(0).guests(Some(2));
/// assert_eq!((limits.rooms, limits.guests), (1, Some(2)));
/// ```
#[macro_export]
macro_rules! setters {
    (@ $name:ident) => { $name };
    (@ $name:ident $value:expr) => { $value };
    (const $options:ident: $($(#[$meta:meta])* $name:ident: $type:ty $(= $value:expr)?,)+) => {
        impl $options {
            $(
                $(#[$meta])*
                #[must_use]
                pub const fn $name(mut self, $name: $type) -> Self {
                    self.$name = $crate::setters!(@ $name $($value)?);
                    self
                }
            )+
        }
    };
    ($options:ident: $($(#[$meta:meta])* $name:ident: $type:ty $(= $value:expr)?,)+) => {
        impl $options {
            $(
                $(#[$meta])*
                #[must_use]
                pub fn $name(mut self, $name: $type) -> Self {
                    self.$name = $crate::setters!(@ $name $($value)?);
                    self
                }
            )+
        }
    };
}
