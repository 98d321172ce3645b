//! Configuration and errors of interest.

use super::grid::Plane;
use super::model::length;

/// Settings of [`Interest`](super::Interest).
#[derive(Clone, Debug)]
pub struct InterestConfig {
    pub(super) plane: Plane,
    pub(super) cell: f32,
    pub(super) entities_max: usize,
    pub(super) observers_max: usize,
    pub(super) regions_max: usize,
    pub(super) adapters_max: usize,
    pub(super) visible_max: usize,
    pub(super) linger: u8,
}

impl Default for InterestConfig {
    fn default() -> Self {
        Self {
            plane: Plane::Xz,
            cell: 32.0,
            entities_max: 65_536,
            observers_max: 1_024,
            regions_max: 4_096,
            adapters_max: 256,
            visible_max: 4_096,
            linger: 0,
        }
    }
}

muse_wire::setters! { InterestConfig:
    /// Sets the coordinates that make the cells. Default: x and z, with y up.
    plane: Plane,
    /// Edge of the smallest cells, 0.01 to 1,000,000. A quarter to a half of the usual focus is a good choice: smaller costs more
    /// cells to look into, larger more entities to measure in vain. Default: 32.
    cell: f32 = length(cell).clamp(0.01, 1e6),
    /// Entities are refused when their index is not below this. Costs up to 360 bytes each. Default: 65,536.
    entities_max: usize,
    /// Observers are refused when their number is not below this. Default: 1,024.
    observers_max: usize,
    /// Regions with something in them. Default: 4,096.
    regions_max: usize,
    /// Adapters are refused when their number is not below this. Each costs every update a comparison. Default: 256.
    adapters_max: usize,
    /// Entities relevant to one observer: beyond it only those that weigh most. Costs 40 bytes each. Default: 4,096.
    visible_max: usize,
    /// Sets for how many updates an entity stays relevant after it was last perceived, so that things behind a fence do
    /// not flicker. A cheater sees it for as long. Default: 0.
    linger: u8,
}

/// The reason for which [`Interest`](super::Interest) refused something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterestError {
    /// A coordinate that is not a number or beyond a billion.
    #[error("a position is not finite or beyond 1e9")]
    Position,
    /// See [`InterestConfig::entities_max`].
    #[error("the index of the entity is beyond the limit of entities")]
    EntityLimit,
    /// See [`InterestConfig::observers_max`].
    #[error("the number of the observer is beyond the limit of observers")]
    ObserverLimit,
    /// See [`InterestConfig::regions_max`].
    #[error("too many regions with something in them")]
    RegionLimit,
    /// See [`InterestConfig::adapters_max`].
    #[error("the number of the adapter is beyond the limit of adapters")]
    AdapterLimit,
    /// It was never placed, or has been removed.
    #[error("no such entity")]
    UnknownEntity,
    /// It was never added, or has been removed.
    #[error("no such observer")]
    UnknownObserver,
}
