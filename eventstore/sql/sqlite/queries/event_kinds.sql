SELECT kind, category, type, version, publishes FROM event_kinds WHERE kind > ?1 ORDER BY kind
