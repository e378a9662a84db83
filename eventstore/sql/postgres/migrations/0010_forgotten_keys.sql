-- Keys of personal fields that were destroyed, or are about to be: no event is sealed with one any
-- more. `sequence` is that of the event that says so, or 0.
CREATE TABLE stela.stela_forgotten_keys (
  key_id       bytea NOT NULL PRIMARY KEY CHECK (length(key_id) = 16),
  sequence     bigint NOT NULL,
  forgotten_at bigint NOT NULL
);

-- The key store of this store's personal fields, and the number of the newest key that an event was
-- sealed with. What is destroyed there and what is forgotten here were the same when the key store had
-- the version `settled_as`. No row: there is none.
CREATE TABLE stela.stela_key_store (
  one        integer NOT NULL PRIMARY KEY CHECK (one = 1),
  key_store  bytea NOT NULL CHECK (length(key_store) = 16),
  newest_key bigint NOT NULL,
  settled_as bigint NOT NULL
);

-- Goes before appends in their transaction, and takes the order lock for them: what forgets holds it,
-- too, so none of the keys can be forgotten between this and the append. NULL: the transaction has it.
CREATE FUNCTION stela.guard_keys(order_lock bigint, keys bytea[], newest bigint) RETURNS void
LANGUAGE plpgsql
SET search_path = stela, pg_temp
AS $$
DECLARE
  ignored text;
BEGIN
  ignored := pg_advisory_xact_lock(order_lock);
  IF EXISTS (SELECT FROM stela_forgotten_keys AS f WHERE f.key_id = ANY (keys)) THEN
    RAISE EXCEPTION 'a personal field is sealed with a key that was destroyed: its subject was forgotten'
      USING ERRCODE = 'STFOR';
  END IF;
  UPDATE stela_key_store AS k SET newest_key = newest WHERE k.newest_key < newest;
END
$$;
