-- What relays ask again and again while much is to be sent again.
CREATE INDEX outbox_redeliveries_by_generation ON outbox_redeliveries (generation);
CREATE INDEX outbox_redeliveries_claimed ON outbox_redeliveries (claim) WHERE claim IS NOT NULL;
