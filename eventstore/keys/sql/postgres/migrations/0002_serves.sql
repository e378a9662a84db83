-- The tenant whose key store it is, with its registry and where that is; NULL: no tenant's.
ALTER TABLE stela.key_store ADD COLUMN serves text;
