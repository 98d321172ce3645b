//! Work on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does so many jobs on so many threads, and gives the results in order.
///
/// ```
/// let squares = muse_program::parallel::in_parallel(5, 2, |number| number * number);
/// assert_eq!(squares, [0, 1, 4, 9, 16]);
/// ```
pub fn in_parallel<T: Send>(
    jobs: usize,
    threads: usize,
    job: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(jobs));
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.max(1)) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= jobs {
                        break;
                    }
                    let result = job(number);
                    let mut done = done.lock().expect("no job panics while it holds the list");
                    done.push((number, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("all jobs have ended");
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}
