#include "succession.hpp"

#include <limits>

namespace stela {

CorruptRow::CorruptRow(std::int64_t sequence, const std::string& problem)
    : CorruptEvent{"event " + std::to_string(sequence) + " is corrupt: " + problem +
                   "; restore it from a backup"},
      problem_{problem} {}

void Succession::check(const StoredEvent& event) const {
  if (of == Of::nothing || next == 0) return;
  const bool by_version = of == Of::versions;
  const std::int64_t actual = by_version ? event.version.value() : event.sequence.value();
  if (actual == next) return;
  if (by_version) {
    throw CorruptRow{event.sequence.value(), "it is version " + std::to_string(actual) + " of '" +
                                                 event.stream.name() + "', where version " +
                                                 std::to_string(next) + " is expected"};
  }
  throw CorruptEvent{"event " + std::to_string(next) + " is missing: event " +
                     std::to_string(actual) + " is in its place; restore it from a backup"};
}

void Succession::pass(const StoredEvent& event) noexcept {
  const std::int64_t passed = of == Of::versions ? event.version.value() : event.sequence.value();
  // Nothing follows the largest number.
  next = passed < std::numeric_limits<std::int64_t>::max() ? passed + step : 0;
}

void Succession::fail_at_end(const StreamId* stream) const {
  const std::string number = std::to_string(next);
  const std::string name =
      stream != nullptr ? "version " + number + " of '" + stream->name() + "'" : "event " + number;
  throw CorruptEvent{name + " is missing; restore it from a backup"};
}

}  // namespace stela
