// Where a filtered read of the whole store has to look.
#pragma once

#include "database/sqlite/connection.hpp"

#include <stela/framework/event_store.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace stela::sqlite {

/// Of sequences; both ends belong to it.
struct SequenceRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  /// Every event in it is of one of the streams that are wanted.
  bool is_of_streams = false;
};

/// The ranges that hold every event which a filter can select, in the direction of the read. They
/// may hold others as well; none is longer than a read transaction should last.
/// Threads: one at a time.
class Candidates {
 public:
  virtual ~Candidates() = default;
  /// The next one within `left`, what is not yet read; nothing if there is none. To be asked with
  /// what the one before left over, so that the ranges follow each other.
  virtual std::optional<SequenceRange> next(Connection& connection, SequenceRange left) = 0;
};

/// `categories` and `types`: JSON arrays, empty for all.
std::unique_ptr<Candidates> find_candidates(const AllQuery& query, const std::string& categories,
                                            const std::string& types);

}  // namespace stela::sqlite
