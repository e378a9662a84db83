-- Since when the broker was seen to have no such stream; NULL if it has it, as far as anybody knows.
ALTER TABLE inbox_broker_streams ADD COLUMN gone_since INTEGER;
