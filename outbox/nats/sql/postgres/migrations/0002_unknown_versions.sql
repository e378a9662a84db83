-- When a process first met the message without knowing the version of its event, in microseconds; NULL:
-- none did.
ALTER TABLE stela.inbox_failures ADD COLUMN unknown_since bigint;
