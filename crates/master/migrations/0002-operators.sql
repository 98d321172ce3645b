-- Operators, what they did, and what they imposed. Times are microseconds since 1970.

CREATE TABLE operators (
    name TEXT PRIMARY KEY,
    password TEXT NOT NULL,
    -- Raised by a new password; older tokens are void.
    generation BIGINT NOT NULL DEFAULT 0,
    created_us BIGINT NOT NULL
);

CREATE TABLE audit (
    entry BIGINT PRIMARY KEY,
    at_us BIGINT NOT NULL,
    operator TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);

-- `ban` or `mute`, until a time.
CREATE TABLE sanctions (
    account BIGINT NOT NULL,
    kind TEXT NOT NULL,
    until_us BIGINT NOT NULL,
    reason TEXT NOT NULL,
    operator TEXT NOT NULL,
    PRIMARY KEY (account, kind)
);

CREATE INDEX matches_by_creation ON matches (created_us);
