-- What operators see: what changed when, what is known already, and how things went. Columns as on
-- SQLite.
CREATE TABLE stela.stela_changes (
  change  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at      bigint NOT NULL,
  part    text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  what    text COLLATE "C" NOT NULL,
  who     text COLLATE "C" NOT NULL,
  detail  text COLLATE "C" NOT NULL
);

CREATE TABLE stela.stela_acknowledged (
  code     text COLLATE "C" NOT NULL,
  subject  text COLLATE "C" NOT NULL,
  severity text COLLATE "C" NOT NULL,
  amount   bigint NOT NULL,
  who      text COLLATE "C" NOT NULL,
  why      text COLLATE "C" NOT NULL,
  at       bigint NOT NULL,
  until    bigint NOT NULL,
  PRIMARY KEY (code, subject)
);

CREATE TABLE stela.stela_series (
  series bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name   text COLLATE "C" NOT NULL UNIQUE
);
CREATE TABLE stela.stela_samples (
  series integer NOT NULL,
  minute integer NOT NULL,
  value  bigint NOT NULL,
  PRIMARY KEY (series, minute)
);
