//! Migrations, from one place for every database.

/// All of them in order; the database remembers how many it has had. They are never changed, only followed by others.
pub(crate) const ALL: [&str; 7] = [
    include_str!("../../migrations/0001-start.sql"),
    include_str!("../../migrations/0002-operators.sql"),
    include_str!("../../migrations/0003-several.sql"),
    include_str!("../../migrations/0004-tokens.sql"),
    include_str!("../../migrations/0005-sign-ins.sql"),
    include_str!("../../migrations/0006-retention.sql"),
    include_str!("../../migrations/0007-hosts.sql"),
];
