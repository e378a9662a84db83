// Rows of events that follow each other, and those that aren't what was stored.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/stored_event.hpp>
#include <stela/framework/stream_id.hpp>

#include <cstdint>
#include <string>

namespace stela {

/// A row of the events table that isn't what was stored.
class STELA_EVENTSTORE_EXPORT CorruptRow final : public CorruptEvent {
 public:
  CorruptRow(std::int64_t sequence, const std::string& problem);

  /// What is wrong with it, in words that don't name it.
  const std::string& problem() const noexcept { return problem_; }

 private:
  std::string problem_;
};

/// Rows that must follow each other without a gap: those of one stream, or of the whole store.
/// What is missing between them was stored once, so a reader must not pass over it.
struct Succession {
  enum class Of : std::uint8_t { nothing, versions, sequences };

  Of of = Of::nothing;
  /// The version or sequence that the next row must have; 0 if any may come.
  std::int64_t next = 0;
  std::int64_t step = 1;

  /// CorruptEvent if `event` isn't the next one.
  void check(const StoredEvent& event) const;
  void pass(const StoredEvent& event) noexcept;
  /// CorruptEvent that says that `next` is missing at the end of what was read.
  [[noreturn]] void fail_at_end(const StreamId* stream) const;
};

}  // namespace stela
