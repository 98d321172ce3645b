-- What a game server may speak for. Times are microseconds since 1970.

-- A server has one match; afterwards it gets no other. One that is gone may not come back.
ALTER TABLE servers ADD COLUMN over_us BIGINT;
ALTER TABLE servers ADD COLUMN gone_us BIGINT;

-- Who has given up a seat in a match that is not over: a result may still name them.
CREATE TABLE left_seats (
    match_id BIGINT NOT NULL,
    account BIGINT NOT NULL,
    PRIMARY KEY (match_id, account)
);
