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

 private:
  LogToStderr log_;
  std::optional<Keys> keys_;
};

}  // namespace stela::tool
