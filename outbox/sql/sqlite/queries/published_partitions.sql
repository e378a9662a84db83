-- Retired ones too: what they published stands where it stood. One that published may count nothing
-- any more, after losses.
SELECT partition FROM outbox_partitions WHERE published > 0 OR published_through > 0
ORDER BY partition
