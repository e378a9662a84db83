-- Not claimed, or no longer, or until absurdly late (?3) by a clock that was wrong.
SELECT EXISTS (SELECT 1 FROM outbox_messages
               WHERE partition = ?1 AND (claimed_until <= ?2 OR claimed_until > ?3)
                 AND claim IS NOT ?4)
    OR EXISTS (SELECT 1 FROM outbox_redeliveries
               WHERE partition = ?1 AND (claimed_until <= ?2 OR claimed_until > ?3)
                 AND claim IS NOT ?4)
