DELETE FROM outbox_redeliveries WHERE redelivery = ?1
