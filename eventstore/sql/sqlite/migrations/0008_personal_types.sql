-- Types of events of which a field was sealed: whoever doesn't know the type appends none of them.
CREATE TABLE stela_personal_types (
  type TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
