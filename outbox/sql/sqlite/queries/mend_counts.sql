-- ?2 is how many more wait by the row than there are.
UPDATE outbox_partitions SET removed = removed + ?2, parked = ?3, redeliveries = ?4
WHERE partition = ?1
