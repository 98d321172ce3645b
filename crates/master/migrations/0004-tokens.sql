-- What has run out is found without looking at what has not: every sign-in looks for it.
DROP INDEX refresh_tokens_by_account;
CREATE INDEX refresh_tokens_by_end ON refresh_tokens (account, expires_us);
