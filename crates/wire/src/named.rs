//! Enums whose variants have names for people.

/// Declares an enum with the name of each variant: it gets `ALL` and `name`.
///
/// ```
/// muse_wire::named! {
///     /// Something that went wrong.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Fault {
///         /// Nobody answered.
///         Silence = "no answer",
///         /// It was too long.
///         Length = "too long",
///     }
/// }
///
/// assert_eq!(Fault::ALL.map(Fault::name), ["no answer", "too long"]);
/// ```
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident {
        $($(#[$doc:meta])* $variant:ident = $text:literal,)+
    }) => {
        $(#[$meta])*
        $visibility enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Returns its name, for logs and reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}
