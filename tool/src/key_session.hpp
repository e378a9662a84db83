// The key store of a command.
#pragma once

#include "cli/invocation.hpp"
#include "store_session.hpp"

#include <stela/eventstore/keys.hpp>

#include <optional>

namespace stela::tool {

/// Opens the key store named by `--keys`. Threads: as its keys.
class KeySession {
 public:
  /// Opens nothing if none was given.
  KeySession(Invocation& call, bool only_reads);

  /// Misuse if none was given.
  Keys& keys();
  bool is_named() const noexcept { return keys_.has_value(); }
  /// Null if none was given.
  Keyring* keyring() noexcept { return keys_ ? &*keys_ : nullptr; }
  /// For commands that run the application's handlers: Misuse if there are sealed fields and no
  /// keys were given. Handlers would see those fields as empty.
  void require_for(Store& store);

 private:
  LogToStderr log_;
  std::optional<Keys> keys_;
};

}  // namespace stela::tool
