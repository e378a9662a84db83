// PostgreSQL by bare libpq: what appends and reads cost without Stela.
#pragma once

#include "measure.hpp"

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::bench {

/// A connection. Throws std::runtime_error with the server's words.
/// Threads: one at a time.
class RawPostgres {
 public:
  explicit RawPostgres(const std::string& conninfo);

  void execute(const std::string& sql);
  void prepare(const char* name, const char* sql);

  /// A prepared statement with its parameters, in binary where they aren't text.
  struct Step {
    const char* name;
    std::vector<std::string> values = {};
    std::vector<int> formats = {};
  };
  /// Rows in binary.
  using Rows = std::unique_ptr<PGresult, void (*)(PGresult*)>;
  /// All of them in one round trip. The last rows that came.
  Rows run(std::span<const Step> steps);
  Rows query(const Step& step);
  /// Returns at once if one has come; throws if none comes for two minutes.
  void wait_for_notification();

 private:
  void require(bool holds) const;

  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
};

/// What bare appends have for metadata.
inline constexpr const char* raw_metadata =
    R"({"correlation":"request-4711","actor":"ann","trace":"00-4bf92f3577b34da6a3ce929d0e0e4736"})";
/// Sixteen bytes.
std::string random_id(Dice& dice);

/// What puts appends in order.
enum class RawOrder : std::uint8_t {
  /// A sequence: who reads by it misses what commits later.
  none,
  /// Held through the flush, as the next two.
  table_lock,
  advisory_lock,
  counter_row,
};

/// Plain tables with the columns of Stela's, and a pointer for each event.
void make_raw_postgres(const std::string& conninfo);

/// One operation: `payloads` to a stream of its own, each with its pointer, in one round trip.
class RawPostgresAppend final : public Subject {
 public:
  RawPostgresAppend(const std::string& conninfo, RawOrder order, std::int64_t stream,
                    std::vector<std::string> payloads);

  void run() override;

 private:
  void add_one(std::vector<RawPostgres::Step>& steps);
  void add_many(std::vector<RawPostgres::Step>& steps);

  RawPostgres database_;
  const RawOrder order_;
  const std::int64_t stream_;
  const std::vector<std::string> payloads_;
  std::int64_t version_ = 0;
  Dice dice_;
};

}  // namespace stela::bench
