// What the compiler of named statements takes, refuses and makes.
#include "statement_file.hpp"
#include "check.hpp"
#include "header.hpp"
#include "postgres_text.hpp"
#include "tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stela::compiler::statement_file_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The statements of `text`, about a table of shelves.
StatementFile compile(const std::string& text) {
  Schema schema;
  schema.migrate("CREATE TABLE shelves (shelf INTEGER PRIMARY KEY, label TEXT, cover BLOB)");
  schema.migrate("CREATE TABLE streams (stream INTEGER PRIMARY KEY, name TEXT)");
  schema.migrate(
      "CREATE TABLE books (stream INTEGER, title TEXT, state TEXT NOT NULL DEFAULT 'new',"
      " cover BLOB, lent_to TEXT, kind TEXT NOT NULL, PRIMARY KEY (stream, title))");
  StatementFile file = parse(text);
  add_statements_of_tables(file, schema);
  for (Statement& statement : file.statements) schema.check(statement);
  return file;
}

std::string problem_of(const std::string& text) {
  try {
    compile(text);
    return "none";
  } catch (const Malformed& e) {
    return "line " + std::to_string(e.line) + ": " + e.what();
  }
}

TEST(StatementFile, GivesEachStatementItsParametersAndColumns) {
  const StatementFile file = compile(R"(-- Shelves.

-- name: find
-- By its label.
-- takes: label text,
--        least int
-- gives: shelf int, cover blob?
SELECT shelf, cover FROM shelves WHERE shelf >= :least AND label = :label;

-- name: clear
DELETE FROM shelves;
)");

  ASSERT_EQ(file.statements.size(), 2U);
  const Statement& find = file.statements[0];
  EXPECT_EQ(find.comment, "By its label.");
  EXPECT_EQ(find.text, "SELECT shelf, cover FROM shelves WHERE shelf >= :least AND label = :label");
  EXPECT_EQ(find.parameters[0].name, "label");
  EXPECT_THAT(find.numbers, ElementsAre(2, 1));
  EXPECT_EQ(find.columns[1].type, Type::blob);
  EXPECT_TRUE(find.columns[1].is_optional);
  EXPECT_EQ(file.statements[1].text, "DELETE FROM shelves");
}

TEST(StatementFile, MakesATypeWithFieldsAndAccessors) {
  const StatementFile file = compile(R"(-- row: shelf
-- gives: shelf int, label text?

-- name: find
-- takes: after int, label text?
-- gives: shelf
SELECT shelf, label FROM shelves WHERE shelf > :after AND label IS :label;
)");

  EXPECT_THAT(
      header_of(file, "library", "shelves.sql"),
      AllOf(HasSubstr("class shelf_row"), HasSubstr("std::int64_t shelf() const"),
            HasSubstr("std::optional<std::string_view> label() const"),
            HasSubstr("struct find {\n  std::int64_t after;"), HasSubstr("query.bind(1, after);"),
            HasSubstr("label ? query.bind(2, *label) : query.bind(2, nullptr);"),
            HasSubstr("using Row = shelf_row;")));
}

TEST(StatementFile, GivesPostgresqlTheTypesAndLeavesSqlitesHintsOut) {
  const StatementFile file = compile(R"(-- name: find
-- takes: label text?, is_old bool, least int
-- gives: shelf int
SELECT s.shelf FROM shelves AS s CROSS JOIN shelves AS t ON t.shelf = s.shelf -- by :nothing
WHERE s.label IS NOT :label AND s.label <> ':label' AND :is_old AND s.shelf > :least;

-- name: clear
-- takes: least int
DELETE FROM shelves WHERE shelf >= :least;
-- engine: postgres
DELETE FROM ONLY shelves WHERE shelf >= :least::int;
)");

  EXPECT_EQ(
      postgres_text(file.statements[0]),
      "SELECT s.shelf FROM shelves AS s JOIN shelves AS t ON t.shelf = s.shelf -- by :nothing\n"
      "WHERE s.label IS DISTINCT FROM $1::text AND s.label <> ':label' AND ($2::bigint <> 0) "
      "AND s.shelf > $3::bigint");
  EXPECT_EQ(file.statements[1].text, "DELETE FROM shelves WHERE shelf >= :least");
  EXPECT_EQ(postgres_text(file.statements[1]),
            "DELETE FROM ONLY shelves WHERE shelf >= $1::bigint::int");
  EXPECT_THAT(header_of(file, "library", "shelves.sql"),
              HasSubstr("shelves_on_postgres[] = {\n    find::on_postgres,"));
}

TEST(StatementFile, SavesAndLoadsATableThatIsDescribed) {
  const StatementFile file = compile(R"(-- table: books
-- Those of one kind.
-- where: t.state
--        <> 'lost'
-- stays: lent_to
-- sets: kind = 'book'
)");

  EXPECT_EQ(file.tables[0].before_first, "[-9223372036854775808, \"\"]");
  ASSERT_EQ(file.statements.size(), 2U);
  const Statement& save = file.statements[0];
  EXPECT_EQ(save.name, "save_books");
  EXPECT_EQ(save.text,
            R"(SELECT json_array(t.stream, t.title) AS key,
       json_patch('{}', json_object('stream', )"
            R"((SELECT s.name FROM streams AS s WHERE s.stream = t.stream), )"
            R"('title', t.title, 'state', t.state, 'cover', stela_to_base64(t.cover))) AS line
FROM books AS t
WHERE (t.stream, t.title) > (:after ->> 0, :after ->> 1) AND (t.state        <> 'lost')
ORDER BY t.stream, t.title LIMIT :most)");
  EXPECT_THAT(postgres_text(save),
              AllOf(HasSubstr(R"('cover', translate(encode(t.cover, 'base64'), E'\n', ''))"),
                    HasSubstr("(($1::text::json ->> 0)::bigint, ($1::text::json ->> 1)::text)")));
  const Statement& load = file.statements[1];
  EXPECT_EQ(load.name, "load_books");
  EXPECT_EQ(load.text, R"(INSERT INTO books (stream, title, state, cover, kind)
SELECT (SELECT s.stream FROM streams AS s WHERE s.name = value ->> 'stream'), )"
                       R"(coalesce(value ->> 'title', NULL), coalesce(value ->> 'state', 'new'), )"
                       R"(stela_from_base64(value ->> 'cover'), 'book'
FROM json_each(:rows))");
  EXPECT_THAT(postgres_text(load),
              AllOf(HasSubstr("r.title, r.state, decode(j.line ->> 'cover', 'base64'), 'book'\n"),
                    HasSubstr("'title', NULL, 'state', 'new', 'cover', NULL) || ")));
  EXPECT_THAT(header_of(file, "library", "moves.sql"),
              HasSubstr("database::MovedTable moves_tables[] = {\n    {\"books\","));
}

TEST(StatementFile, RefusesATableThatIsAnother) {
  constexpr auto problem = "line 1: 'books' or one of its columns doesn't exist";
  EXPECT_EQ(problem_of("-- table: books\n-- stays: author"), problem);
  EXPECT_EQ(problem_of("-- table: books\n-- sets: author = 'Ann'"), problem);
  EXPECT_EQ(problem_of("-- table: books\nDELETE FROM books"),
            "line 1: a table has no statement, it is only described");
}

TEST(StatementFile, RefusesATextForPostgresqlThatTakesSomethingElse) {
  const StatementFile file = compile(R"(-- name: clear
-- takes: least int
DELETE FROM shelves WHERE shelf >= :least;
-- engine: postgres
DELETE FROM shelves;
)");
  EXPECT_THROW(postgres_text(file.statements[0]), Malformed);
}

StatementFile compile_for_postgres(const std::string& text) {
  StatementFile file = parse(text);
  make_postgres(file);
  return file;
}

TEST(StatementFile, NumbersTheParametersOfPostgresqlsOwn) {
  const StatementFile file = compile_for_postgres(R"(-- row: label
-- takes: shelf int, text text?, tone int4, is_new bool, at time, id uuid, mark blob

-- name: insert_labels
-- takes: first int4, labels label[], is_new bool, shelves int[]
INSERT INTO labels SELECT * FROM stela.new_labels(:first, :is_new, :shelves) CROSS JOIN unnest(
:labels);
)");

  EXPECT_EQ(postgres_text(file.statements[0]),
            "INSERT INTO labels SELECT * FROM stela.new_labels($1::integer, ($9::bigint <> 0), "
            "$10::bigint[]) CROSS JOIN unnest(\n$2::bigint[], $3::text[], $4::integer[], "
            "$5::boolean[], $6::bigint[], $7::uuid[], $8::bytea[])");
}

TEST(StatementFile, MakesParametersAndListsOfRowsForPostgresql) {
  const StatementFile file = compile_for_postgres(R"(-- row: label
-- takes: shelf int, text text?

-- name: insert_labels
-- doing: storing labels
-- takes: labels label[], shelves int[], cover blob?, at time
-- gives: id uuid, shelves int[]
INSERT INTO labels SELECT * FROM unnest(:labels) WHERE :shelves = :cover OR :at RETURNING id;
)");

  EXPECT_THAT(
      header_of(file, "postgres", "labels.sql"),
      AllOf(HasSubstr("class label_rows {"), HasSubstr("shelf_.add(row.shelf);"),
            HasSubstr("row.text ? text_.add_bytes(*row.text) : text_.add_null();"),
            HasSubstr("postgres::Array text_ = postgres::Array::of_text();"),
            HasSubstr("label_rows& labels;\n  postgres::Array& shelves;"),
            HasSubstr("doing = R\"sql(storing labels)sql\""), HasSubstr("labels.add_to(all);"),
            HasSubstr("cover ? all.add_bytes(*cover) : all.add_null(postgres::type::bytes);"),
            HasSubstr("all.add_time(at);"), HasSubstr("Uuid id() const"),
            HasSubstr("std::vector<std::int64_t> shelves() const {\n    return Query::integers(1)"),
            HasSubstr("{insert_labels::sql, \"id uuid shelves integers \"}")));
}

TEST(StatementFile, RefusesPostgresqlsTypesElsewhere) {
  EXPECT_EQ(problem_of("-- name: find\n-- takes: shelves int[]\nSELECT :shelves"),
            "line 1: 'find': the type of 'shelves' is PostgreSQL's alone");
  EXPECT_EQ(problem_of("-- name: find\n-- gives: id uuid\nSELECT 1 AS id"),
            "line 1: 'find': the type of 'id' is PostgreSQL's alone");
  EXPECT_EQ(problem_of("-- row: label\n-- gives: shelf int\n\n-- name: add\n"
                       "-- takes: labels label[]\nSELECT :labels"),
            "line 4: the type of 'labels label[]' isn't int, bool, time, text or blob");
}

TEST(StatementFile, RefusesUnknownColumns) {
  EXPECT_EQ(problem_of("-- name: find\n-- gives: colour text\nSELECT colour FROM shelves"),
            "line 1: 'find': no such column: colour");
  EXPECT_EQ(problem_of("-- name: find\n-- gives: label int\nSELECT label FROM shelves"),
            "line 1: 'find': column 'label' is TEXT in its table");
}

TEST(StatementFile, RefusesAWrongDeclaration) {
  EXPECT_EQ(problem_of("-- name: find\n-- gives: shelf int\nSELECT label FROM shelves"),
            "line 1: 'find': column 1 is 'label', and is declared as 'shelf'; name it with AS");
  EXPECT_EQ(problem_of("-- name: find\nSELECT label FROM shelves"),
            "line 1: 'find': gives 1 columns, and declares 0");
  EXPECT_EQ(problem_of("-- name: drop\nDELETE FROM shelves WHERE shelf = :shelf"),
            "line 1: 'drop': doesn't say that it takes :shelf");
  EXPECT_EQ(problem_of("-- name: drop\nDELETE FROM shelves WHERE shelf = ?"),
            "line 1: 'drop': doesn't say that it takes a '?'");
  EXPECT_EQ(problem_of("-- name: drop\n-- takes: shelf int\nDELETE FROM shelves"),
            "line 1: 'drop': doesn't use 'shelf', which it takes");
}

TEST(StatementFile, RefusesSeveralStatementsUnderOneName) {
  EXPECT_EQ(problem_of("DELETE FROM shelves"), "line 1: a statement without '-- name:'");
  EXPECT_EQ(problem_of("-- name: Drop\nDELETE FROM shelves"),
            "line 1: 'Drop' isn't a name: lower-case letters, digits and _");
  EXPECT_EQ(problem_of("\n-- name: drop\n"), "line 2: 'drop' has no statement");
  EXPECT_EQ(problem_of("-- name: drop\nDELETE FROM shelves; DELETE FROM shelves"),
            "line 1: 'drop': there is more than one statement");
  EXPECT_EQ(problem_of("-- name: find\n-- takes: shelf number\nDELETE FROM shelves"),
            "line 1: the type of 'shelf number' isn't int, bool, time, text or blob");
  EXPECT_EQ(problem_of("-- name: find\n-- gives: book\nSELECT 1"),
            "line 1: no row 'book' before it");
}

}  // namespace
}  // namespace stela::compiler::statement_file_test
