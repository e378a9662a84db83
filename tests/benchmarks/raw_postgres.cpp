#include "raw_postgres.hpp"

#include "database/postgres/parameters.hpp"

#include <poll.h>

#include <cstring>
#include <stdexcept>

namespace stela::bench {
namespace {

std::string text_of(std::int64_t number) {
  return std::to_string(number);
}

}  // namespace

std::string random_id(Dice& dice) {
  std::string id(16, '\0');
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint64_t random = dice.next();
    std::memcpy(id.data() + 8 * half, &random, 8);
  }
  return id;
}

RawPostgres::RawPostgres(const std::string& conninfo)
    : connection_{PQconnectdb(conninfo.c_str()), PQfinish} {
  require(PQstatus(connection_.get()) == CONNECTION_OK);
}

void RawPostgres::require(bool holds) const {
  if (!holds) throw std::runtime_error{PQerrorMessage(connection_.get())};
}

void RawPostgres::execute(const std::string& sql) {
  const Rows result{PQexec(connection_.get(), sql.c_str()), PQclear};
  const auto status = PQresultStatus(result.get());
  require(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK);
}

void RawPostgres::prepare(const char* name, const char* sql) {
  const Rows result{PQprepare(connection_.get(), name, sql, 0, nullptr), PQclear};
  require(PQresultStatus(result.get()) == PGRES_COMMAND_OK);
}

RawPostgres::Rows RawPostgres::run(std::span<const Step> steps) {
  PGconn* const connection = connection_.get();
  require(PQenterPipelineMode(connection) == 1);
  for (const Step& step : steps) {
    std::vector<const char*> values;
    std::vector<int> lengths;
    for (const std::string& value : step.values) {
      values.push_back(value.c_str());
      lengths.push_back(static_cast<int>(value.size()));
    }
    require(PQsendQueryPrepared(connection, step.name, static_cast<int>(values.size()),
                                values.data(), lengths.data(), step.formats.data(), 1) == 1);
  }
  require(PQpipelineSync(connection) == 1);
  bool is_over = false;
  Rows last{nullptr, PQclear};
  while (!is_over) {
    Rows result{PQgetResult(connection), PQclear};
    const auto status = PQresultStatus(result.get());
    is_over = status == PGRES_PIPELINE_SYNC;
    const bool is_fine =
        result == nullptr || is_over || status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (!is_fine) throw std::runtime_error{PQresultErrorMessage(result.get())};
    if (status == PGRES_TUPLES_OK) last = std::move(result);
  }
  require(PQexitPipelineMode(connection) == 1);
  return last;
}

RawPostgres::Rows RawPostgres::query(const Step& step) {
  std::vector<const char*> values;
  for (const std::string& value : step.values) values.push_back(value.c_str());
  Rows result{PQexecPrepared(connection_.get(), step.name, static_cast<int>(values.size()),
                             values.data(), nullptr, nullptr, 1),
              PQclear};
  const auto status = PQresultStatus(result.get());
  require(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK);
  return result;
}

void RawPostgres::wait_for_notification() {
  constexpr int two_minutes = 120'000;
  PGconn* const connection = connection_.get();
  const auto take_all = [&] {
    bool any = false;
    while (PGnotify* const come = PQnotifies(connection)) {
      PQfreemem(come);
      any = true;
    }
    return any;
  };
  while (!take_all()) {
    pollfd socket{PQsocket(connection), POLLIN, 0};
    require(poll(&socket, 1, two_minutes) == 1 && PQconsumeInput(connection) == 1);
  }
}

void make_raw_postgres(const std::string& conninfo) {
  RawPostgres{conninfo}.execute(
      "SET client_min_messages = warning; DROP SCHEMA IF EXISTS bare CASCADE; CREATE SCHEMA bare; "
      "CREATE SEQUENCE bare.numbers; "
      "CREATE TABLE bare.counter (n bigint); INSERT INTO bare.counter VALUES (0); "
      "CREATE TABLE bare.events (sequence bigint PRIMARY KEY, stream bigint, version bigint, "
      "recorded_at bigint, kind integer, event_id uuid, metadata text, payload bytea, "
      "UNIQUE (stream, version)); "
      "CREATE TABLE bare.pointers (partition bigint, sequence bigint, stream bigint, "
      "PRIMARY KEY (partition, sequence))");
}

RawPostgresAppend::RawPostgresAppend(const std::string& conninfo, RawOrder order,
                                     std::int64_t stream, std::vector<std::string> payloads)
    : database_{conninfo},
      order_{order},
      stream_{stream},
      payloads_{std::move(payloads)},
      dice_{static_cast<std::uint64_t>(stream)} {
  database_.prepare("begin", "BEGIN");
  database_.prepare("commit", "COMMIT");
  database_.prepare("table", "LOCK TABLE bare.events IN EXCLUSIVE MODE");
  database_.prepare("advisory", "SELECT pg_advisory_xact_lock(1)");
  database_.prepare("count", "UPDATE bare.counter SET n = n + 1");
  database_.prepare("one",
                    "INSERT INTO bare.events VALUES (nextval('bare.numbers'), $1, $2, $3, 1, "
                    "$4::uuid, $5::text, $6::bytea)");
  database_.prepare("counted",
                    "INSERT INTO bare.events VALUES ((SELECT n FROM bare.counter), $1, $2, $3, 1, "
                    "$4::uuid, $5::text, $6::bytea)");
  database_.prepare("pointer", "INSERT INTO bare.pointers VALUES (0, currval('bare.numbers'), $1)");
  database_.prepare("counted_pointer",
                    "INSERT INTO bare.pointers SELECT 0, n, $1 FROM bare.counter");
  database_.prepare("many",
                    "WITH e AS (INSERT INTO bare.events "
                    "SELECT nextval('bare.numbers'), $1::bigint, v, $2::bigint, 1, i, $3::text, p "
                    "FROM unnest($4::bigint[], $5::uuid[], $6::bytea[]) AS u(v, i, p) "
                    "RETURNING sequence, stream) "
                    "INSERT INTO bare.pointers SELECT 0, sequence, stream FROM e");
}

void RawPostgresAppend::run() {
  std::vector<RawPostgres::Step> steps;
  steps.push_back({"begin"});
  if (order_ == RawOrder::table_lock) steps.push_back({"table"});
  if (order_ == RawOrder::advisory_lock) steps.push_back({"advisory"});
  if (order_ == RawOrder::counter_row) steps.push_back({"count"});
  payloads_.size() == 1 ? add_one(steps) : add_many(steps);
  steps.push_back({"commit"});
  database_.run(steps);
}

void RawPostgresAppend::add_one(std::vector<RawPostgres::Step>& steps) {
  const bool counts = order_ == RawOrder::counter_row;
  const std::string stream = text_of(stream_);
  steps.push_back({counts ? "counted" : "one",
                   {stream, text_of(++version_), "1795000000000000", random_id(dice_), raw_metadata,
                    payloads_.front()},
                   {0, 0, 0, 1, 0, 1}});
  steps.push_back({counts ? "counted_pointer" : "pointer", {stream}, {0}});
}

void RawPostgresAppend::add_many(std::vector<RawPostgres::Step>& steps) {
  using postgres::Array;
  Array versions = Array::of_int8();
  Array ids = Array::of_uuid();
  Array payloads = Array::of_bytes();
  for (const std::string& payload : payloads_) {
    versions.add(++version_);
    Uuid::Bytes id{};
    std::memcpy(id.data(), random_id(dice_).data(), id.size());
    ids.add_uuid(Uuid{id});
    payloads.add_bytes(payload);
  }
  steps.push_back(
      {"many",
       {text_of(stream_), "1795000000000000", raw_metadata, std::string{versions.encoded()},
        std::string{ids.encoded()}, std::string{payloads.encoded()}},
       {0, 0, 0, 1, 1, 1}});
}

}  // namespace stela::bench
