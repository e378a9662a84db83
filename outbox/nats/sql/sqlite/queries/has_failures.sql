SELECT EXISTS (SELECT 1 FROM inbox_failures WHERE consumer = ?1),
       EXISTS (SELECT 1 FROM inbox_held WHERE consumer = ?1)
