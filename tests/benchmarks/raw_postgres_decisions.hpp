// A decision of two views by bare libpq, in three round trips: the views, the append, the flush.
#pragma once

#include "decisions.hpp"
#include "raw_postgres.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stela::bench {

/// Plain tables with what the store at `conninfo` holds: its events, and where its tags are.
void copy_school_to_raw_postgres(const std::string& conninfo);

/// The same choices as Subscribing. It reads both views by one statement at one position, and looks
/// under a lock for what came since; the lock isn't held through the flush. It decides again until
/// it succeeds.
class RawPostgresSubscribing final : public Subject {
 public:
  RawPostgresSubscribing(const std::string& conninfo, const School& school);

  void prepare() override;
  void run() override;

  std::int64_t seen = 0;

 private:
  bool decide();

  const School& school_;
  RawPostgres database_;
  std::int32_t defined_ = 0;
  std::string subscribed_;
  /// As texts: the streams of the courses, and the hashes of the students' tags.
  std::vector<std::string> courses_;
  std::vector<std::string> students_;
  Dice dice_{5};
  Dice ids_{11};
  std::size_t course_ = 0;
  std::size_t student_ = 0;
  std::string payload_;
};

}  // namespace stela::bench
