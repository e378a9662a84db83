-- How long a lease is, in microseconds, and whose presence shows that its owner runs; NULL: not known.
-- Both are of the lease of `lease_epoch`: an older Stela changes only the epoch.
ALTER TABLE projections ADD COLUMN lease_ttl INTEGER;
ALTER TABLE projections ADD COLUMN presence INTEGER;
ALTER TABLE projections ADD COLUMN lease_epoch INTEGER;
