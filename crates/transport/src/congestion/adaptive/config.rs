//! Settings of the adaptive controller.

/// Constants of the adaptive controller.
#[derive(Clone, Copy, Debug)]
pub struct AdaptiveConfig {
    pub(super) window_max: usize,
    pub(super) window_initial: u32,
    pub(super) rate_floor: u32,
    pub(super) queue_packets: u32,
}

impl Default for AdaptiveConfig {
    fn default() -> Self {
        Self {
            window_max: 16 << 20,
            window_initial: 10,
            rate_floor: 32_000,
            queue_packets: 2,
        }
    }
}

muse_wire::setters! { AdaptiveConfig:
    /// Most bytes in flight (16 MiB). It bounds the memory for what may have to be sent again; never less than two packets.
    window_max: usize,

    /// Packets in flight before anything is known about the path (10). More starts faster and may overflow a short queue.
    window_initial: u32 = window_initial.max(2),

    /// Bytes per second below which losses alone never push the flow (32,000): what a game cannot do without. Delay
    /// still can. A high floor adds to the congestion of a thin link that drops instead of queueing.
    rate_floor: u32,

    /// Packets that the flow wants to have waiting in the bottleneck's queue (2). More holds a larger share beside others and on
    /// jittery paths, and delays everybody.
    queue_packets: u32 = queue_packets.max(1),
}
