// Reports the messages that an operation changed, or would change.
#pragma once

#include "cli/invocation.hpp"

#include <stela/outbox/operations.hpp>

#include <cstdint>
#include <functional>
#include <string_view>

namespace stela::tool {

Mode outbox_mode(const Arguments& arguments);

/// The words for what happens to messages, planned and done.
struct Deed {
  std::string_view planned;
  std::string_view done;
};
inline constexpr Deed retrying{"would be retried", "will be retried"};
inline constexpr Deed discarding{"would be discarded", "discarded"};
inline constexpr Deed republishing{"would be published again", "will be published again"};

/// Tells how far an interrupted operation came, and how to continue it.
int tell_if_interrupted(Invocation& call, const Affected& affected, std::int64_t planned);

/// Tells what was done, or would be. `planned`: to how many messages.
int report_affected(Invocation& call, const Affected& affected, const Deed& deed,
                    std::int64_t planned = 0);

/// Shows what a selection would change, asks, then changes it.
int asked(Invocation& call, const Deed& deed, std::string_view question,
          const std::function<Affected(Mode)>& operate);

}  // namespace stela::tool
