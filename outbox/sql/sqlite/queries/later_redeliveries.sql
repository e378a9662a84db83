-- What of the stream was to be sent again already, and comes later in it.
SELECT redelivery, sequence, was_lost FROM outbox_redeliveries
WHERE stream = ?1 AND sequence >= ?2 AND kind = 'retry'
