CREATE TABLE stela.key_store (
  one      integer NOT NULL PRIMARY KEY CHECK (one = 1),
  id       bytea NOT NULL CHECK (length(id) = 16),
  root     bytea NOT NULL,
  kek      bigint NOT NULL,
  version  bigint NOT NULL,
  erasures bigint NOT NULL,
  made_at  bigint NOT NULL
);

CREATE TABLE stela.key_encryption_keys (
  number  bigint NOT NULL PRIMARY KEY,
  wrapped bytea NOT NULL,
  made_at bigint NOT NULL
);

CREATE TABLE stela.key_rotations (
  number   bigint NOT NULL PRIMARY KEY,
  began_at bigint NOT NULL,
  ended_at bigint NOT NULL
);

CREATE TABLE stela.subject_keys (
  number       bigint NOT NULL PRIMARY KEY,
  id           bytea NOT NULL UNIQUE CHECK (length(id) = 16),
  binding      bytea NOT NULL CHECK (length(binding) = 16),
  purpose      text COLLATE "C" NOT NULL,
  generation   bigint NOT NULL CHECK (generation > 0),
  subject      bytea,
  kek          bigint,
  wrapped      bytea,
  made_at      bigint NOT NULL,
  destroyed_at bigint,
  destroyed_by bigint,
  allowed_at   bigint,
  UNIQUE (binding, purpose, generation),
  CHECK ((subject IS NULL) = (destroyed_at IS NOT NULL)),
  CHECK ((destroyed_by IS NULL) = (destroyed_at IS NULL)),
  CHECK ((kek IS NULL) = (subject IS NULL) AND (wrapped IS NULL) = (subject IS NULL)),
  CHECK (allowed_at IS NULL OR destroyed_at IS NOT NULL)
);

-- ANALYZE would copy former keys into the statistics, which no VACUUM of these tables reaches.
ALTER TABLE stela.key_store ALTER COLUMN root SET STATISTICS 0;
ALTER TABLE stela.key_encryption_keys ALTER COLUMN wrapped SET STATISTICS 0;
ALTER TABLE stela.subject_keys ALTER COLUMN wrapped SET STATISTICS 0,
  ALTER COLUMN subject SET STATISTICS 0;

CREATE TABLE stela.holds (
  binding bytea NOT NULL CHECK (length(binding) = 16),
  purpose text COLLATE "C" NOT NULL,
  until   bigint,
  reason  text NOT NULL,
  made_at bigint NOT NULL,
  PRIMARY KEY (binding, purpose)
);
