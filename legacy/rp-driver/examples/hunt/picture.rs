//! A field as pixels: no window is needed for it.

use crate::rules::{Field, HEIGHT, Spot, WIDTH};

/// The size of a picture: the points above, the field below.
pub(crate) const PIXELS_WIDE: usize = WIDTH as usize;
pub(crate) const PIXELS_HIGH: usize = HEIGHT as usize + TOP;

/// Draws a field as a player sees it, who has a ring around them.
pub(crate) fn draw(field: &Field, own: Option<u8>) -> Vec<u32> {
    let mut picture = Picture(vec![BACKGROUND; PIXELS_WIDE * PIXELS_HIGH]);
    picture.box_at([0, 0], [PIXELS_WIDE, TOP], BAR);
    for at in field.enemies.values() {
        picture.disc(*at, 10.0, ENEMY);
        for eye in [-4.0, 4.0] {
            picture.disc([at[0] + eye, at[1] - 2.0], 2.5, WHITE);
        }
    }
    for (place, (id, player)) in field.players.iter().enumerate() {
        let colour = COLOURS[usize::from(*id) % COLOURS.len()];
        if own == Some(*id) {
            picture.disc(player.at, 12.0, WHITE);
            picture.disc(player.at, 10.5, BACKGROUND);
        }
        picture.disc(player.at, 8.5, colour);
        let left = 8 + place * 60;
        picture.box_at([left, 8], [12, 14], colour);
        picture.number(player.points, [left + 18, 8]);
    }
    for shot in &field.shots {
        picture.disc(shot.at, 2.5, COLOURS[usize::from(shot.by) % COLOURS.len()]);
    }
    picture.0
}

struct Picture(Vec<u32>);

impl Picture {
    fn box_at(&mut self, [left, top]: [usize; 2], [wide, high]: [usize; 2], colour: u32) {
        let [left, right] = [left, left + wide].map(|x| x.min(PIXELS_WIDE));
        for row in top..(top + high).min(PIXELS_HIGH) {
            self.0[row * PIXELS_WIDE..][left..right].fill(colour);
        }
    }

    fn disc(&mut self, at: Spot, radius: f32, colour: u32) {
        let [x, y] = [at[0], at[1] + TOP as f32];
        let range = |middle: f32, end: usize| {
            (middle - radius).max(0.0) as usize..((middle + radius).max(0.0) as usize + 1).min(end)
        };
        for row in range(y, PIXELS_HIGH) {
            for column in range(x, PIXELS_WIDE) {
                if (column as f32 - x).hypot(row as f32 - y) < radius {
                    self.0[row * PIXELS_WIDE + column] = colour;
                }
            }
        }
    }

    fn number(&mut self, number: u16, [mut left, top]: [usize; 2]) {
        for digit in number.to_string().bytes() {
            let rows = DIGITS[usize::from(digit - b'0')];
            for (row, bits) in rows.into_iter().enumerate() {
                for column in (0..3).filter(|column| bits & (4 >> column) != 0) {
                    self.box_at([left + column * 3, top + row * 3], [3, 3], WHITE);
                }
            }
            left += 12;
        }
    }
}

/// Rows of three pixels.
const DIGITS: [[u8; 5]; 10] = [
    [7, 5, 5, 5, 7],
    [2, 6, 2, 2, 7],
    [7, 1, 7, 4, 7],
    [7, 1, 7, 1, 7],
    [5, 5, 7, 1, 1],
    [7, 4, 7, 1, 7],
    [7, 4, 7, 5, 7],
    [7, 1, 1, 2, 2],
    [7, 5, 7, 5, 7],
    [7, 5, 7, 1, 7],
];
const TOP: usize = 30;
const BACKGROUND: u32 = 0x18_1c22;
const BAR: u32 = 0x2a_3039;
const WHITE: u32 = 0xf4_f4f0;
const ENEMY: u32 = 0xd0_3b3b;
const COLOURS: [u32; 8] = [
    0x4c_a3ff, 0xff_b000, 0x5f_d068, 0xc7_7dff, 0x2f_d6c7, 0xff_7ab8, 0xb8_c24a, 0x9a_a7b5,
];
