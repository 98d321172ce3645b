//! The messages, by the types that the game of the thesis has. Positions travel on the partially reliable channel, for the next one makes up for
//! a lost one; everything else must arrive.

use muse_rp::Channel;

use crate::rules::Spot;

/// Something that one side tells the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Message {
    /// The host's greeting: who you are, and where you begin.
    You(u8, Spot),
    /// The place of a player; also that there is one.
    Position(u8, Spot),
    /// A player is gone.
    Left(u8),
    /// A player shoots in a direction.
    Shot(u8, Spot),
    /// The points of a player.
    Points(u8, u16),
    /// An enemy is hit.
    EnemyGone(u16),
    /// An enemy appears.
    Enemy(u16, Spot),
    /// The round begins.
    Start,
    /// The round is over.
    End,
}

impl Message {
    /// The channel, the type and the payload.
    pub(crate) fn emit(self) -> (Channel, u16, Vec<u8>) {
        let reliable = |kind, payload| (Channel::Reliable, kind, payload);
        match self {
            Self::You(id, at) => reliable(YOU, with_spot(&[id], at)),
            Self::Position(id, at) => (Channel::Partial, POSITION, with_spot(&[id], at)),
            Self::Left(id) => reliable(LEFT, vec![id]),
            Self::Shot(id, direction) => reliable(SHOT, with_spot(&[id], direction)),
            Self::Points(id, points) => {
                let [low, high] = points.to_le_bytes();
                reliable(POINTS, vec![id, low, high])
            }
            Self::EnemyGone(enemy) => reliable(ENEMY_GONE, enemy.to_le_bytes().to_vec()),
            Self::Enemy(enemy, at) => reliable(ENEMY, with_spot(&enemy.to_le_bytes(), at)),
            Self::Start => reliable(START, Vec::new()),
            Self::End => reliable(END, Vec::new()),
        }
    }

    /// Reads a message; `None` if it makes no sense, whoever sent it.
    pub(crate) fn parse(kind: u16, payload: &[u8]) -> Option<Self> {
        let id = || payload.first().copied();
        let number = |at: usize| Some(u16::from_le_bytes(*payload.get(at..)?.first_chunk()?));
        Some(match kind {
            YOU => Self::You(id()?, spot(payload.get(1..)?)?),
            POSITION => Self::Position(id()?, spot(payload.get(1..)?)?),
            LEFT => Self::Left(id()?),
            SHOT => Self::Shot(id()?, spot(payload.get(1..)?)?),
            POINTS => Self::Points(id()?, number(1)?),
            ENEMY_GONE => Self::EnemyGone(number(0)?),
            ENEMY => Self::Enemy(number(0)?, spot(payload.get(2..)?)?),
            START => Self::Start,
            END => Self::End,
            _ => return None,
        })
    }
}

fn with_spot(head: &[u8], [x, y]: Spot) -> Vec<u8> {
    [head, &x.to_le_bytes(), &y.to_le_bytes()].concat()
}

fn spot(bytes: &[u8]) -> Option<Spot> {
    let part = |at: usize| Some(f32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let spot = [part(0)?, part(4)?];
    spot.iter().all(|part| part.is_finite()).then_some(spot)
}

const POSITION: u16 = 5;
const LEFT: u16 = 6;
const SHOT: u16 = 7;
const POINTS: u16 = 8;
const ENEMY_GONE: u16 = 9;
const ENEMY: u16 = 10;
const START: u16 = 11;
const END: u16 = 12;
const YOU: u16 = 66;
