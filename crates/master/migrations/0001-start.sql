-- One text for SQLite and PostgreSQL: only types and statements that both take. Times are microseconds since 1970.

CREATE TABLE secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE leases (
    queue TEXT PRIMARY KEY,
    holder BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    until_us BIGINT NOT NULL
);

CREATE TABLE accounts (
    account BIGINT PRIMARY KEY,
    device TEXT UNIQUE,
    name TEXT UNIQUE,
    password TEXT,
    -- Raised by signing out everywhere; older access tokens are void.
    generation BIGINT NOT NULL DEFAULT 0,
    rating DOUBLE PRECISION NOT NULL,
    uncertainty DOUBLE PRECISION NOT NULL,
    points BIGINT NOT NULL DEFAULT 0,
    created_us BIGINT NOT NULL
);
CREATE INDEX accounts_by_points ON accounts (points DESC, account);

-- Tokens as hashes; a used one is kept until it expires, because its second use betrays a thief.
CREATE TABLE refresh_tokens (
    token TEXT PRIMARY KEY,
    account BIGINT NOT NULL,
    expires_us BIGINT NOT NULL,
    used BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX refresh_tokens_by_account ON refresh_tokens (account);

CREATE TABLE tickets (
    ticket BIGINT PRIMARY KEY,
    preferences TEXT NOT NULL,
    since_us BIGINT NOT NULL,
    attempts BIGINT NOT NULL DEFAULT 0
);
-- A player is in one ticket at most.
CREATE TABLE ticket_members (
    account BIGINT PRIMARY KEY,
    ticket BIGINT NOT NULL,
    place BIGINT NOT NULL,
    rating DOUBLE PRECISION NOT NULL
);
CREATE INDEX ticket_members_by_ticket ON ticket_members (ticket, place);

CREATE TABLE servers (
    server BIGINT PRIMARY KEY,
    address TEXT NOT NULL,
    public_key TEXT NOT NULL,
    seen_us BIGINT NOT NULL
);

CREATE TABLE matches (
    match_id BIGINT PRIMARY KEY,
    preferences TEXT NOT NULL,
    bots BIGINT NOT NULL,
    server BIGINT,
    running BIGINT NOT NULL DEFAULT 0,
    created_us BIGINT NOT NULL,
    ended_us BIGINT,
    outcome TEXT
);
CREATE INDEX matches_by_end ON matches (ended_us);
-- A player is in one match at most; the rows of a match go when it ends.
CREATE TABLE seats (account BIGINT PRIMARY KEY, match_id BIGINT NOT NULL);
CREATE INDEX seats_by_match ON seats (match_id);
CREATE TABLE results (
    match_id BIGINT NOT NULL,
    account BIGINT NOT NULL,
    points BIGINT NOT NULL,
    rating DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (match_id, account)
);
CREATE INDEX results_by_account ON results (account);

-- `asked`, `friend` or `blocked`, seen from `account`.
CREATE TABLE friends (
    account BIGINT NOT NULL,
    other BIGINT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (account, other)
);
CREATE INDEX friends_by_other ON friends (other);

CREATE TABLE room_members (
    account BIGINT PRIMARY KEY,
    code TEXT NOT NULL,
    joined_us BIGINT NOT NULL
);
CREATE INDEX room_members_by_code ON room_members (code, joined_us);

CREATE TABLE chat (
    line BIGINT PRIMARY KEY,
    channel TEXT NOT NULL,
    sender BIGINT NOT NULL,
    text TEXT NOT NULL,
    at_us BIGINT NOT NULL
);
CREATE INDEX chat_by_channel ON chat (channel, line);
CREATE INDEX chat_by_sender ON chat (sender, line);

CREATE TABLE progress (
    account BIGINT NOT NULL,
    game TEXT NOT NULL,
    version BIGINT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (account, game)
);
