//! The object that owns everything, the handles into it, and the border that no panic crosses.

use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use muse::netcode::inputs::InputBuffer;
use muse::netcode::interpolation::Playback;
use muse::transport::token::TokenIssuer;

use crate::clock::{InputBytes, PacedClock};
use crate::endpoint::OwnedEndpoint;
use crate::interpolation::Interpolation;
use crate::memory;
use crate::status::{Failure, MuseStatus};

/// Owns endpoints, clocks and everything else that is made with it. Made by `muse_new`, freed by `muse_free`.
///
/// Threads: calls with one Muse must not overlap; one that does is answered with MUSE_STATUS_ERROR_BUSY and does nothing. Any
/// thread may make the next call. Different Muses have nothing in common and may be used at the same time. The library has
/// no threads of its own, calls nobody back and keeps no global state.
///
/// Ownership: memory that the caller passes in is read or written during the call only. Memory that the library hands out (payloads
/// of events) stays the library's; each function says for how long it may be read.
pub struct Muse {
    busy: AtomicBool,
    inner: UnsafeCell<Inner>,
}

/// Everything that a [`Muse`] holds.
#[derive(Default)]
pub(crate) struct Inner {
    slots: Vec<Slot>,
    free: Vec<u32>,
    error: String,
    failed: bool,
}

struct Slot {
    generation: u32,
    thing: Option<Thing>,
}

/// Declares everything that a handle can name: the variant, its number in a handle, and the method of [`Inner`] that finds one.
macro_rules! things {
    ($($variant:ident($type:ty) = $kind:literal, $find:ident;)*) => {
        pub(crate) enum Thing {
            $($variant(Box<$type>),)*
        }

        impl Thing {
            fn kind(&self) -> u64 {
                match self {
                    $(Self::$variant(_) => $kind,)*
                }
            }
        }

        $(impl From<$type> for Thing {
            fn from(thing: $type) -> Self {
                Self::$variant(Box::new(thing))
            }
        })*

        impl Inner {
            $(pub(crate) fn $find(&mut self, handle: u64) -> Result<&mut $type, Failure> {
                match self.find(handle).and_then(|slot| slot.thing.as_mut()) {
                    Some(Thing::$variant(thing)) => Ok(thing),
                    _ => Err(stale()),
                }
            })*
        }
    };
}

things! {
    Endpoint(OwnedEndpoint) = 1, endpoint;
    Issuer(TokenIssuer) = 2, issuer;
    Clock(PacedClock) = 3, clock;
    Inputs(InputBuffer<InputBytes>) = 4, inputs;
    Playback(Playback) = 5, playback;
    Interpolation(Interpolation) = 6, interpolation;
}

/// Returns the version of this interface: the upper 16 bits change when a program has to be compiled again.
#[unsafe(no_mangle)]
pub extern "C" fn muse_abi_version() -> u32 {
    ABI_VERSION
}

/// Makes a new Muse; the caller frees it with `muse_free`. Null only when there is no memory.
#[unsafe(no_mangle)]
pub extern "C" fn muse_new() -> *mut Muse {
    Box::into_raw(Box::new(Muse {
        busy: AtomicBool::new(false),
        inner: UnsafeCell::new(Inner::default()),
    }))
}

/// Frees a Muse and everything that it owns; connections are told. Null is allowed. No other call may be under way or follow: the
/// pointer, and every payload that was handed out, is dead afterwards.
///
/// # Safety
/// `muse` is null or came from `muse_new` and has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_free(muse: *mut Muse) {
    if muse.is_null() {
        return;
    }
    // SAFETY: it came from `Box::into_raw` in `muse_new`, and the caller frees it once.
    let muse = unsafe { Box::from_raw(muse) };
    // What a broken program would unwind with has nowhere to go; memory that is then not freed is the lesser evil.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(muse)));
}

/// Destroys what a handle names: an endpoint (its connections are told), an issuer, a clock and so on. The handle is stale afterwards,
/// and so are payloads that came from it.
///
/// # Safety
/// `muse` is null or a living Muse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_destroy(muse: *mut Muse, handle: u64) -> MuseStatus {
    run!(muse, |inner| {
        let slot = inner.find(handle).ok_or_else(stale)?;
        drop(slot.thing.take());
        // A slot whose generations are used up is never taken again.
        if slot.generation < u32::MAX {
            slot.generation += 1;
            inner.free.push((handle & INDEX_MASK) as u32);
        }
        Ok(())
    })
}

/// Copies the words for the last error of this Muse to `buffer`, with a zero at the end, and their length without it to `len`. A
/// buffer that is too short gets nothing, and `len` says what is needed (one more, for the zero).
///
/// # Safety
/// `muse` is null or a living Muse; `capacity` bytes can be written at `buffer` unless it is null; `len` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_error_text(
    muse: *mut Muse,
    buffer: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> MuseStatus {
    run!(muse, |inner| {
        let len = memory::place(len)?;
        let text = std::mem::take(&mut inner.error);
        let outcome = memory::copy_text(&text, buffer, capacity, &len);
        inner.error = text;
        // The words of the error before this one are what the caller wants, also the next time.
        Ok(outcome.map_or_else(|failure| failure.status, MuseStatus::from))
    })
}

/// The body of a function that C calls, run by [`with`].
macro_rules! run {
    ($muse:expr, $body:expr) => {
        // SAFETY: as the function demands that this is the body of.
        unsafe { $crate::context::with($muse, $body) }
    };
}
pub(crate) use run;

/// Runs a function's body on what a Muse holds: alone, and without a panic getting out.
///
/// # Safety
/// `muse` is null or a living Muse.
pub(crate) unsafe fn with<S: Into<MuseStatus>>(
    muse: *const Muse,
    act: impl FnOnce(&mut Inner) -> Result<S, Failure>,
) -> MuseStatus {
    // SAFETY: the caller vouches for a pointer that is not null; only shared references to a Muse are ever made.
    let Some(muse) = (unsafe { muse.as_ref() }) else {
        return MuseStatus::ErrorNull;
    };
    if muse.busy.swap(true, Ordering::Acquire) {
        return MuseStatus::ErrorBusy;
    }
    // SAFETY: whoever turned `busy` on has the content for itself until it turns it off below.
    let inner = unsafe { &mut *muse.inner.get() };
    let status = inner.run(act);
    muse.busy.store(false, Ordering::Release);
    status
}

impl Inner {
    fn run<S: Into<MuseStatus>>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<S, Failure>,
    ) -> MuseStatus {
        if self.failed {
            return MuseStatus::ErrorPanic;
        }
        match catch_unwind(AssertUnwindSafe(|| act(self))) {
            Ok(Ok(status)) => status.into(),
            Ok(Err(failure)) => {
                self.error.clear();
                self.error.push_str(&failure.text);
                failure.status
            }
            Err(_) => {
                self.failed = true;
                MuseStatus::ErrorPanic
            }
        }
    }

    /// Keeps something and returns the handle that names it.
    pub(crate) fn insert(&mut self, thing: impl Into<Thing>) -> Result<u64, Failure> {
        let thing = thing.into();
        let kind = thing.kind();
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() < THINGS_MAX => {
                self.slots.push(Slot {
                    generation: 1,
                    thing: None,
                });
                (self.slots.len() - 1) as u32
            }
            None => {
                return Err(Failure::new(
                    MuseStatus::ErrorFull,
                    "a Muse holds 65,536 things",
                ));
            }
        };
        let slot = &mut self.slots[index as usize];
        slot.thing = Some(thing);
        Ok(kind << 56 | u64::from(slot.generation) << 24 | u64::from(index))
    }

    fn find(&mut self, handle: u64) -> Option<&mut Slot> {
        let slot = self.slots.get_mut((handle & INDEX_MASK) as usize)?;
        let kind = slot.thing.as_ref()?.kind();
        let named = kind << 56 | u64::from(slot.generation) << 24 | (handle & INDEX_MASK);
        (named == handle).then_some(slot)
    }
}

fn stale() -> Failure {
    Failure::new(MuseStatus::ErrorStale, "the handle names nothing")
}

const ABI_VERSION: u32 = 2 << 16;
/// Things that a Muse holds at most.
const THINGS_MAX: usize = 65_536;
/// The bits of a handle that are its index: kind 8 bits, generation 32, index 24.
const INDEX_MASK: u64 = 0xFF_FFFF;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_stops_at_the_border_and_is_remembered() {
        let muse = muse_new();
        // SAFETY: it lives until it is freed below.
        unsafe {
            let status = with(muse, |inner| {
                let missing = inner.slots.first().map(|_| MuseStatus::Ok);
                Ok(missing.expect("a failure made for this test"))
            });
            assert_eq!(status, MuseStatus::ErrorPanic);
            assert_eq!(with(muse, |_| Ok(MuseStatus::Ok)), MuseStatus::ErrorPanic);
            muse_free(muse);
        }
    }

    #[test]
    fn a_call_inside_a_call_is_refused() {
        let muse = muse_new();
        // SAFETY: it lives until it is freed below.
        unsafe {
            let mut inside = MuseStatus::Ok;
            let outside = with(muse, |_| {
                inside = with(muse, |_| Ok(MuseStatus::Ok));
                Ok(MuseStatus::Ok)
            });
            assert_eq!((outside, inside), (MuseStatus::Ok, MuseStatus::ErrorBusy));
            assert_eq!(with(muse, |_| Ok(MuseStatus::None)), MuseStatus::None);
            muse_free(muse);
        }
    }

    #[test]
    fn nobody_uses_a_null() {
        // SAFETY: null is allowed.
        unsafe {
            muse_free(std::ptr::null_mut());
            assert_eq!(muse_destroy(std::ptr::null_mut(), 1), MuseStatus::ErrorNull);
        }
    }
}
