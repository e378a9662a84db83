// Checks that rows of events follow each other, undamaged.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/stored_event.hpp>
#include <stela/framework/stream_id.hpp>

#include <cstdint>
#include <string>

namespace stela {

/// A row of the events table that differs from what was stored.
class STELA_EVENTSTORE_EXPORT CorruptRow final : public CorruptEvent {
 public:
  CorruptRow(std::int64_t sequence, const std::string& problem);

  /// The damage, in words that don't name the event.
  const std::string& problem() const noexcept { return problem_; }

 private:
  std::string problem_;
};

/// Rows that must be consecutive: those of one stream, or of the entire store. A missing row
/// between them was stored once, so a reader must not skip it.
struct Succession {
  enum class Of : std::uint8_t { nothing, versions, sequences };

  Of of = Of::nothing;
  /// The version or sequence that the next row must have; 0 if any will do.
  std::int64_t next = 0;
  std::int64_t step = 1;

  /// CorruptEvent if `event` isn't the next one.
  void check(const StoredEvent& event) const;
  void pass(const StoredEvent& event) noexcept;
  /// CorruptEvent: `next` is missing at the end of the rows.
  [[noreturn]] void fail_at_end(const StreamId* stream) const;
};

}  // namespace stela
