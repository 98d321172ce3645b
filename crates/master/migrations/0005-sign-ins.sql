-- A sign-in is one use of a device key or a password, with all tokens that follow from it by refreshing.
ALTER TABLE refresh_tokens ADD COLUMN sign_in BIGINT NOT NULL DEFAULT 0;
-- When it was exchanged, and for which token, as a hash: asked again at once, the same answer is given once more.
ALTER TABLE refresh_tokens ADD COLUMN used_us BIGINT NOT NULL DEFAULT 0;
ALTER TABLE refresh_tokens ADD COLUMN successor TEXT NOT NULL DEFAULT '';
ALTER TABLE refresh_tokens ADD COLUMN repeats BIGINT NOT NULL DEFAULT 1;
-- With this and the token before it, it can be made again; empty when it is used.
ALTER TABLE refresh_tokens ADD COLUMN salt TEXT NOT NULL DEFAULT '';
-- The sign-in that set the last password: it goes on when all others end. 0 is nobody's.
ALTER TABLE accounts ADD COLUMN kept_sign_in BIGINT NOT NULL DEFAULT 0;
