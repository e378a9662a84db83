SELECT DISTINCT type FROM event_kinds
