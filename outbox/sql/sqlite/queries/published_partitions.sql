-- Retired ones too: what they published stands where it stood.
SELECT partition FROM outbox_partitions WHERE published > 0 ORDER BY partition
