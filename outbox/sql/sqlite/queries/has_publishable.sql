SELECT EXISTS (SELECT 1 FROM events AS e JOIN event_kinds AS k ON k.kind = e.kind
               WHERE k.publishes = 1)
