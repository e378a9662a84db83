#include "raw_postgres_decisions.hpp"

#include "raw_events.hpp"

#include <string_view>

namespace stela::bench {
namespace {

constexpr const char* copy_sql = R"(
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS school CASCADE;
CREATE SCHEMA school;
CREATE SEQUENCE school.numbers;
CREATE TABLE school.events (
  sequence bigint PRIMARY KEY DEFAULT nextval('school.numbers'), stream bigint, version bigint,
  recorded_at bigint, kind integer, event_id uuid, metadata text, payload bytea,
  UNIQUE (stream, version));
CREATE TABLE school.tags (tag bigint, sequence bigint, PRIMARY KEY (tag, sequence));
INSERT INTO school.events
SELECT sequence, stream, version, recorded_at, kind, event_id, metadata, payload FROM stela.events;
INSERT INTO school.tags SELECT tag, sequence FROM stela.tag_index;
SELECT setval('school.numbers', max(sequence)) FROM school.events;
ANALYZE)";

constexpr const char* views_sql = R"(
SELECT h.head, v.kind, v.payload, v.view
FROM (SELECT coalesce(max(sequence), 0) AS head FROM school.events) AS h
LEFT JOIN (
  SELECT e.sequence, 1::bigint AS view, e.kind::bigint AS kind, e.payload
  FROM school.events AS e WHERE e.stream = $1
  UNION ALL
  SELECT e.sequence, 2, e.kind, e.payload
  FROM school.tags AS t JOIN school.events AS e ON e.sequence = t.sequence WHERE t.tag = $2
) AS v ON true
ORDER BY v.sequence)";

constexpr const char* append_sql = R"(
WITH e AS (
  INSERT INTO school.events (stream, version, recorded_at, kind, event_id, metadata, payload)
  SELECT $1, (SELECT coalesce(max(version), 0) + 1 FROM school.events WHERE stream = $1),
         1795000000000000, $4::integer, $5::uuid, $6, $7::bytea
  WHERE NOT EXISTS (SELECT FROM school.events WHERE stream = $1 AND sequence > $3)
    AND NOT EXISTS (SELECT FROM school.tags WHERE tag = $2 AND sequence > $3)
  RETURNING sequence
), t AS (
  INSERT INTO school.tags SELECT $2, sequence FROM e
)
SELECT sequence FROM e)";

std::int64_t number_in(const PGresult* rows, int row, int column) {
  std::uint64_t number = 0;
  for (int i = 0; i < PQgetlength(rows, row, column); ++i) {
    number = number << 8U | static_cast<unsigned char>(PQgetvalue(rows, row, column)[i]);
  }
  return static_cast<std::int64_t>(number);
}

}  // namespace

void copy_school_to_raw_postgres(const std::string& conninfo) {
  RawPostgres{conninfo}.execute(copy_sql);
}

RawPostgresSubscribing::RawPostgresSubscribing(const std::string& conninfo, const School& school)
    : school_{school}, database_{conninfo} {
  // The flush is a commit of its own, for which this is on.
  database_.execute("SET synchronous_commit = off");
  database_.prepare("kind", "SELECT kind::bigint FROM stela.event_kinds WHERE type = $1");
  database_.prepare("stream", "SELECT stream FROM stela.streams WHERE name = $1");
  const auto kind_of = [&](std::string_view type) {
    return number_in(database_.query({"kind", {std::string{type}}}).get(), 0, 0);
  };
  defined_ = static_cast<std::int32_t>(kind_of(CourseDefined::event_type.name));
  subscribed_ = std::to_string(kind_of(Subscribed::event_type.name));
  for (const Id<Course>& course : school.courses) {
    const auto rows = database_.query({"stream", {course.stream().name()}});
    courses_.push_back(std::to_string(number_in(rows.get(), 0, 0)));
  }
  for (const Id<Student>& student : school.students) {
    students_.push_back(std::to_string(RawTag{student.stream().name()}.hash));
  }
  database_.prepare("views", views_sql);
  database_.prepare("begin", "BEGIN");
  database_.prepare("lock", "SELECT pg_advisory_xact_lock(1)");
  database_.prepare("append", append_sql);
  database_.prepare("commit", "COMMIT");
  database_.prepare("flush",
                    "SELECT set_config('synchronous_commit', 'on', true), "
                    "pg_logical_emit_message(true, 'school', '')");
}

void RawPostgresSubscribing::prepare() {
  course_ = dice_.below(courses_.size());
  student_ = dice_.below(students_.size());
}

void RawPostgresSubscribing::run() {
  while (!decide()) {
  }
  database_.query({"flush"});
}

bool RawPostgresSubscribing::decide() {
  Seats seats{school_.courses[course_]};
  StudentLoad load{school_.students[student_]};
  const auto rows = database_.query({"views", {courses_[course_], students_[student_]}});
  for (int row = 0; row < PQntuples(rows.get()); ++row) {
    if (PQgetisnull(rows.get(), row, 3) != 0) continue;
    const std::string_view payload{PQgetvalue(rows.get(), row, 2),
                                   static_cast<std::size_t>(PQgetlength(rows.get(), row, 2))};
    if (number_in(rows.get(), row, 3) == 2) {
      load.apply(codec::decode<Subscribed>(Codec::json, payload));
    } else if (number_in(rows.get(), row, 1) == defined_) {
      seats.apply(codec::decode<CourseDefined>(Codec::json, payload));
    } else {
      seats.apply(codec::decode<Subscribed>(Codec::json, payload));
    }
  }
  payload_.clear();
  codec::encode(Codec::json, Subscribed{seats.course, load.student}, payload_);
  const std::vector<RawPostgres::Step> steps{
      {"begin"},
      {"lock"},
      {"append",
       {courses_[course_], students_[student_], std::to_string(number_in(rows.get(), 0, 0)),
        subscribed_, random_id(ids_), raw_metadata, payload_},
       {0, 0, 0, 0, 1, 0, 1}},
      {"commit"}};
  if (PQntuples(database_.run(steps).get()) == 0) return false;
  seen += seats.left + load.courses;
  return true;
}

}  // namespace stela::bench
