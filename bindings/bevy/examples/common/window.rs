//! A window for the examples, with the feature `window`: squares on a field seen from above. Bevy's own renderer would do as well; this one builds in seconds.

use minifb::{Window, WindowOptions};

/// A picture of a field of 120 metres, and the window it is shown in.
pub(crate) struct Picture {
    window: Window,
    pixels: Vec<u32>,
}

impl Picture {
    pub(crate) fn open(title: &str) -> std::io::Result<Self> {
        let window = Window::new(title, SIDE, SIDE, WindowOptions::default());
        let mut window = window.map_err(std::io::Error::other)?;
        window.set_target_fps(60);
        Ok(Self {
            window,
            pixels: vec![BACKGROUND; SIDE * SIDE],
        })
    }

    /// A square of so many metres around a place.
    pub(crate) fn square(&mut self, [x, y]: [f32; 2], metres: f32, colour: u32) {
        let place = |at: f32| ((at / FIELD + 0.5) * SIDE as f32).clamp(0.0, SIDE as f32) as usize;
        let half = metres / 2.0;
        for row in place(y - half)..place(y + half) {
            self.pixels[row * SIDE..][place(x - half)..place(x + half)].fill(colour);
        }
    }

    /// Shows the picture, waits for the screen, and begins an empty one. Says whether the window is still open.
    pub(crate) fn show(&mut self) -> bool {
        // A window that cannot be drawn to is as good as closed.
        let shown = self.window.update_with_buffer(&self.pixels, SIDE, SIDE);
        self.pixels.fill(BACKGROUND);
        shown.is_ok() && self.window.is_open()
    }
}

const SIDE: usize = 600;
const FIELD: f32 = 120.0;
const BACKGROUND: u32 = 0x10_1418;
