-- Workers claim no messages any more: without leasing one worker has all partitions. The columns that
-- held claims stay, and are empty.
UPDATE outbox_messages SET claim = NULL, claimed_until = 0 WHERE claim IS NOT NULL;
UPDATE outbox_redeliveries SET claim = NULL, claimed_until = 0 WHERE claim IS NOT NULL;
DROP INDEX outbox_messages_claimed;
DROP INDEX outbox_redeliveries_claimed;
