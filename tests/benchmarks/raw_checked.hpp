// What Stela's reader does for each event, by hand: the part of its cost that no reader saves that
// hands out whole events and lets no damaged byte pass.
#pragma once

#include "raw.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stela::bench {

/// Reads the events of a store with all of their columns and the names of their streams, and checks
/// the checksum of each, as docs/schema.md defines it.
/// Threads: one at a time.
class RawCheckedReader {
 public:
  explicit RawCheckedReader(const std::string& path);

  /// Calls `f(kind, payload)` for each event of the store.
  template <class F>
  void read_all(F&& f) {
    while (all_.step()) {
      check();
      f(kind_, payload_);
    }
    all_.reset();
  }

  /// The number that LineAdded has as a kind.
  std::int64_t added_kind() const noexcept { return added_kind_; }

 private:
  struct Kind {
    std::string type;
    std::int64_t schema_version = 0;
    std::int64_t publishes = 0;
  };
  /// Reads the row, and throws if it isn't what was stored.
  void check();

  RawDatabase database_;
  RawStatement all_;
  std::unordered_map<std::int64_t, std::string> streams_;
  std::unordered_map<std::int64_t, Kind> kinds_;
  std::int64_t added_kind_ = 0;
  std::int64_t kind_ = 0;
  std::string_view payload_;
};

}  // namespace stela::bench
