-- What is kept for a time is found by its age, without looking at what is younger.
-- The last sign-in or refresh, to a day; 0 if that is not known yet.
ALTER TABLE accounts ADD COLUMN used_us BIGINT NOT NULL DEFAULT 0;
CREATE INDEX guests_by_use ON accounts (used_us) WHERE password IS NULL;
CREATE INDEX refresh_tokens_by_expiry ON refresh_tokens (expires_us);
CREATE INDEX audit_by_time ON audit (at_us);
