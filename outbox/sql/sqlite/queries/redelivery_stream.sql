SELECT stream, kind, claim FROM outbox_redeliveries WHERE redelivery = ?1
