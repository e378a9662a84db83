// The appends that users pick instead of Stela's on PostgreSQL: written anew from what is publicly
// known of four designs, each with what its own readers and its own conflicts need. Nothing of them
// was copied, and they are no measure of those projects, whose clients do more.
#pragma once

#include "raw_postgres.hpp"

#include <cstdint>
#include <string>

namespace stela::bench {

/// Locks are held until the commit is flushed.
enum class Rival : std::uint8_t {
  /// message-db: a function that takes an advisory lock of the stream's category, checks the
  /// version, and inserts. Promises an order of commits within a category, and none across them.
  category_lock,
  /// pyeventsourcing: LOCK TABLE … IN EXCLUSIVE MODE, then INSERT … RETURNING the notification's
  /// id. Promises an order of commits, with gaps where one was rolled back.
  table_lock,
  /// commanded/eventstore: one statement inserts the event, and raises the versions of its stream
  /// and of the stream $all, which it is linked to; a trigger notifies. Promises a dense order.
  all_stream_row,
  /// Marten's quick append: a function that takes the stream's version and the next of a sequence.
  /// Promises no order: an agent behind it looks for gaps, and guesses which will be filled.
  unordered,
};

/// Empty tables of all of them.
void make_rivals(const std::string& conninfo);

/// One operation: an event to a stream of its own, in one round trip.
class RivalAppend final : public Subject {
 public:
  RivalAppend(const std::string& conninfo, Rival rival, std::int64_t stream, std::string payload);

  void run() override;

 private:
  RawPostgres database_;
  const Rival rival_;
  const std::string stream_;
  const std::string payload_;
  std::int64_t version_ = 0;
  Dice dice_;
};

}  // namespace stela::bench
