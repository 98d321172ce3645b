//! Sleeping entities and entities that are run less often (in For Honor they saved 90 % of the CPU time).
//!
//! Doors and crossbows far from every player need no steps, and a bot that thinks every 200 ms plays as well as one that thinks every 33. The
//! schedule is part of the state, so every machine skips the same entities.

use muse_schema::Schema;

/// Decides which entities are run in which step.
///
/// ```
/// use muse_lockstep::Schedule;
/// let mut schedule = Schedule::new(100);
/// for entity in 10..100 {
///     schedule.sleep(entity);
/// }
/// schedule.set_period(3, 6);
/// let run: Vec<u32> = schedule.due(1).collect();
/// assert_eq!(run, [0, 1, 2, 4, 5, 6, 7, 8, 9], "the bot's turn is another step");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Schema)]
pub struct Schedule {
    /// Those that are awake, in order.
    #[field(max = 65535)]
    awake: Vec<u32>,
    /// By entity: every how many steps it is run; 0 when it sleeps.
    #[field(max = 65535)]
    periods: Vec<u8>,
}

impl Schedule {
    /// So many entities, all awake and run in every step.
    pub fn new(entities: u32) -> Self {
        Self {
            awake: (0..entities).collect(),
            periods: vec![1; entities as usize],
        }
    }

    /// Returns true if an entity is awake.
    pub fn is_awake(&self, entity: u32) -> bool {
        self.awake.binary_search(&entity).is_ok()
    }

    /// Returns the number of entities that are awake.
    pub fn awake(&self) -> usize {
        self.awake.len()
    }

    /// Puts an entity to sleep.
    pub fn sleep(&mut self, entity: u32) {
        if let Ok(index) = self.awake.binary_search(&entity) {
            self.awake.remove(index);
        }
    }

    /// Wakes an entity.
    pub fn wake(&mut self, entity: u32) {
        let known = (entity as usize) < self.periods.len();
        if let (true, Err(index)) = (known, self.awake.binary_search(&entity)) {
            self.awake.insert(index, entity);
        }
    }

    /// Runs an entity only once in this many steps.
    pub fn set_period(&mut self, entity: u32, steps: u8) {
        if let Some(period) = self.periods.get_mut(entity as usize) {
            *period = steps.max(1);
        }
    }

    /// Returns the entities that run in this step, in order. Those of one period take turns, so that no step has them all.
    pub fn due(&self, time: u32) -> impl Iterator<Item = u32> {
        self.awake.iter().copied().filter(move |entity| {
            let period = u32::from(self.periods[*entity as usize].max(1));
            period == 1 || time.wrapping_add(*entity).is_multiple_of(period)
        })
    }

    /// Wakes entities within `near` of somebody and puts those to sleep that are further than `far` from everybody; in between it stays as it is, so that
    /// nobody at the edge wakes up and falls asleep all the time. One in `share` of all entities is looked at in each step.
    pub fn by_distance(
        &mut self,
        time: u32,
        share: u32,
        distance: impl Fn(u32) -> i64,
        near: i64,
        far: i64,
    ) {
        let share = share.max(1);
        let first = (time % share) as usize;
        for entity in (first..self.periods.len()).step_by(share as usize) {
            let entity = entity as u32;
            match distance(entity) {
                close if close <= near => self.wake(entity),
                away if away > far => self.sleep(entity),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_near_a_player_is_awake() {
        let mut schedule = Schedule::new(1_000);
        let player = 300i64;
        for time in 0..10 {
            schedule.by_distance(
                time,
                10,
                |entity| (i64::from(entity) - player).abs(),
                50,
                60,
            );
        }
        assert_eq!(
            schedule.awake(),
            121,
            "fifty to either side, and ten more that were awake"
        );
        let player = 420;
        for time in 0..10 {
            schedule.by_distance(
                time,
                10,
                |entity| (i64::from(entity) - player).abs(),
                50,
                60,
            );
        }
        assert!(schedule.is_awake(420) && !schedule.is_awake(300) && schedule.is_awake(360));
        assert_eq!(schedule.awake(), 102);
    }

    #[test]
    fn those_who_run_less_often_take_turns() {
        let mut schedule = Schedule::new(60);
        for entity in 0..60 {
            schedule.set_period(entity, 6);
        }
        let counts: Vec<usize> = (0..6).map(|time| schedule.due(time).count()).collect();
        assert_eq!(counts, [10; 6]);
    }
}
