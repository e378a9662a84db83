-- What failures have in common; NULL behind another message, and of messages that an older Stela parked.
ALTER TABLE stela.outbox_parked ADD COLUMN failure text COLLATE "C";
CREATE INDEX outbox_parked_by_failure ON stela.outbox_parked (failure, parked_at, sequence)
  WHERE reason <> 'behind';
