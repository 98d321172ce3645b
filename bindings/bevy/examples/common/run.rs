//! Runs apps of an example in one program, over the loopback interface and in real time.

use std::time::{Duration, Instant};

use bevy_app::App;
use muse_bevy::muse::{self, Connect, ServerOptions};
use muse_bevy::{BevyGame, Protocol};

/// A server, and what connects to it.
pub(crate) fn listen<G: BevyGame>(
    protocol: &Protocol<G>,
) -> std::io::Result<(
    muse::drivers::EndpointDriver,
    impl Fn() -> std::io::Result<muse::drivers::ClientDriver> + use<G>,
)> {
    let (config, key) = (protocol.transport(0x6265_7679), muse::new_key()?);
    let public = key.public();
    let server = muse::drivers::EndpointDriver::bind(
        "127.0.0.1:0",
        config.clone(),
        ServerOptions::new(key),
    )?;
    let address = server.local_addr()?;
    let connect = move || {
        muse::drivers::ClientDriver::connect(address, config.clone(), Connect::pinned(public))
    };
    Ok((server, connect))
}

/// Runs all of them, 250 frames a second, for so long or until `done`.
#[cfg_attr(
    feature = "window",
    allow(dead_code, reason = "where there is a window, it sets the pace")
)]
pub(crate) fn together(apps: &mut [&mut App], seconds: f64, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end && !done() {
        for app in apps.iter_mut() {
            app.update();
        }
        std::thread::sleep(Duration::from_millis(4));
    }
}
