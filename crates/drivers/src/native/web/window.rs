//! The congestion controller under WebTransport: a wide window that stays.
//!
//! Muse controls congestion itself, above QUIC and for every link alike, and would measure QUIC's queue instead of the network's if QUIC
//! held its datagrams back. What limits a peer is what the endpoint above sends to it.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use wtransport::quinn::congestion::{Controller, ControllerFactory};

/// Makes windows.
#[derive(Debug)]
pub(super) struct WideWindow;

impl ControllerFactory for WideWindow {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Wide)
    }
}

#[derive(Debug)]
struct Wide;

impl Controller for Wide {
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        WINDOW_BYTES
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self)
    }

    fn initial_window(&self) -> u64 {
        WINDOW_BYTES
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Bytes in flight: 10 Mbit/s at a round trip of 200 ms.
const WINDOW_BYTES: u64 = 256 << 10;
