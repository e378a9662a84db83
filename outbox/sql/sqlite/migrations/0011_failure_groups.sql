-- What failures have in common; NULL behind another message, and of messages that an older Stela parked.
ALTER TABLE outbox_parked ADD COLUMN failure TEXT;
CREATE INDEX outbox_parked_by_failure ON outbox_parked (failure, parked_at, sequence)
  WHERE reason <> 'behind';
