// The key store that a command works with.
#pragma once

#include "cli/invocation.hpp"
#include "store_session.hpp"

#include <stela/eventstore/keys.hpp>

#include <optional>

namespace stela::tool {

/// Opens what `--keys` names. Threads: as its keys.
class KeySession {
 public:
  /// Nothing is opened if nobody said which one.
  KeySession(Invocation& call, bool only_reads);

  /// Misuse if nobody said which one.
  Keys& keys();
  bool is_named() const noexcept { return keys_.has_value(); }
  /// Null if nobody said which one.
  Keyring* keyring() noexcept { return keys_ ? &*keys_ : nullptr; }
  /// For those that run the application's handlers: Misuse if there are sealed fields, and nobody
  /// said which keys open them. Handlers would take them for empty.
  void require_for(Store& store);

 private:
  LogToStderr log_;
  std::optional<Keys> keys_;
};

}  // namespace stela::tool
