// What an operation on messages changed, or would change, as the tool says it.
#pragma once

#include "cli/invocation.hpp"

#include <stela/outbox/operations.hpp>

#include <cstdint>
#include <functional>
#include <string_view>

namespace stela::tool {

Mode outbox_mode(const Arguments& arguments);

/// What happens to messages: "6 messages of 3 streams " and one of them.
struct Deed {
  std::string_view planned;
  std::string_view done;
};
inline constexpr Deed retrying{"would be retried", "will be retried"};
inline constexpr Deed discarding{"would be discarded", "discarded"};
inline constexpr Deed republishing{"would be published again", "will be published again"};

/// Says of what was interrupted how far it came, and how to go on.
int tell_if_interrupted(Invocation& call, const Affected& affected, std::int64_t planned);

/// Says what was done, or would be. `planned`: to how many messages.
int report_affected(Invocation& call, const Affected& affected, const Deed& deed,
                    std::int64_t planned = 0);

/// What a selection would change, asked about, then changed.
int asked(Invocation& call, const Deed& deed, std::string_view question,
          const std::function<Affected(Mode)>& operate);

}  // namespace stela::tool
