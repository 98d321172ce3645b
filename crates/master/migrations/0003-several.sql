-- What several masters need to know of each other when a note between them is lost. Times are microseconds since 1970.

CREATE TABLE masters (
    master BIGINT PRIMARY KEY,
    seen_us BIGINT NOT NULL
);

-- Which master a player is connected to. It holds while that master is seen.
CREATE TABLE presence (
    account BIGINT PRIMARY KEY,
    master BIGINT NOT NULL
);
CREATE INDEX presence_by_master ON presence (master);

-- What the game server of a match said last, and its result until that is applied.
CREATE TABLE reports (
    match_id BIGINT PRIMARY KEY,
    server BIGINT NOT NULL,
    at_us BIGINT NOT NULL,
    report TEXT NOT NULL,
    result TEXT
);
