//! The cost of an input: memory held and work done, counted and never timed.
//!
//! Memory is counted by the allocator. Work is counted by the counters that `-C instrument-coverage` puts into every function, branch
//! and loop of every crate here: a step is one of them passed. Assembly and the standard library have none. A build without these
//! flags (`.cargo/config.toml`) counts no steps, and the tests say so.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// A body with what it may cost.
pub struct Target {
    /// The name of the fuzz target and of its corpus.
    pub name: &'static str,
    /// Prepares what every input needs, so that it costs none of them anything.
    pub setup: fn(),
    /// Runs an input and asserts what must hold.
    pub body: fn(&[u8]),
    /// Bytes of memory that an input may make the body hold at once.
    pub memory: Bound,
    /// Steps that an input may make the body take.
    pub steps: Bound,
}

/// A limit that grows with the length of an input.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// For an empty input: what the body needs for itself.
    pub base: u64,
    /// For each byte of the input.
    pub per_byte: u64,
}

/// The cost of something that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The most that was held at once, beyond what was held before, in bytes.
    pub peak: u64,
    /// Bytes held afterwards and not before; negative if more was freed.
    pub held: i64,
    /// Steps taken.
    pub steps: u64,
}

impl Target {
    /// Runs an input and asserts that it costs no more than it may.
    ///
    /// # Panics
    /// If something that must hold does not, or the input costs too much.
    pub fn run(&self, data: &[u8]) -> Cost {
        (self.setup)();
        let cost = measure(|| (self.body)(data));
        guide::show(&cost, data.len());
        if std::env::var_os(SHOW).is_some() {
            let (name, Cost { peak, steps, .. }) = (self.name, cost);
            eprintln!("{name}: {} bytes, {steps} steps, {peak} held", data.len());
        }
        self.memory.check(self.name, "bytes", cost.peak, data.len());
        self.steps.check(self.name, "steps", cost.steps, data.len());
        cost
    }
}

impl Bound {
    /// Returns the limit for an input of this length.
    pub fn of(&self, len: usize) -> u64 {
        self.base + self.per_byte * len as u64
    }

    fn check(&self, name: &str, unit: &str, cost: u64, len: usize) {
        let limit = self.of(len);
        assert!(
            cost <= limit,
            "{name}: {len} bytes cost {cost} {unit}, {limit} allowed"
        );
    }
}

/// Runs `act` and returns its cost on this thread; steps of other threads count as well.
pub fn measure(act: impl FnOnce()) -> Cost {
    let (live, peak) = (LIVE.get(), PEAK.replace(LIVE.get()));
    let before = steps();
    act();
    let after = steps();
    let highest = PEAK.replace(peak.max(PEAK.get()));
    Cost {
        peak: (highest - live) as u64,
        held: LIVE.get() - live,
        steps: after.wrapping_sub(before),
    }
}

/// Returns true if this build counts steps.
pub const fn counts_steps() -> bool {
    cfg!(count_steps)
}

/// With this in the environment, each input prints its cost.
const SHOW: &str = "MUSE_FUZZ_COSTS";

/// Counts what the thread holds.
struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    /// The most that was live since the innermost `measure` began.
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    let live = LIVE.get() + bytes;
    LIVE.set(live);
    if live > PEAK.get() {
        PEAK.set(live);
    }
}

// SAFETY: every call goes to the system's allocator unchanged; counting neither allocates nor panics.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns the sum of all counters of the program.
#[cfg(count_steps)]
#[inline(never)]
fn steps() -> u64 {
    unsafe extern "C" {
        fn __llvm_profile_begin_counters() -> *const u64;
        fn __llvm_profile_end_counters() -> *const u64;
    }
    // SAFETY: the profiler's runtime returns both ends of one array of aligned counters that lives as long as the program. Nothing else
    // writes to it while it is read: this function has no branch after this point, and bodies start no threads that go on without them.
    let counters = unsafe {
        let (begin, end) = (
            __llvm_profile_begin_counters(),
            __llvm_profile_end_counters(),
        );
        std::slice::from_raw_parts(begin, end.offset_from(begin) as usize)
    };
    // Without a closure, which would count its own calls.
    counters.iter().copied().fold(0, u64::wrapping_add)
}

#[cfg(not(count_steps))]
fn steps() -> u64 {
    0
}

/// Leads libFuzzer to expensive inputs: it keeps an input that costs more for its length than any before, as if it had reached new code.
mod guide {
    use super::Cost;

    /// Marks how much an input of this length cost.
    pub(super) fn show(cost: &Cost, len: usize) {
        mark(0, cost.steps, len);
        mark(LEVELS, cost.peak, len);
    }

    fn mark(first: usize, cost: u64, len: usize) {
        // Short inputs are not expensive because of what every input costs.
        let ratio = cost as f64 / (len as f64 + SHORT);
        let level = (ratio.max(1.0).log2() * LEVELS_PER_DOUBLING) as usize;
        set(first + level.min(LEVELS - 1));
    }

    #[cfg(all(fuzzing, target_os = "linux"))]
    fn set(level: usize) {
        /// libFuzzer finds it by its section, reads it after each input and clears it.
        #[unsafe(link_section = "__libfuzzer_extra_counters")]
        static mut COSTS: [u8; 2 * LEVELS] = [0; 2 * LEVELS];
        // SAFETY: the level is within the array, and only the fuzzer's one thread touches it.
        unsafe { (&raw mut COSTS).cast::<u8>().add(level).write_volatile(1) };
    }

    #[cfg(not(all(fuzzing, target_os = "linux")))]
    fn set(_: usize) {}

    const LEVELS: usize = 128;
    const LEVELS_PER_DOUBLING: f64 = 4.0;
    const SHORT: f64 = 64.0;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_at_its_peak_and_after() {
        let mut kept = Vec::new();
        let cost = measure(|| {
            drop(std::hint::black_box(vec![0u8; 10_000]));
            kept = vec![0u8; 3_000];
        });
        assert_eq!((cost.peak, cost.held), (10_000, 3_000));
        // What is measured inside of what is measured counts for both.
        let outer = measure(|| {
            let inner = measure(|| kept = Vec::new());
            assert_eq!((inner.peak, inner.held), (0, -3_000));
            drop(std::hint::black_box(vec![0u8; 5_000]));
        });
        assert_eq!((outer.peak, outer.held), (2_000, -3_000));
    }

    #[test]
    fn steps_are_counted_and_grow_with_the_work() {
        assert!(counts_steps(), "run this in fuzz/, without RUSTFLAGS");
        let sum = |count: u64| {
            let mut sum = 0u64;
            for number in 0..count {
                sum = sum.wrapping_mul(3) ^ std::hint::black_box(number);
            }
            sum
        };
        let [few, many] = [1_000, 10_000]
            .map(|count| measure(|| assert_ne!(std::hint::black_box(sum(count)), 1)).steps);
        assert!(
            few >= 1_000 && many >= 10_000 && many <= few * 11,
            "{few} {many}"
        );
    }

    #[test]
    #[should_panic(expected = "greedy: 2 bytes cost 20000 bytes, 10100 allowed")]
    fn an_input_that_costs_too_much_fails() {
        let greedy = Target {
            name: "greedy",
            setup: || {},
            body: |data| drop(std::hint::black_box(vec![0u8; data.len() * 10_000])),
            memory: Bound {
                base: 100,
                per_byte: 5_000,
            },
            steps: Bound {
                base: 100,
                per_byte: 100,
            },
        };
        greedy.run(&[1, 2]);
    }
}
