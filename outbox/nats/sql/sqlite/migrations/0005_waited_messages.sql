-- How long processes have seen a message wait for an earlier one, in milliseconds, and when one of
-- them looked last: none needs to live for as long as a message waits.
ALTER TABLE inbox_held ADD COLUMN waited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE inbox_held ADD COLUMN looked_at INTEGER;
