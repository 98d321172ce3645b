//! The caller's memory: every pointer that comes over the border passes through here.

use std::ffi::{CStr, c_char};

use crate::status::{Failure, MuseStatus};

/// The bytes at `pointer`; none at all for a length of zero, whatever the pointer is.
///
/// # Safety
/// `pointer` is null, or `len` bytes can be read there until `'a` ends.
pub(crate) unsafe fn bytes<'a>(pointer: *const u8, len: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: bytes have no alignment and any value; the caller vouches for the rest.
    unsafe { items(pointer, len) }
}

/// The items at `pointer`; none at all for a length of zero, whatever the pointer is.
///
/// # Safety
/// `pointer` is null, or `len` aligned and valid items can be read there until `'a` ends.
pub(crate) unsafe fn items<'a, T>(pointer: *const T, len: usize) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null());
    }
    if len > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::argument("the length is longer than any memory"));
    }
    // SAFETY: not null, the length fits, and the caller vouches for the memory behind it.
    Ok(unsafe { std::slice::from_raw_parts(pointer, len) })
}

/// The text at `pointer`, up to its zero.
///
/// # Safety
/// `pointer` is null, or a text that ends with a zero can be read there until `'a` ends.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(null());
    }
    // SAFETY: not null, and the caller vouches for the text and its zero.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Failure::argument("the text is not UTF-8"))
}

/// The text at `pointer`; none for a null.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn optional_text<'a>(pointer: *const c_char) -> Result<&'a str, Failure> {
    match pointer.is_null() {
        true => Ok(""),
        // SAFETY: as this function demands.
        false => unsafe { text(pointer) },
    }
}

/// The structure at `pointer`.
///
/// # Safety
/// `pointer` is null, or an aligned and valid `T` can be read there until `'a` ends.
pub(crate) unsafe fn read<'a, T>(pointer: *const T) -> Result<&'a T, Failure> {
    // SAFETY: the caller vouches for what is behind a pointer that is not null.
    unsafe { pointer.as_ref() }.ok_or_else(null)
}

/// A place of the caller's for a result; checked before anything is done, so that a null changes nothing.
///
/// # Safety
/// `pointer` is null, or a `T` can be written there until `'a` ends.
pub(crate) unsafe fn place<'a, T>(pointer: *mut T) -> Result<Place<'a, T>, Failure> {
    match pointer.is_null() {
        true => Err(null()),
        false => Ok(Place {
            pointer,
            _lifetime: std::marker::PhantomData,
        }),
    }
}

/// The caller's place for one result.
pub(crate) struct Place<'a, T> {
    pointer: *mut T,
    _lifetime: std::marker::PhantomData<&'a mut T>,
}

impl<T> Place<'_, T> {
    pub(crate) fn put(&self, value: T) {
        // SAFETY: `place` was promised a writable `T` for as long as this lives. What was there needs no drop: it is C's.
        unsafe { self.pointer.write(value) }
    }
}

/// Copies `data` to the caller's buffer and its length to `len`; the length alone when it does not fit.
///
/// # Safety
/// `buffer` is null, or `capacity` bytes can be written there.
pub(crate) unsafe fn copy_out(
    data: &[u8],
    buffer: *mut u8,
    capacity: usize,
    len: &Place<'_, usize>,
) -> Result<(), Failure> {
    len.put(data.len());
    if data.len() > capacity {
        return Err(Failure::new(
            MuseStatus::ErrorShortBuffer,
            "the buffer is too short",
        ));
    }
    if data.is_empty() {
        return Ok(());
    }
    if buffer.is_null() {
        return Err(null());
    }
    // SAFETY: the buffer has room for `capacity` bytes, which is no less than what is copied, and is not ours.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), buffer, data.len()) };
    Ok(())
}

/// Copies a text and a zero behind it to the caller's buffer, and its length without the zero to `len`, also when it does not fit.
///
/// # Safety
/// As for [`copy_out`].
pub(crate) unsafe fn copy_text(
    text: &str,
    buffer: *mut c_char,
    capacity: usize,
    len: &Place<'_, usize>,
) -> Result<(), Failure> {
    let ended = [text.as_bytes(), &[0]].concat();
    // SAFETY: as this function demands.
    let outcome = unsafe { copy_out(&ended, buffer.cast(), capacity, len) };
    len.put(text.len());
    outcome
}

fn null() -> Failure {
    Failure::new(
        MuseStatus::ErrorNull,
        "a pointer that has to point somewhere is null",
    )
}
