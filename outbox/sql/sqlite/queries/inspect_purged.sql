-- Partitions that count more discarded messages than there are: an older Stela purged the rows.
SELECT p.partition,
       p.discarded - (SELECT count(*) FROM outbox_discarded AS d WHERE d.partition = p.partition)
FROM outbox_partitions AS p
WHERE p.discarded > (SELECT count(*) FROM outbox_discarded AS d WHERE d.partition = p.partition)
ORDER BY p.partition
