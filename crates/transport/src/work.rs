//! Counts the steps that a received packet costs, so that tests can bound its work without measuring time.

/// Counts one step: a record visited, or a word of a set looked at. Nothing outside tests.
#[inline(always)]
pub(crate) fn step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

/// Runs `act` and returns how many steps it took.
#[cfg(test)]
pub(crate) fn steps_of(act: impl FnOnce()) -> u64 {
    let before = STEPS.with(std::cell::Cell::get);
    act();
    STEPS.with(std::cell::Cell::get) - before
}

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
