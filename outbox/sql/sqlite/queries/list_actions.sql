SELECT action, at, who, what, detail FROM outbox_actions WHERE action < ?1
ORDER BY action DESC LIMIT ?2
