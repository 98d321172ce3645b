//! Migrations, from one place for every database.

/// All of them in order; the database remembers how many it has had. They are never changed, only followed by others.
pub(crate) const ALL: [&str; 4] = [
    include_str!("../../migrations/0001-start.sql"),
    include_str!("../../migrations/0002-operators.sql"),
    include_str!("../../migrations/0003-several.sql"),
    include_str!("../../migrations/0004-tokens.sql"),
];
