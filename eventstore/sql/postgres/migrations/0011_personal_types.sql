-- Types of events of which a field was sealed: whoever doesn't know the type appends none of them.
CREATE TABLE stela.stela_personal_types (
  type text COLLATE "C" NOT NULL PRIMARY KEY
);
