SELECT coalesce(max(build), 0) + 1 FROM projections WHERE name = ?1
