//! Events for whoever debugs a machine, with the `tracing` crate.

#[cfg(feature = "tracing")]
#[doc(hidden)]
pub use tracing;

/// Records an event at a level of `tracing`, with fields and a text in its syntax.
///
/// Without the feature `tracing` it is nothing: no code, and its arguments are not evaluated. A machine's events depend on what it was
/// told alone, as everything else that it does; they read no clock.
///
/// ```
/// let (connection, cause) = (7, "silence");
/// muse_wire::log!(debug, connection, cause, "the connection is over");
/// ```
#[cfg(feature = "tracing")]
#[macro_export]
macro_rules! log {
    ($level:ident, $($event:tt)+) => {
        $crate::log::tracing::$level!($($event)+)
    };
}

/// Records an event at a level of `tracing`: nothing, without the feature `tracing`.
#[cfg(not(feature = "tracing"))]
#[macro_export]
macro_rules! log {
    ($level:ident, $($event:tt)+) => {
        ()
    };
}
